#include "move/around.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "format/checkpoint.h"
#include "store/manifest.h"
#include "store/manifest_paths.h"
#include "move/description.h"
#include "move/files.h"
#include "move/intake.h"
#include "move/pointer.h"
#include "move/sender.h"
#include "move/upload.h"

/* One pointer or companion. */
struct neighbour {
	struct sender_extents extents;
	bool left_out;
};

struct around {
	struct upload *upload;
	struct pointers early;		/* when the upload began */
	struct pointers late;		/* at the commit; some from early */
	struct surroundings *surroundings;	/* NULL: could not be seen */
	struct writer_directory directory;
	const char **names;		/* stands for what could not be seen */
	bool incomplete;		/* no memory for them all */
	struct files *files;		/* the companions */
	struct neighbour *pointers;	/* one for each of late */
	struct neighbour *companions;
	struct checkpoint_entry *entries;	/* of late, for describe */
};

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

static void
leave_out(struct neighbour *neighbour, const char *path, const char *why)
{
	neighbour->left_out = true;
	log_line(LOG_WARNING, "left_out", "%s is left out of this commit: %s",
	    path, why);
}

static int
add_name(void *context, const struct manifest *manifest, bool adopted,
    bool resume)
{
	struct around *around = context;
	size_t count = around->directory.present_count;
	const char **names;

	(void)adopted;
	(void)resume;
	names = realloc(around->names, (count + 1) * sizeof(*names));
	if (names == NULL) {
		around->incomplete = true;
		return -1;
	}
	names[count] = manifest->name;
	around->names = names;
	around->directory.present = names;
	around->directory.present_count = count + 1;
	return 0;
}

struct around *
around_new(struct upload *upload, struct error *error)
{
	struct error trouble = ERROR_INIT;
	struct surroundings *seen;
	struct around *around;
	int result = 0;

	if ((around = calloc(1, sizeof(*around))) == NULL) {
		out_of_memory(error);
		return NULL;
	}
	around->upload = upload;
	/* A look that fails now is tried again at the commit. */
	seen = upload->look(upload->look_context, &trouble);
	if (seen != NULL)
		result = pointer_read_all(upload->folder, seen, LOG_DEBUG,
		    &around->early, error);
	surroundings_free(seen);
	if (result == 0)
		return around;
	around_free(around);
	return NULL;
}

/* Nothing can be seen: nothing is recorded, and all that is valid stays. */
static int
take_blindly(struct around *around, struct error *failure,
    struct error *error)
{
	error_prefix(failure, "pointers and companions are left out");
	log_failure(LOG_WARNING, "left_out", failure);
	writer_valid(around->upload->writer, add_name, around);
	return around->incomplete ? out_of_memory(error) : 0;
}

int
around_take(struct around *around, struct error *error)
{
	struct error failure = ERROR_INIT;
	struct surroundings *seen;

	seen = around->upload->look(around->upload->look_context, &failure);
	around->surroundings = seen;
	if (seen == NULL)
		return take_blindly(around, &failure, error);
	around->directory = (struct writer_directory){
		.present = (const char *const *)seen->present,
		.present_count = seen->present_count,
		.pointed = (const char *const *)seen->pointed,
		.pointed_count = seen->pointed_count
	};
	around->pointers = calloc(seen->pointer_count + 1,
	    sizeof(*around->pointers));
	around->entries = calloc(seen->pointer_count + 1,
	    sizeof(*around->entries));
	around->companions = calloc(seen->companion_count + 1,
	    sizeof(*around->companions));
	if (around->pointers == NULL || around->entries == NULL ||
	    around->companions == NULL)
		return out_of_memory(error);
	return pointer_read_all(around->upload->folder, seen, LOG_WARNING,
	    &around->late, error);
}

/* Which version of a pointer belongs to this checkpoint (pointer.h). */
static const struct pointer *
choose(const struct around *around, const struct pointer *late)
{
	const struct pointer *early;

	if (pointer_names(late, around->upload->checkpoint))
		return late;
	early = pointer_find(&around->early, late->entry.path);
	if (early != NULL && pointer_names(early, around->upload->checkpoint))
		return early;
	return late;
}

int
around_read_pointers(struct around *around, struct sender *sender,
    struct error *error)
{
	const struct pointer *pointer;
	struct sender_piece piece;
	size_t i;

	for (i = 0; i < around->late.count; i++) {
		pointer = choose(around, &around->late.all[i]);
		around->entries[i] = pointer->entry;
		if (pointer->entry.kind != ENTRY_FILE ||
		    pointer->memory.length == 0)
			continue;
		piece = (struct sender_piece){
			.lane = SENDER_CHECKPOINT,
			.source = &pointer->source,
			.length = pointer->memory.length,
			.data = pointer->data
		};
		sha256_of(piece.data, (size_t)piece.length, piece.digest);
		if (sender_add(sender, &piece, &around->pointers[i].extents,
		    error) == -1)
			return -1;
	}
	return 0;
}

static int
read_companion(struct around *around, size_t i, struct intake *intake,
    struct sender *sender, struct error *error)
{
	const struct checkpoint_entry *entry =
	    &around->surroundings->companions[i];
	struct neighbour *companion = &around->companions[i];
	struct error trouble = ERROR_INIT;

