#include "move/around.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/source.h"
#include "format/checkpoint.h"
#include "store/manifest.h"
#include "store/manifest_paths.h"
#include "move/beneath.h"
#include "move/description.h"
#include "move/files.h"
#include "move/intake.h"
#include "move/sender.h"
#include "move/upload.h"

/* What is larger is no pointer. */
#define POINTER_MAXIMUM ((size_t)1 << 20)

/* One pointer or companion. */
struct neighbour {
	struct sender_extents extents;
	bool left_out;
	struct source_memory memory;	/* pointers: their bytes */
	struct source source;
	void *data;
};

struct around {
	struct upload *upload;
	struct surroundings *surroundings;	/* NULL: could not be seen */
	struct writer_directory directory;
	const char **names;		/* stands for what could not be seen */
	bool incomplete;		/* no memory for them all */
	struct files *files;		/* the companions */
	struct neighbour *pointers;
	struct neighbour *companions;
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
around_take(struct upload *upload, struct error *error)
{
	struct around *around;
	struct surroundings *seen;
	struct error failure = ERROR_INIT;

	if ((around = calloc(1, sizeof(*around))) == NULL)
		goto failed;
	around->upload = upload;
	seen = upload->look(upload->look_context, &failure);
	around->surroundings = seen;
	if (seen == NULL) {
		error_prefix(&failure, "pointers and companions are left out");
		log_failure(LOG_WARNING, "left_out", &failure);
		writer_valid(upload->writer, add_name, around);
		if (around->incomplete)
			goto failed;
		return around;
	}
	around->directory = (struct writer_directory){
		.present = (const char *const *)seen->present,
		.present_count = seen->present_count,
		.pointed = (const char *const *)seen->pointed,
		.pointed_count = seen->pointed_count
	};
	around->pointers = calloc(seen->pointer_count + 1,
	    sizeof(*around->pointers));
	around->companions = calloc(seen->companion_count + 1,
	    sizeof(*around->companions));
	if (around->pointers != NULL && around->companions != NULL)
		return around;

failed:
	around_free(around);
	out_of_memory(error);
	return NULL;
}

/* The whole pointer, as it is now, into memory. */
static int
read_pointer(struct around *around, struct checkpoint_entry *entry,
    struct neighbour *pointer, struct error *error)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	struct stat status;
	ssize_t length = -1;
	int fd;

	if (entry->follow)
		fd = openat(around->upload->folder, entry->path, flags);
	else
		fd = beneath_open(around->upload->folder, entry->path, flags,
		    0);
	if (fd != -1 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		pointer->data = malloc(POINTER_MAXIMUM + 1);
		if (pointer->data == NULL) {
			close(fd);
			return out_of_memory(error);
		}
		length = pread(fd, pointer->data, POINTER_MAXIMUM + 1, 0);
	}
	if (fd != -1)
		close(fd);
	if (length < 0 || (size_t)length > POINTER_MAXIMUM) {
		leave_out(pointer, entry->path, length < 0 ?
		    "it cannot be read" : "it is too large for a pointer");
		return 0;
	}
	entry->identity = identity_of(&status);
	entry->identity.size = (uint64_t)length;
	pointer->memory = (struct source_memory){
		.data = pointer->data, .length = (size_t)length
	};
	pointer->source = source_from_memory(&pointer->memory);
	return 0;
}

static int
send_pointer(struct sender *sender, struct neighbour *pointer,
    struct error *error)
{
	struct sender_piece piece = {
		.lane = SENDER_CHECKPOINT,
		.source = &pointer->source,
		.length = pointer->memory.length,
		.data = pointer->memory.data
	};

	if (piece.length == 0)
		return 0;
	sha256_of(piece.data, (size_t)piece.length, piece.digest);
	return sender_add(sender, &piece, &pointer->extents, error);
}

int
around_read_pointers(struct around *around, struct sender *sender,
    struct error *error)
{
	struct surroundings *seen = around->surroundings;
	size_t i;

	for (i = 0; seen != NULL && i < seen->pointer_count; i++) {
		if (seen->pointers[i].kind != ENTRY_FILE)
			continue;
		if (read_pointer(around, &seen->pointers[i],
		    &around->pointers[i], error) == -1)
			return -1;
		if (!around->pointers[i].left_out && send_pointer(sender,
		    &around->pointers[i], error) == -1)
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
	if (describe(seen->pointers, around->pointers, seen->pointer_count,
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

	for (i = 0; neighbours != NULL && i < count; i++) {
		free(neighbours[i].extents.all);
		free(neighbours[i].data);
	}
	free(neighbours);
}

void
around_free(struct around *around)
{
	if (around == NULL)
		return;
	if (around->surroundings != NULL) {
		free_neighbours(around->pointers,
		    around->surroundings->pointer_count);
		free_neighbours(around->companions,
		    around->surroundings->companion_count);
	}
	files_free(around->files);
	free(around->names);
	surroundings_free(around->surroundings);
	free(around);
}
