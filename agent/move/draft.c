#include "move/draft.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "base/random.h"

struct draft {
	char *path;
	char *folder;
	char *name;		/* a temporary one; NULL: it has none */
	int fd;
};

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

static char *
folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* A name in ${folder} that nobody has; NULL when out of memory. */
static char *
make_name(const char *folder)
{
	char name[64];

	snprintf(name, sizeof(name), ".ckptsync-weights-%016" PRIx64,
	    random_bits());
	return path_join(folder, name);
}

/* Whether the file system only lacks O_TMPFILE (open(2)). */
static bool
has_no_tmpfile(int number)
{
	return number == EOPNOTSUPP || number == EISDIR || number == ENOENT ||
	    number == EINVAL;
}

/* Open a file without a name, or with *${name} where that cannot be. */
static int
open_nameless(const char *path, const char *folder, char **name,
    struct error *error)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);

	*name = NULL;
	if (fd >= 0)
		return fd;
	if (!has_no_tmpfile(errno) || access(folder, F_OK) != 0)
		return error_set_errno(error, errno, path,
		    "cannot make a file beside it");
	if ((*name = make_name(folder)) == NULL)
		return out_of_memory(error);
	fd = open(*name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
	    0666);
	if (fd >= 0)
		return fd;
	error_set_errno(error, errno, path, "cannot make a file beside it");
	free(*name);
	*name = NULL;
	return -1;
}

int
draft_scratch(const char *path, struct error *error)
{
	char *folder = folder_of(path), *name = NULL;
	int fd;

	if (folder == NULL)
		return out_of_memory(error);
	fd = open_nameless(path, folder, &name, error);
	if (name != NULL) {
		(void)unlink(name);
		free(name);
	}
	free(folder);
	return fd;
}

struct draft *
draft_new(const char *path, struct error *error)
{
	struct draft *draft = calloc(1, sizeof(*draft));

	if (draft == NULL) {
		out_of_memory(error);
		return NULL;
	}
	draft->fd = -1;
	draft->path = strdup(path);
	draft->folder = folder_of(path);
	if (draft->path == NULL || draft->folder == NULL) {
		out_of_memory(error);
		draft_free(draft);
		return NULL;
	}
	draft->fd = open_nameless(path, draft->folder, &draft->name, error);
	if (draft->fd < 0) {
		draft_free(draft);
		return NULL;
	}
	return draft;
}

int
draft_reserve(struct draft *draft, uint64_t size, struct error *error)
{
	if (size > INT64_MAX)
		return error_set(error, ERROR_FAILED, CAUSE_LIMIT,
		    draft->path, "it would be too large for any file");
	if (size == 0)
		return 0;
	if (fallocate(draft->fd, 0, 0, (off_t)size) == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR)
		return error_set_errno(error, errno, draft->path,
		    "cannot make a file of %" PRIu64 " bytes", size);
	if (ftruncate(draft->fd, (off_t)size) != 0)
		return error_set_errno(error, errno, draft->path,
		    "cannot make a file of %" PRIu64 " bytes", size);
	return 0;
}

int
draft_fd(const struct draft *draft)
{
	return draft->fd;
}

/* Give the nameless file the name ${name}; -1 with errno. */
static int
link_to(const struct draft *draft, const char *name)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", draft->fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Rename what has a temporary name. */
static int
rename_to(struct draft *draft, bool replace)
{
	if (replace) {
		if (rename(draft->name, draft->path) != 0)
			return -1;
	} else if (link(draft->name, draft->path) == 0) {
		(void)unlink(draft->name);
	} else if (errno != EPERM && errno != EOPNOTSUPP) {
		return -1;
	/* No hard links here (FAT, some FUSE). */
	} else if (renameat2(AT_FDCWD, draft->name, AT_FDCWD, draft->path,
	    RENAME_NOREPLACE) != 0) {
		return -1;
	}
	free(draft->name);
	draft->name = NULL;
	return 0;
}

int
draft_publish(struct draft *draft, bool replace, struct error *error)
{
	int result;

	if (fsync(draft->fd) != 0)
		return error_set_errno(error, errno, draft->path,
		    "cannot write it to the disk");
	if (draft->name == NULL) {
		result = link_to(draft, draft->path);
		if (result != 0 && errno == EEXIST && replace) {
			draft->name = make_name(draft->folder);
			if (draft->name == NULL)
				return out_of_memory(error);
			result = link_to(draft, draft->name);
			if (result == 0)
				result = rename_to(draft, true);
		}
	} else {
		result = rename_to(draft, replace);
	}
	if (result != 0) {
		error_set_errno(error, errno, draft->path, "cannot name it");
		if (error->cause == CAUSE_EXISTS)
			error_cure(error, "--force replaces it");
		return -1;
	}
	return path_sync_folder(draft->folder, error);
}

void
draft_free(struct draft *draft)
{
	if (draft == NULL)
		return;
	if (draft->fd >= 0)
		close(draft->fd);
	if (draft->name != NULL)
		(void)unlink(draft->name);
	free(draft->name);
	free(draft->folder);
	free(draft->path);
	free(draft);
}
