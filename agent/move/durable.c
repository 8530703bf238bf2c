#include "move/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "move/beneath.h"

/* Fewer are quicker one by one: syncfs waits for all that others wrote too. */
#define MANY 64

/*
 * Linux tells the caller of syncfs of a write that failed since 5.8
 * (syncfs(2)); before, only fsync of the file itself tells.
 */
static bool
flush_tells(void)
{
	struct utsname name;
	unsigned major, minor;

	return uname(&name) == 0 &&
	    sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	    (major > 5 || (major == 5 && minor >= 8));
}

/*
 * On these syncfs writes all data, then all metadata (on the first four by
 * committing the journal or log, or by a checkpoint), and flushes the disk's
 * cache before it returns: what fsync of each file and folder does, once for
 * all.  FUSE sends no file of it to its server; others are not known so well.
 */
static bool
flush_is_strong(int folder)
{
	struct statfs status;

	if (fstatfs(folder, &status) != 0)
		return false;
	switch ((unsigned long)status.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return true;
	default:
		return false;
	}
}

bool
durable_at_once(int folder, size_t count)
{
	return count > MANY && flush_is_strong(folder) && flush_tells();
}

int
durable_flush(int folder)
{
	return syncfs(folder);
}

static int
add(struct durable_folders *folders, const char *path, size_t length,
    struct error *error)
{
	size_t capacity = folders->capacity * 2 + 16;
	struct durable_folder *rows;

	if (folders->count == folders->capacity) {
		rows = realloc(folders->rows, capacity * sizeof(*rows));
		if (rows == NULL)
			return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
			    NULL, "out of memory");
		folders->rows = rows;
		folders->capacity = capacity;
	}
	folders->rows[folders->count++] =
	    (struct durable_folder){ path, length };
	return 0;
}

static int
by_path(const void *a, const void *b)
{
	const struct durable_folder *left = a, *right = b;
	size_t shared = left->length < right->length ? left->length :
	    right->length;
	int order = memcmp(left->path, right->path, shared);

	if (order != 0)
		return order;
	return (left->length > right->length) - (left->length < right->length);
}

int
durable_note(struct durable_folders *folders, const char *path,
    struct error *error)
{
	const struct durable_folder *last;
	const char *slash = strrchr(path, '/');
	struct durable_folder folder = { path,
	    slash != NULL ? (size_t)(slash - path) : 0 };

	/* Most lie where the one before them lies. */
	if (folders->count > 0) {
		last = &folders->rows[folders->count - 1];
		if (by_path(last, &folder) == 0)
			return 0;
	}
	/* From the top down, so that the last is the one that holds it. */
	if (add(folders, path, 0, error) == -1)
		return -1;
	for (slash = strchr(path, '/'); slash != NULL;
	    slash = strchr(slash + 1, '/'))
		if (add(folders, path, (size_t)(slash - path), error) == -1)
			return -1;
	return 0;
}

/* Sort them and leave each once. */
static void
unite(struct durable_folders *folders)
{
	size_t i, kept = 0;

	if (folders->count > 0)
		qsort(folders->rows, folders->count, sizeof(*folders->rows),
		    by_path);
	for (i = 0; i < folders->count; i++)
		if (i == 0 || by_path(&folders->rows[kept - 1],
		    &folders->rows[i]) != 0)
			folders->rows[kept++] = folders->rows[i];
	folders->count = kept;
}

/* Return 0 or a number of errno. */
static int
sync_folder(const struct durable_folder *folder, int top)
{
	char *path = strndup(folder->path, folder->length);
	int fd, number = 0;

	if (path == NULL)
		return ENOMEM;
	fd = folder->length == 0 ?
	    openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) :
	    beneath_open(top, path, O_RDONLY | O_DIRECTORY, 0);
	/* Some file systems have nothing to say about directories; one that
	 * may be written and not be read cannot be asked alone. */
	if (fd == -1 ? errno != EACCES || durable_flush(top) == -1 :
	    fsync(fd) == -1 && errno != EINVAL)
		number = errno;
	if (fd != -1)
		close(fd);
	free(path);
	return number;
}

int
durable_sync(struct durable_folders *folders, int top, struct error *error)
{
	const struct durable_folder *folder;
	size_t i;
	int number;

	unite(folders);
	if (durable_at_once(top, folders->count)) {
		if (durable_flush(top) == -1)
			return error_set_errno(error, errno, NULL,
			    "cannot make it durable on this disk");
		folders->count = 0;
	}
	for (i = 0; i < folders->count; i++) {
		folder = &folders->rows[i];
		if ((number = sync_folder(folder, top)) != 0)
			return error_set_errno(error, number, folder->path,
			    "cannot make it durable on this disk");
	}
	folders->count = 0;
	return 0;
}

void
durable_free(struct durable_folders *folders)
{
	free(folders->rows);
	*folders = (struct durable_folders){ 0 };
}
