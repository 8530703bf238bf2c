#include "move/selection.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "store/truth.h"
#include "move/match.h"

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

static bool
is_wanted(const struct restore *restore, const char *path)
{
	bool wanted = restore->include_count == 0;
	size_t i;

	for (i = 0; i < restore->include_count && !wanted; i++)
		wanted = path_matches(restore->include[i], path);
	for (i = 0; i < restore->exclude_count && wanted; i++)
		wanted = !path_matches(restore->exclude[i], path);
	return wanted;
}

static int
add_step(struct restore_plan *plan, const char *path, struct error *error)
{
	struct restore_step *steps;

	steps = realloc(plan->steps, (plan->count + 1) * sizeof(*steps));
	if (steps == NULL)
		return out_of_memory(error);
	plan->steps = steps;
	memset(&steps[plan->count], 0, sizeof(*steps));
	if ((steps[plan->count].path = strdup(path)) == NULL)
		return out_of_memory(error);
	plan->count++;
	return 0;
}

static struct item *
add_item(struct selection *selection, const struct restore_plan *plan,
    enum item_kind kind, enum item_phase phase, const char *path,
    struct error *error)
{
	size_t capacity;
	struct item *items;

	if (selection->item_count == selection->item_capacity) {
		capacity = selection->item_capacity * 2 + 16;
		items = realloc(selection->items, capacity * sizeof(*items));
		if (items == NULL) {
			out_of_memory(error);
			return NULL;
		}
		selection->items = items;
		selection->item_capacity = capacity;
	}
	items = &selection->items[selection->item_count++];
	*items = (struct item){
		.kind = kind,
		.phase = phase,
		.path = path,
		.step = plan->count - 1,
		.first = selection->part_count
	};
	return items;
}

/* One more part of the newest item. */
static int
add_part(struct selection *selection, struct restore_plan *plan,
    const struct manifest *manifest, const struct manifest_entry *entry,
    const struct manifest_entry *content, size_t twin, struct error *error)
{
	size_t capacity;
	struct part *parts;

	if (twin == SIZE_MAX && content == NULL &&
	    entry->kind == MANIFEST_HARD_LINK)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
		    manifest->key, "the hard link \"%s\" names no file",
		    entry->path);
	if (selection->part_count == selection->part_capacity) {
		capacity = selection->part_capacity * 2 + 16;
		parts = realloc(selection->parts, capacity * sizeof(*parts));
		if (parts == NULL)
			return out_of_memory(error);
		selection->parts = parts;
		selection->part_capacity = capacity;
	}
	parts = &selection->parts[selection->part_count];
	*parts = (struct part){
		.manifest = manifest,
		.entry = entry,
		.content = twin == SIZE_MAX ? content : NULL,
		.twin = twin
	};
	if (parts->content != NULL) {
		parts->origins = calloc(content->extent_count + 1,
		    sizeof(*parts->origins));
		if (parts->origins == NULL)
			return out_of_memory(error);
		plan->total_bytes += content->size;
		plan->steps[plan->count - 1].size += content->size;
	}
	selection->part_count++;
	selection->items[selection->item_count - 1].count++;
	return 0;
}

static bool
is_beneath(const char *path, const char *above)
{
	size_t length = strlen(above);

	return strncmp(path, above, length) == 0 &&
	    (path[length] == '\0' || path[length] == '/');
}

/* Whether ${path} is spoken for by what was chosen before. */
static bool
is_taken(const struct selection *selection, const char *path)
{
	const struct item *item;
	size_t i;

	for (i = 0; i < selection->item_count; i++) {
		item = &selection->items[i];
		if (item->kind == ITEM_TREE ? is_beneath(path, item->path) :
		    strcmp(path, item->path) == 0)
			return true;
	}
	return false;
}

/* Whether the checkpoint is exactly one directory that is wanted whole. */
static bool
is_tree(const struct restore *restore, const struct manifest *manifest)
{
	const struct manifest_entry *entry;
	bool root = false;
	size_t i;

	for (i = 0; i < manifest->entry_count; i++) {
		entry = &manifest->entries[i];
		if (strcmp(entry->path, manifest->name) == 0)
			root = entry->kind == MANIFEST_FOLDER;
		if (!is_beneath(entry->path, manifest->name) ||
		    (entry->kind != MANIFEST_FOLDER &&
		    !is_wanted(restore, entry->path)))
			return false;
	}
	return root;
}

/* The part of the same tree that a hard link names. */
static size_t
find_twin(const struct selection *selection, size_t first, const char *path)
{
	size_t i;

	for (i = first; i < selection->part_count; i++)
		if (strcmp(selection->parts[i].entry->path, path) == 0)
			return i;
	return SIZE_MAX;
}

/* Outside a tree, each file is put into place alone, and a hard link becomes
 * a file with the same bytes. */
static int
add_entry(struct selection *selection, struct restore_plan *plan,
    const struct manifest *manifest, const struct manifest_entry *entry,
    bool tree, size_t first, struct error *error)
{
	size_t twin = SIZE_MAX;

	if (tree && entry->kind == MANIFEST_HARD_LINK)
		twin = find_twin(selection, first, entry->target);
	return add_part(selection, plan, manifest, entry,
	    match_content(manifest, entry), twin, error);
}

/* A new item for this entry alone. */
static struct item *
add_single(struct selection *selection, const struct restore_plan *plan,
    const struct manifest_entry *entry, enum item_phase phase,
    struct error *error)
{
	enum item_kind kind = entry->kind == MANIFEST_FOLDER ? ITEM_FOLDER :
	    entry->kind == MANIFEST_LINK ? ITEM_LINK : ITEM_FILE;

	return add_item(selection, plan, kind, phase, entry->path, error);
}