	if (entry->identity.size > around->upload->companion_limit) {
		/* It stays so at every commit: not worth a line each. */
		log_line(LOG_DEBUG, "left_out",
		    "%s is larger than --companions allows", entry->path);
		companion->left_out = true;
		return 0;
	}
	if (intake_companion(intake, around->files, entry->same_as,
	    &companion->extents, &trouble) == 0)
		return 0;
	if (trouble.cause == CAUSE_MEMORY ||
	    sender_check(sender, error) == -1) {
		if (trouble.cause == CAUSE_MEMORY)
			*error = trouble;
		return -1;
	}
	leave_out(companion, entry->path, trouble.message);
	return 0;
}

int
around_read_companions(struct around *around, struct intake *intake,
    struct sender *sender, struct error *error)
{
	struct surroundings *seen = around->surroundings;
	size_t i;

	if (seen == NULL || around->upload->companion_limit == 0)
		return 0;
	around->files = files_open(around->upload->folder, seen->companions,
	    seen->companion_count, FILES_GROWING, error);
	if (around->files == NULL)
		return -1;
	for (i = 0; i < seen->companion_count; i++)
		if (seen->companions[i].kind == ENTRY_FILE &&
		    read_companion(around, i, intake, sender, error) == -1)
			return -1;
	return 0;
}

/* Whether ${path} is ${above} or lies beneath it. */
static bool
is_beneath(const char *path, const char *above)
{
	size_t length = strlen(above);

	return strncmp(path, above, length) == 0 &&
	    (path[length] == '\0' || path[length] == '/');
}

/* A manifest has each path once and nothing beneath a file or link; the
 * directory may have changed between two looks. */
static bool
collides(const struct manifest_entry *entries, size_t count, const char *path)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (is_beneath(entries[i].path, path) ||
		    (entries[i].kind != MANIFEST_FOLDER &&
		    is_beneath(path, entries[i].path)))
			return true;
	return false;
}

static int
describe(const struct checkpoint_entry *from, struct neighbour *neighbours,
    size_t count, const struct sender *sender, struct manifest *manifest,
    struct manifest_entry **list, size_t *list_count, struct error *error)
{
	size_t i;

	if (count == 0)
		return 0;
	if ((*list = calloc(count, sizeof(**list))) == NULL)
		return out_of_memory(error);
	for (i = 0; i < count; i++) {
		if (neighbours[i].left_out ||
		    collides(manifest->entries, manifest->entry_count,
		    from[i].path) ||
		    collides(manifest->pointers, manifest->pointer_count,
		    from[i].path) ||
		    collides(manifest->companions, manifest->companion_count,
		    from[i].path))
			continue;
		if (sender_lost(sender, &neighbours[i].extents)) {
			leave_out(&neighbours[i], from[i].path,
			    "it changed while it was read");
			continue;
		}
		if (description_entry(&(*list)[(*list_count)++], &from[i],
		    &neighbours[i].extents, error) == -1)
			return -1;
	}
	return 0;
}

static void
drop(struct manifest_entry **list, size_t *count)
{
	size_t i;

	for (i = 0; i < *count; i++) {
		free((*list)[i].path);
		free((*list)[i].target);
		free((*list)[i].extents);
	}
	free(*list);
	*list = NULL;
	*count = 0;
}

int
around_describe(struct around *around, const struct sender *sender,
    struct manifest *manifest, struct error *error)
{
	struct surroundings *seen = around->surroundings;
	struct error trouble = ERROR_INIT;

	if (seen == NULL)
		return 0;
	if (describe(around->entries, around->pointers, around->late.count,
	    sender, manifest, &manifest->pointers, &manifest->pointer_count,
	    error) == -1)
		return -1;
	if (around->upload->companion_limit > 0 && describe(seen->companions,
	    around->companions, seen->companion_count, sender, manifest,
	    &manifest->companions, &manifest->companion_count, error) == -1)
		return -1;
	if (manifest_paths_check(manifest, manifest->name, &trouble) == 0)
		return 0;
	/* Whatever is strange about them, the checkpoint is committed. */
	error_prefix(&trouble, "pointers and companions are left out");
	log_failure(LOG_WARNING, "left_out", &trouble);
	drop(&manifest->pointers, &manifest->pointer_count);
	drop(&manifest->companions, &manifest->companion_count);
	return 0;
}

const struct writer_directory *
around_directory(const struct around *around)
{
	return &around->directory;
}

static void
free_neighbours(struct neighbour *neighbours, size_t count)
{
	size_t i;

	for (i = 0; neighbours != NULL && i < count; i++)
		free(neighbours[i].extents.all);
	free(neighbours);
}

void
around_free(struct around *around)
{
	if (around == NULL)
		return;
	free_neighbours(around->pointers, around->late.count);
	if (around->surroundings != NULL)
		free_neighbours(around->companions,
		    around->surroundings->companion_count);
	free(around->entries);
	pointer_free_all(&around->early);
	pointer_free_all(&around->late);
	files_free(around->files);
	free(around->names);
	surroundings_free(around->surroundings);
	free(around);
}
