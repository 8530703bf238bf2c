#include "move/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "move/beneath.h"

static DIR *
open_at(int folder, const char *path)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	DIR *directory;
	int fd;

	fd = *path == '\0' ? openat(folder, ".", flags) :
	    beneath_open(folder, path, flags, 0);
	if (fd == -1)
		return NULL;
	if ((directory = fdopendir(fd)) == NULL)
		close(fd);
	return directory;
}

static int
visit_one(int folder, DIR *directory, const char *path, const char *name,
    walk_visit visit, void *context, struct error *error)
{
	struct stat status;
	char *whole;
	int result;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (fstatat(dirfd(directory), name, &status,
	    AT_SYMLINK_NOFOLLOW) == -1) {
		if (errno == ENOENT)
			return 0;
		return error_set_errno(error, errno, name,
		    "cannot look at it");
	}
	if ((whole = path_join(path, name)) == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	result = visit(context, whole, &status, error);
	if (result == 0 && S_ISDIR(status.st_mode))
		result = walk_beneath(folder, whole, visit, context, error);
	free(whole);
	return result == -1 ? -1 : 0;
}

int
walk_beneath(int folder, const char *path, walk_visit visit, void *context,
    struct error *error)
{
	struct dirent *entry;
	DIR *directory;
	int result = 0;

	if ((directory = open_at(folder, path)) == NULL) {
		if (errno == ENOENT)
			return 0;
		return error_set_errno(error, errno, path,
		    "cannot read the directory");
	}
	errno = 0;
	while (result == 0 && (entry = readdir(directory)) != NULL) {
		result = visit_one(folder, directory, path, entry->d_name,
		    visit, context, error);
		errno = 0;
	}
	if (result == 0 && errno != 0)
		result = error_set_errno(error, errno, path,
		    "cannot read the directory");
	closedir(directory);
	return result;
}