static int
add_checkpoint(struct selection *selection, const struct restore *restore,
    struct restore_plan *plan, const struct manifest *manifest,
    struct error *error)
{
	const struct manifest_entry *entry;
	size_t i, first = selection->part_count;
	bool tree = is_tree(restore, manifest);

	if (add_step(plan, manifest->name, error) == -1)
		return -1;
	if (tree && add_item(selection, plan, ITEM_TREE, PHASE_CHECKPOINT,
	    manifest->name, error) == NULL)
		return -1;
	for (i = 0; i < manifest->entry_count; i++) {
		entry = &manifest->entries[i];
		if (!tree && (!is_wanted(restore, entry->path) ||
		    is_taken(selection, entry->path)))
			continue;
		if (!tree && add_single(selection, plan, entry,
		    PHASE_CHECKPOINT, error) == NULL)
			return -1;
		if (add_entry(selection, plan, manifest, entry, tree, first,
		    error) == -1)
			return -1;
	}
	return 0;
}

/* How old a manifest is: the index in the truth, newest first. */
static size_t
age(const struct restore *restore, const struct manifest *manifest)
{
	size_t i;

	for (i = 0; i < restore->truth->count; i++)
		if (restore->truth->valid[i] == manifest)
			break;
	return i;
}

/* Of several versions of a name only one can have it: the last one wanted
 * (the resume point), else the newest. */
static bool
is_displaced(const struct restore *restore, size_t index)
{
	const struct manifest *one = restore->wanted[index], *other;
	size_t i;

	if (index + 1 == restore->wanted_count)
		return false;
	for (i = 0; i < restore->wanted_count; i++) {
		other = restore->wanted[i];
		if (i == index || strcmp(one->name, other->name) != 0)
			continue;
		if (i + 1 == restore->wanted_count ||
		    age(restore, other) < age(restore, one) ||
		    (other == one && i > index))
			return true;
	}
	return false;
}

/* Whose bytes entry ${index} of pointers or companions has. */
static const struct manifest_entry *
content_around(const struct manifest_entry *entries, size_t index)
{
	size_t i;

	if (entries[index].kind != MANIFEST_HARD_LINK)
		return entries[index].kind == MANIFEST_FILE ?
		    &entries[index] : NULL;
	for (i = 0; i < index; i++)
		if (entries[i].kind == MANIFEST_FILE &&
		    strcmp(entries[i].path, entries[index].target) == 0)
			return &entries[i];
	return NULL;
}

static int
add_around(struct selection *selection, const struct restore *restore,
    struct restore_plan *plan, const struct manifest *manifest,
    enum item_phase phase, struct error *error)
{
	bool pointers = phase == PHASE_POINTER;
	const struct manifest_entry *entries = pointers ?
	    manifest->pointers : manifest->companions;
	size_t i, count = pointers ?
	    manifest->pointer_count : manifest->companion_count;

	for (i = 0; i < count; i++) {
		if (!is_wanted(restore, entries[i].path) ||
		    is_taken(selection, entries[i].path))
			continue;
		if (add_step(plan, entries[i].path, error) == -1 ||
		    add_single(selection, plan, &entries[i], phase,
		    error) == NULL || add_part(selection, plan, manifest,
		    &entries[i], content_around(entries, i), SIZE_MAX,
		    error) == -1)
			return -1;
	}
	return 0;
}

struct selection *
selection_make(const struct restore *restore, struct restore_plan *plan,
    struct error *error)
{
	size_t i, last = restore->wanted_count;
	struct selection *selection;

	if ((selection = calloc(1, sizeof(*selection))) == NULL) {
		out_of_memory(error);
		return NULL;
	}
	for (i = 0; i < restore->wanted_count; i++)
		if (!is_displaced(restore, i) && add_checkpoint(selection,
		    restore, plan, restore->wanted[i], error) == -1)
			goto failed;
	if (restore->pointers && last > 0 && add_around(selection, restore,
	    plan, restore->wanted[last - 1], PHASE_POINTER, error) == -1)
		goto failed;
	if (restore->companions && restore->truth->count > 0 &&
	    add_around(selection, restore, plan, restore->truth->valid[0],
	    PHASE_COMPANION, error) == -1)
		goto failed;
	return selection;

failed:
	selection_free(selection);
	return NULL;
}

static int
compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **
selection_paths(const struct selection *selection, size_t first, size_t count,
    struct error *error)
{
	const char **paths;
	size_t i;

	if ((paths = calloc(count + 1, sizeof(*paths))) == NULL) {
		out_of_memory(error);
		return NULL;
	}
	for (i = 0; i < count; i++)
		paths[i] = selection->parts[first + i].entry->path;
	qsort(paths, count, sizeof(*paths), compare_paths);
	return paths;
}

bool
selection_has(const char *const *paths, size_t count, const char *path)
{
	return bsearch(&path, paths, count, sizeof(*paths),
	    compare_paths) != NULL;
}

int
selection_donor(struct selection *selection, const char *path,
    uint32_t *number, struct error *error)
{
	size_t count = selection->donor_count;
	char **donors;

	donors = realloc(selection->donors, (count + 1) * sizeof(*donors));
	if (donors == NULL)
		return out_of_memory(error);
	selection->donors = donors;
	if ((donors[count] = strdup(path)) == NULL)
		return out_of_memory(error);
	*number = (uint32_t)count;
	selection->donor_count++;
	return 0;
}

void
selection_free(struct selection *selection)
{
	size_t i;

	if (selection == NULL)
		return;
	for (i = 0; i < selection->part_count; i++)
		free(selection->parts[i].origins);
	for (i = 0; i < selection->donor_count; i++)
		free(selection->donors[i]);
	free(selection->donors);
	free(selection->parts);
	free(selection->items);
	free(selection);
}
