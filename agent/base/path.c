#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/random.h"

char *
path_join(const char *folder, const char *name)
{
	size_t length = strlen(folder);
	char *path;

	if (folder[0] == '\0' || strcmp(folder, ".") == 0)
		return strdup(name);
	if (asprintf(&path, "%s%s%s", folder,
	    folder[length - 1] == '/' ? "" : "/", name) < 0)
		return NULL;
	return path;
}

bool
path_is_harmless(const char *path)
{
	size_t length = strlen(path);

	if (length == 0 || length > 4095)
		return false;
	for (;;) {
		size_t part = strcspn(path, "/");

		if (part == 0 || part > 255 ||
		    (part == 1 && path[0] == '.') ||
		    (part == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (path[part] == '\0')
			return true;
		path += part + 1;
	}
}

const char *
path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

bool
path_matches(const char *pattern, const char *path)
{
	return glob_matches(pattern, path);
}

/* Add the rest of an open file to ${buffer}. */
static int
read_rest(int fd, const char *path, struct buffer *buffer, struct error *error)
{
	char chunk[16384];

	for (;;) {
		ssize_t got = read(fd, chunk, sizeof(chunk));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_errno(error, errno, path,
			    "could not be read");
		if (got == 0)
			return 0;
		if (buffer_append(buffer, chunk, (size_t)got, error) != 0)
			return error_set(error, error->class, error->cause,
			    path, "is too large: %s", error->message);
	}
}

int
path_read_at(int folder_fd, const char *path, struct buffer *buffer,
    struct error *error)
{
	size_t before = buffer->length;
	int fd, result;

	/* A pipe in the place of a file must not block us. */
	fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY |
	    O_NONBLOCK);
	if (fd < 0)
		return error_set_errno(error, errno, path,
		    "could not be opened");
	result = read_rest(fd, path, buffer, error);
	close(fd);
	if (result != 0) {
		buffer->length = before;
		if (buffer->data != NULL)
			buffer->data[before] = '\0';
	}
	return result;
}

/* The folder that holds ${path}, in fresh memory. */
static char *
folder_of(const char *path)
{
	const char *base = path_base(path);

	if (base == path)
		return strdup(".");
	if (base == path + 1)
		return strdup("/");
	return strndup(path, (size_t)(base - path) - 1);
}

/* Fill a new file and bring it to the disk. */
static int
write_new(const char *path, const void *data, size_t length, mode_t mode,
    struct error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC |
	    O_NOFOLLOW, mode);

	if (fd < 0)
		return error_set_errno(error, errno, path,
		    "could not be made");
	if (path_write_all(fd, data, length) != 0 || fsync(fd) != 0) {
		error_set_errno(error, errno, path, "could not be written");
		close(fd);
		goto remove;
	}
	if (close(fd) != 0) {
		error_set_errno(error, errno, path, "could not be written");
		goto remove;
	}
	return 0;

remove:
	(void)unlink(path);
	return -1;
}

int
path_write(const char *path, const void *data, size_t length, mode_t mode,
    struct error *error)
{
	char *folder = folder_of(path), *fresh = NULL;
	int result = -1;

	if (folder == NULL || asprintf(&fresh, "%s/.ckptsync-%016jx.tmp",
	    folder, (uintmax_t)random_bits()) < 0) {
		fresh = NULL;
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, path,
		    "out of memory");
		goto done;
	}
	if (write_new(fresh, data, length, mode, error) != 0)
		goto done;
	if (rename(fresh, path) != 0) {
		error_set_errno(error, errno, path, "could not be replaced");
		(void)unlink(fresh);
		goto done;
	}
	result = path_sync_folder(folder, error);

done:
	free(fresh);
	free(folder);
	return result;
}

static int
make_folder(const char *path, mode_t mode, struct error *error)
{
	struct stat status;
	int number;

	if (mkdir(path, mode) == 0)
		return 0;

	/*
	 * Not only EEXIST: a read-only or automounted parent has answers of
	 * its own for what is there already.
	 */
	number = errno;
	if (stat(path, &status) == 0) {
		if (S_ISDIR(status.st_mode))
			return 0;
		number = ENOTDIR;
	}
	return error_set_errno(error, number, path,
	    "the folder could not be made");
}

int
path_make_folders(const char *path, mode_t mode, struct error *error)
{
	char *parent = strdup(path);
	int result = 0;

	if (parent == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, path,
		    "out of memory");
	for (char *slash = parent; result == 0;) {
		slash += strspn(slash, "/");
		slash += strcspn(slash, "/");
		if (slash[0] == '\0' || slash[strspn(slash, "/")] == '\0')
			break;
		slash[0] = '\0';

		/* What is made beneath needs this, as with mkdir -p. */
		result = make_folder(parent, mode | S_IWUSR | S_IXUSR, error);
		slash[0] = '/';
	}
	if (result == 0)
		result = make_folder(path, mode, error);
	free(parent);
	return result;
}

