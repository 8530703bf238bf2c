#include "store/file_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* How often an open may contradict what the folder lists. */
#define OPEN_ATTEMPTS 5

int
file_path_failure(struct error *error, int number, const char *path,
    const char *what)
{
	error_set_errno(error, number, path, "%s", what);
	switch (number) {
	case EIO:
	case ESTALE:
	case ETIMEDOUT:
	case EAGAIN:
	case ENOTCONN:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case EREMOTEIO:
		error->cause = CAUSE_UNREACHABLE;
		break;
	}
	return -1;
}

static bool
is_usable(const char *key)
{
	const char *c;

	if (strlen(key) >= KEY_SIZE)
		return false;
	for (c = key; *c != '\0'; c++) {
		bool begins = c == key || c[-1] == '/';

		if (*c == '/' ? begins || c[1] == '\0' :
		    *c == '.' ? begins :
		    !(*c >= 'a' && *c <= 'z') && !(*c >= '0' && *c <= '9') &&
		    *c != '-')
			return false;
	}
	return *key != '\0';
}

int
file_path_of(const char *key, char path[FILE_PATH_SIZE], struct error *error)
{
	struct key_parts parts;
	size_t folder;

	if (!is_usable(key))
		return error_set(error, ERROR_FAILED, CAUSE_OTHER, key,
		    "is not a key that can be a file");
	key_parse(key, &parts);
	if (parts.kind != KEY_CHUNK) {
		strcpy(path, key);
		return 0;
	}
	folder = strlen(key) - (SHA256_HEX_SIZE - 1);
	snprintf(path, FILE_PATH_SIZE, "%.*s%.2s/%s", (int)folder, key,
	    key + folder, key + folder);
	return 0;
}

char *
file_path_parent(const char *path, char parent[FILE_PATH_SIZE])
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return strcpy(parent, ".");
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	return parent;
}

bool
file_path_holds_chunks(const char *path)
{
	char key[FILE_PATH_SIZE + SHA256_HEX_SIZE];
	struct key_parts parts;

	snprintf(key, sizeof(key), "%s/%064d", path, 0);
	key_parse(key, &parts);
	return parts.kind == KEY_CHUNK;
}

int
file_path_make_parents(int root, const char *path, struct error *error)
{
	char folder[FILE_PATH_SIZE];
	const char *slash;

	for (slash = strchr(path, '/'); slash != NULL;
	    slash = strchr(slash + 1, '/')) {
		memcpy(folder, path, (size_t)(slash - path));
		folder[slash - path] = '\0';
		if (mkdirat(root, folder, 0777) != 0 && errno != EEXIST)
			return file_path_failure(error, errno, folder,
			    "making the folder");
	}
	return 0;
}

/* Whether the folder ${fd} (taken over) lists ${name}: 1, 0, or -1 and errno. */
static int
lists(int fd, const char *name, size_t length)
{
	DIR *folder = fdopendir(fd);
	struct dirent *entry;
	int result = 0, saved;

	if (folder == NULL) {
		saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	for (errno = 0; (entry = readdir(folder)) != NULL; errno = 0) {
		if (strncmp(entry->d_name, name, length) == 0 &&
		    entry->d_name[length] == '\0') {
			result = 1;
			break;
		}
	}
	saved = errno;
	if (entry == NULL && saved != 0)
		result = -1;
	closedir(folder);
	errno = saved;
	return result;
}

int
file_path_check_root(int root, struct error *error)
{
	struct stat status;

	/* A removed folder that is still open reads as an empty one. */
	if (fstat(root, &status) != 0)
		return file_path_failure(error, errno, NULL,
		    "looking at the store's folder");
	return status.st_nlink > 0 ? 0 : error_set(error, ERROR_FAILED,
	    CAUSE_UNREACHABLE, NULL, "the store's folder was removed");
}

int
file_path_is_absent(int root, const char *path, struct error *error)
{
	char folder[FILE_PATH_SIZE] = ".";
	size_t start = 0, length;
	int fd, found;

	for (;; start += length + 1) {
		length = strcspn(path + start, "/");
		fd = openat(root, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		found = fd < 0 ? -1 : lists(fd, path + start, length);
		if (found == 0)
			return file_path_check_root(root, error) == 0 ? 1 : -1;
		if (found < 0 && errno == ENOTDIR)
			return 1;	/* nothing lies beneath a file */
		if (found < 0 && errno == ENOENT && start > 0)
			return 0;	/* listed a moment ago: look again */
		if (found < 0)
			return file_path_failure(error, errno, folder,
			    "reading the folder");
		if (path[start + length] == '\0')
			return 0;
		memcpy(folder, path, start + length);
		folder[start + length] = '\0';
	}
}

int
file_path_open(int root, const char *path, int flags, struct error *error)
{
	int attempt, fd, absent;

	for (attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
		fd = openat(root, path, flags | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0)
			return fd;
		if (errno != ENOENT && errno != ENOTDIR)
			return file_path_failure(error, errno, path,
			    "opening");
		absent = file_path_is_absent(root, path, error);
		if (absent < 0)
			return -1;
		if (absent)
			return error_set(error, ERROR_FAILED, CAUSE_NOT_FOUND,
			    path, "is not there");
	}
	return error_set(error, ERROR_FAILED, CAUSE_UNREACHABLE, path,
	    "its folder lists it, but it cannot be opened");
}
