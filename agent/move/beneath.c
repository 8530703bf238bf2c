#include "move/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/path.h"

#define WAY_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Component by component; *${last} is the final one, inside ${path}. */
static int
walk(int folder, const char *path, bool make, const char **last)
{
	char name[NAME_MAX + 1];
	const char *slash;
	int current, next, number;

	if ((current = openat(folder, ".", WAY_FLAGS)) == -1)
		return -1;
	while ((slash = strchr(path, '/')) != NULL) {
		memcpy(name, path, (size_t)(slash - path));
		name[slash - path] = '\0';
		if (make && mkdirat(current, name, 0777) == -1 &&
		    errno != EEXIST)
			goto failed;
		if ((next = openat(current, name, WAY_FLAGS)) == -1)
			goto failed;
		close(current);
		current = next;
		path = slash + 1;
	}
	*last = path;
	return current;

failed:
	number = errno;
	close(current);
	errno = number;
	return -1;
}

static int
open_by_walk(int folder, const char *path, int flags, mode_t mode)
{
	const char *last;
	int parent, fd, number;

	if ((parent = walk(folder, path, false, &last)) == -1)
		return -1;
	fd = openat(parent, last, flags, mode);
	number = errno;
	close(parent);
	errno = number;
	return fd;
}

int
beneath_open(int folder, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS
	};
	long fd;

	if (!path_is_harmless(path)) {
		errno = EINVAL;
		return -1;
	}
	flags |= O_CLOEXEC | O_NOFOLLOW;
	how.flags = (uint64_t)flags;
	/* A mode without the wish to create is refused by openat2. */
	how.mode = (flags & O_CREAT) != 0 ? mode : 0;
	fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
	/* Before Linux 5.6, or a container's filter that does not know it. */
	if (fd == -1 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN))
		return open_by_walk(folder, path, flags, mode);
	return (int)fd;
}

int
beneath_parent(int folder, const char *path, bool make)
{
	const char *last;

	if (!path_is_harmless(path)) {
		errno = EINVAL;
		return -1;
	}
	return walk(folder, path, make, &last);
}

int
beneath_status(int folder, const char *path, struct stat *status)
{
	int parent, result, number;

	if ((parent = beneath_parent(folder, path, false)) == -1)
		return -1;
	result = fstatat(parent, path_base(path), status, AT_SYMLINK_NOFOLLOW);
	number = errno;
	close(parent);
	errno = number;
	return result;
}

char *
beneath_link(int folder, const char *path)
{
	char target[PATH_MAX];
	ssize_t length;
	int parent, number;

	if ((parent = beneath_parent(folder, path, false)) == -1)
		return NULL;
	length = readlinkat(parent, path_base(path), target,
	    sizeof(target) - 1);
	number = errno;
	close(parent);
	errno = number;
	if (length == -1)
		return NULL;
	target[length] = '\0';
	return strdup(target);
}
