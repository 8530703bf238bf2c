#include "watch/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "watch/map.h"
#include "watch/tree.h"

static void *
no_memory(struct error *error)
{
	error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory while looking at the directory");
	return NULL;
}

static int
entry_compare(const void *a, const void *b)
{
	return strcmp(((const struct checkpoint_entry *)a)->path,
	    ((const struct checkpoint_entry *)b)->path);
}

static int
fill_entry(struct checkpoint_entry *entry, const struct tree_node *node)
{
	static const enum entry_kind kinds[] = {
		[TREE_FILE] = ENTRY_FILE, [TREE_FOLDER] = ENTRY_FOLDER,
		[TREE_LINK] = ENTRY_LINK
	};

	*entry = (struct checkpoint_entry){ .kind = kinds[node->kind],
	    .mode = node->mode, .identity = node->identity,
	    .follow = node->follow, .path = strdup(node->path) };
	if (node->target != NULL)
		entry->target = strdup(node->target);
	return entry->path == NULL ||
	    (node->target != NULL && entry->target == NULL) ? -1 : 0;
}

static int
inode_compare(const void *a, const void *b)
{
	const struct checkpoint_entry *x =
	    *(const struct checkpoint_entry *const *)a;
	const struct checkpoint_entry *y =
	    *(const struct checkpoint_entry *const *)b;

	if (x->identity.device != y->identity.device)
		return x->identity.device < y->identity.device ? -1 : 1;
	if (x->identity.inode != y->identity.inode)
		return x->identity.inode < y->identity.inode ? -1 : 1;
	return (x > y) - (x < y);
}

/* Find the entries that are hard links of the same file. */
static int
find_twins(struct checkpoint_entry *entries, size_t count)
{
	struct checkpoint_entry **files = calloc(count + 1, sizeof(*files));
	size_t found = 0;

	if (files == NULL)
		return -1;
	for (size_t i = 0; i < count; i++) {
		entries[i].same_as = i;
		if (entries[i].kind == ENTRY_FILE && !entries[i].follow)
			files[found++] = &entries[i];
	}
	if (found > 0)
		qsort(files, found, sizeof(*files), inode_compare);
	for (size_t i = 1; i < found; i++) {
		if (files[i]->identity.device ==
		    files[i - 1]->identity.device &&
		    files[i]->identity.inode == files[i - 1]->identity.inode)
			files[i]->same_as = files[i - 1]->same_as;
	}
	free(files);
	return 0;
}

/*
 * Entries for ${count} nodes, which are ${nodes}[i] or, when that is NULL,
 * those of the pointers.  *${filled} says how many can be freed when it
 * fails.
 */
static struct checkpoint_entry *
make_entries(const struct map *map, const size_t *nodes, size_t count,
    size_t *filled)
{
	struct checkpoint_entry *entries = calloc(count + 1, sizeof(*entries));

	*filled = 0;
	if (entries == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t node = nodes != NULL ? nodes[i] :
		    map->pointers[i].node;

		*filled = i + 1;
		if (fill_entry(&entries[i], &map->tree->nodes[node]) != 0)
			return entries;
	}
	if (count > 0)
		qsort(entries, count, sizeof(*entries), entry_compare);
	if (find_twins(entries, count) == 0)
		*filled = count + 1;
	return entries;
}

/* The sum of its files and the time of the last change of any. */
static void
sum_up(struct checkpoint *checkpoint)
{
	for (size_t i = 0; i < checkpoint->entry_count; i++) {
		const struct checkpoint_entry *entry = &checkpoint->entries[i];
		const struct timespec *changed = &entry->identity.modified;
		struct timespec *last = &checkpoint->completed;

		if (entry->kind != ENTRY_FILE)
			continue;
		if (entry->same_as == i)
			checkpoint->size += entry->identity.size;
		if (changed->tv_sec > last->tv_sec ||
		    (changed->tv_sec == last->tv_sec &&
		    changed->tv_nsec > last->tv_nsec))
			*last = *changed;
	}
}

struct checkpoint *
record_checkpoint(const struct map *map, size_t unit, struct error *error)
{
	const struct unit *from = &map->units[unit];
	struct checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
	size_t filled;

	if (checkpoint == NULL)
		return no_memory(error);
	checkpoint->name = strdup(from->name);
	checkpoint->series = strdup(from->series.name);
	snprintf(checkpoint->layout, sizeof(checkpoint->layout), "%s",
	    from->layout->word);
	checkpoint->role = from->series.role;
	checkpoint->has_step = from->series.has_step;
	checkpoint->step = from->series.step;
	checkpoint->entries = make_entries(map, from->nodes, from->count,
	    &filled);
	checkpoint->entry_count = filled > from->count ? from->count : filled;
	if (checkpoint->name == NULL || checkpoint->series == NULL ||
	    filled != from->count + 1) {
		checkpoint_free(checkpoint);
		return no_memory(error);
	}
	sum_up(checkpoint);
	return checkpoint;
}

/* Names of the units that checkpoints are, or that pointers name. */
static int
fill_names(const struct map *map, bool pointed, char ***names, size_t *count)
{
	bool *named = calloc(map->unit_count + 1, sizeof(*named));

	*names = calloc(map->unit_count + 1, sizeof(**names));
	if (named == NULL || *names == NULL) {
		free(named);
		return -1;
	}
	for (size_t i = 0; i < map->pointer_count; i++) {
		if (map->pointers[i].unit < map->unit_count)
			named[map->pointers[i].unit] = true;
	}
	for (size_t i = 0; i < map->unit_count; i++) {
		if (map->units[i].layout->temporary || (pointed && !named[i]))
			continue;
		(*names)[*count] = strdup(map->units[i].name);
		if ((*names)[*count] == NULL) {
			free(named);
			return -1;
		}
		(*count)++;
	}
	free(named);
	return 0;
}

struct surroundings *
record_surroundings(const struct map *map, struct error *error)
{
	struct surroundings *made = calloc(1, sizeof(*made));
	size_t filled[2];

	if (made == NULL)
		return no_memory(error);
	made->companions = make_entries(map,
	    map->companions != NULL ? map->companions : &(size_t){ 0 },
	    map->companion_count, &filled[0]);
	made->companion_count = filled[0] > map->companion_count ?
	    map->companion_count : filled[0];
	made->pointers = make_entries(map, NULL, map->pointer_count,
	    &filled[1]);
	made->pointer_count = filled[1] > map->pointer_count ?
	    map->pointer_count : filled[1];
	if (filled[0] != map->companion_count + 1 ||
	    filled[1] != map->pointer_count + 1 ||
	    fill_names(map, true, &made->pointed, &made->pointed_count) != 0 ||
	    fill_names(map, false, &made->present, &made->present_count) != 0) {
		surroundings_free(made);
		return no_memory(error);
	}
	return made;
}