/*
 * How deep path_remove_tree holds folders open.  What lies deeper is first
 * moved up to the top, so that a deep tree needs no more descriptors and no
 * "..", which somebody else could bend meanwhile.
 */
#define REMOVE_DEPTH 32

struct removal {
	const char *path;
	int top;		/* the folder at the path */
	uint64_t moved;		/* how many were moved up */
	struct error *error;
};

static int
removal_failed(struct removal *removal, const char *name)
{
	return error_set_errno(removal->error, errno, removal->path,
	    "%s could not be removed", name);
}

static DIR *
open_folder(int folder_fd, const char *name)
{
	int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
	DIR *folder;

	if (fd < 0)
		return NULL;
	folder = fdopendir(fd);
	if (folder == NULL)
		close(fd);
	return folder;
}

static int remove_beneath(struct removal *removal, DIR *folder, int depth);

/* Remove one name in the folder ${fd}, whatever it is. */
static int
remove_entry(struct removal *removal, int fd, const char *name, int depth)
{
	char above[64];
	DIR *folder;
	int result;

	/* Linux says EISDIR for a folder, POSIX allows EPERM. */
	if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return removal_failed(removal, name);
	if (unlinkat(fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno == ENOTDIR)
		errno = EPERM;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return removal_failed(removal, name);

	if (depth >= REMOVE_DEPTH) {
		snprintf(above, sizeof(above), ".ckptsync-remove-%016jx",
		    (uintmax_t)random_bits());
		if (renameat(fd, name, removal->top, above) != 0)
			return removal_failed(removal, name);
		removal->moved++;
		return 0;
	}
	folder = open_folder(fd, name);
	if (folder == NULL)
		return errno == ENOENT ? 0 : removal_failed(removal, name);
	result = remove_beneath(removal, folder, depth + 1);
	closedir(folder);
	if (result == 0 && unlinkat(fd, name, AT_REMOVEDIR) != 0 &&
	    errno != ENOENT)
		return removal_failed(removal, name);
	return result;
}

static int
remove_beneath(struct removal *removal, DIR *folder, int depth)
{
	for (;;) {
		struct dirent *entry;

		errno = 0;
		entry = readdir(folder);
		if (entry == NULL)
			return errno == 0 ? 0 : removal_failed(removal,
			    "what is beneath");
		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		if (remove_entry(removal, dirfd(folder), entry->d_name,
		    depth) != 0)
			return -1;
	}
}

/* Empty the folder; what was moved up into it meanwhile needs another round. */
static int
remove_all_beneath(struct removal *removal, DIR *folder)
{
	uint64_t before;

	do {
		before = removal->moved;
		rewinddir(folder);
		if (remove_beneath(removal, folder, 1) != 0)
			return -1;
	} while (removal->moved != before);
	return 0;
}

int
path_remove_tree(int folder_fd, const char *path, struct error *error)
{
	struct removal removal = { .path = path, .error = error };
	DIR *folder;
	int result;

	if (unlinkat(folder_fd, path, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return error_set_errno(error, errno, path,
		    "could not be removed");
	folder = open_folder(folder_fd, path);
	if (folder == NULL)
		return errno == ENOENT ? 0 : error_set_errno(error,
		    errno == ENOTDIR ? EPERM : errno, path,
		    "could not be removed");
	removal.top = dirfd(folder);
	result = remove_all_beneath(&removal, folder);
	closedir(folder);
	if (result == 0 && unlinkat(folder_fd, path, AT_REMOVEDIR) != 0 &&
	    errno != ENOENT)
		return error_set_errno(error, errno, path,
		    "could not be removed");
	return result;
}

int
path_sync_folder(const char *path, struct error *error)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = 0;

	if (fd < 0)
		return error_set_errno(error, errno, path,
		    "could not be opened");

	/* Some file systems cannot sync a folder and say EINVAL: fsync(2). */
	if (fsync(fd) != 0 && errno != EINVAL)
		result = error_set_errno(error, errno, path,
		    "could not be brought to the disk");
	close(fd);
	return result;
}

int
path_write_all(int fd, const void *data, size_t length)
{
	const char *from = data;

	while (length > 0) {
		ssize_t wrote = write(fd, from, length);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote == 0)
			errno = EIO;
		if (wrote <= 0)
			return -1;
		from += wrote;
		length -= (size_t)wrote;
	}
	return 0;
}

int
path_write_all_at(int fd, const void *data, size_t length, off_t offset)
{
	const char *from = data;

	while (length > 0) {
		ssize_t wrote = pwrite(fd, from, length, offset);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote == 0)
			errno = EIO;
		if (wrote <= 0)
			return -1;
		from += wrote;
		offset += wrote;
		length -= (size_t)wrote;
	}
	return 0;
}
