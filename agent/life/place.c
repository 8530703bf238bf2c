#include "life/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sha256.h"
#include "life/control.h"

/* Digits of the hash in a name: short, as a socket's address must be. */
#define NAME_DIGITS 20
#define ADDRESS_SIZE sizeof(((struct sockaddr_un *)0)->sun_path)

struct place {
	char *folder;			/* real path */
	char name[NAME_DIGITS + 1];
	char *socket;
	char *lock_path;
	char *notice;
	int lock;			/* -1: not held */
	char *state;
	bool state_sought;
};

/*
 * The real path of a directory that may not be there yet: what exists of it
 * is resolved, the rest is kept as it was written.
 */
static char *
real_path(const char *folder, struct error *error)
{
	char *head, *resolved = NULL, *whole, *slash;
	size_t length;

	if ((head = strdup(folder)) == NULL)
		goto memory;
	for (;;) {
		if ((resolved = realpath(head[0] != '\0' ? head : "/",
		    NULL)) != NULL)
			break;
		if (errno != ENOENT) {
			error_set_errno(error, errno, folder,
			    "could not resolve the directory's path");
			free(head);
			return NULL;
		}
		if ((slash = strrchr(head, '/')) == NULL) {
			resolved = realpath(".", NULL);
			head[0] = '\0';
			break;
		}
		*slash = '\0';
	}
	length = strlen(head);
	while (folder[length] == '/')
		length++;
	whole = resolved == NULL ? NULL : folder[length] == '\0' ?
	    strdup(resolved) : path_join(resolved, folder + length);
	free(resolved);
	free(head);
	if (whole == NULL)
		goto memory;
	length = strlen(whole);
	while (length > 1 && whole[length - 1] == '/')
		whole[--length] = '\0';
	return whole;
memory:
	error_set(error, ERROR_FAILED, CAUSE_MEMORY, folder,
	    "out of memory for a path");
	return NULL;
}

/* Whether ${folder} is a directory that only we can use; made when asked. */
static bool
is_private(const char *folder, bool make)
{
	struct stat status;

	if (make && mkdir(folder, 0700) != 0 && errno != EEXIST)
		return false;
	return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) &&
	    status.st_uid == geteuid() && (status.st_mode & 022) == 0 &&
	    access(folder, R_OK | W_OK | X_OK) == 0;
}

static int
set_paths(struct place *place, const char *runtime)
{
	free(place->socket);
	free(place->lock_path);
	place->lock_path = NULL;
	if (asprintf(&place->socket, "%s/ckptsync-%s.sock", runtime,
	    place->name) < 0) {
		place->socket = NULL;
		return -1;
	}
	if (asprintf(&place->lock_path, "%s/ckptsync-%s.lock", runtime,
	    place->name) < 0) {
		place->lock_path = NULL;
		return -1;
	}
	return 0;
}

/* Whether another process holds the lock, as far as can be told. */
static bool
is_locked(const char *path)
{
	int fd;
	bool locked;

	if ((fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW |
	    O_NONBLOCK)) < 0)
		return false;
	locked = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	close(fd);
	return locked;
}

/* Where locks and sockets may lie, the best first; "" for none. */
static void
runtime_folders(char folders[3][PATH_MAX])
{
	const char *variable = getenv("XDG_RUNTIME_DIR");

	snprintf(folders[0], PATH_MAX, "%s",
	    variable != NULL && variable[0] == '/' ? variable : "");
	snprintf(folders[1], PATH_MAX, "/run/user/%u", (unsigned)geteuid());
	snprintf(folders[2], PATH_MAX, "/tmp/ckptsync-%u",
	    (unsigned)geteuid());
}

/*
 * Choose among the runtime directories: one in which an agent runs already
 * (it may have been started from a session with another environment), else
 * the first that will do.
 */
static int
choose_runtime(struct place *place, struct error *error)
{
	char candidates[3][PATH_MAX];
	size_t i, chosen = SIZE_MAX;
	bool fits, last;

	runtime_folders(candidates);
	for (i = 0; i < 3; i++) {
		last = i == 2;
		fits = strlen(candidates[i]) + NAME_DIGITS +
		    sizeof("/ckptsync-.sock") <= ADDRESS_SIZE;
		if (candidates[i][0] == '\0' || !fits ||
		    !is_private(candidates[i], last && chosen == SIZE_MAX))
			continue;
		if (set_paths(place, candidates[i]) != 0)
			goto memory;
		if (is_locked(place->lock_path))
			return 0;
		if (chosen == SIZE_MAX)
			chosen = i;
	}
	if (chosen == SIZE_MAX) {
		error_set(error, ERROR_FAILED, CAUSE_DENIED, candidates[2],
		    "no place for the lock and the control socket: neither "
		    "XDG_RUNTIME_DIR nor /run/user/%u can be used, and this "
		    "is not a directory that only we can write to",
		    (unsigned)geteuid());
		return error_cure(error, "name another one with --socket or "
		    "CKPTSYNC_SOCKET");
	}
	if (set_paths(place, candidates[chosen]) == 0)
		return 0;
memory:
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory for a path");
}

static int
use_socket(struct place *place, const char *socket, struct error *error)
{
	if (strlen(socket) >= ADDRESS_SIZE) {
		error_set(error, ERROR_USAGE, CAUSE_LIMIT, socket,
		    "the path of the control socket is longer than %zu bytes",
		    ADDRESS_SIZE - 1);
		return error_cure(error, "choose a shorter --socket");
	}
	if ((place->socket = strdup(socket)) == NULL ||
	    asprintf(&place->lock_path, "%s.lock", socket) < 0) {
		place->lock_path = NULL;
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a path");
	}
	return 0;
}

struct place *
place_new(const char *folder, const char *socket, struct error *error)
{
	struct place *place;
	uint8_t digest[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];
	int result;

	if ((place = calloc(1, sizeof(*place))) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, folder,
		    "out of memory for a directory");
		return NULL;
	}
	place->lock = -1;
	if ((place->folder = real_path(folder, error)) == NULL)
		goto fail;
	sha256_of(place->folder, strlen(place->folder), digest);
	memcpy(place->name, sha256_hex(digest, hex), NAME_DIGITS);
	if (socket == NULL && (socket = getenv("CKPTSYNC_SOCKET")) != NULL &&
	    socket[0] == '\0')
		socket = NULL;
	result = socket != NULL ? use_socket(place, socket, error) :
	    choose_runtime(place, error);
	if (result != 0)
		goto fail;
	if (asprintf(&place->notice, "%s.notice", place->socket) < 0) {
		place->notice = NULL;
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, folder,
		    "out of memory for a path");
		goto fail;
	}
	return place;
fail:
	place_free(place);
	return NULL;
}

const char *
place_folder(const struct place *place)
{
	return place->folder;
}

const char *
place_socket(const struct place *place)
{
	return place->socket;
}

const char *
place_notice(const struct place *place)
{
	return place->notice;
}

void
place_set_notice(struct place *place, char *path)
{
	free(place->notice);
	place->notice = path;
}

static bool
is_socket_name(const char *name)
{
	size_t length = strlen(name);

	return length == sizeof("ckptsync-.sock") - 1 + NAME_DIGITS &&
	    strncmp(name, "ckptsync-", 9) == 0 &&
	    strcmp(name + length - 5, ".sock") == 0;
}

void
place_visit(void (*visit)(void *context, const char *socket), void *context)
{
	char folders[3][PATH_MAX], *path;
	struct dirent *entry;
	size_t i;
	DIR *folder;

	runtime_folders(folders);
	for (i = 0; i < 3; i++) {
		/* XDG_RUNTIME_DIR is /run/user/UID most of the time. */
		if (folders[i][0] == '\0' ||
		    (i > 0 && strcmp(folders[i], folders[0]) == 0) ||
		    !is_private(folders[i], false) ||
		    (folder = opendir(folders[i])) == NULL)
			continue;
		while ((entry = readdir(folder)) != NULL) {
			if (!is_socket_name(entry->d_name))
				continue;
			path = path_join(folders[i], entry->d_name);
			if (path != NULL)
				visit(context, path);
			free(path);
		}
		closedir(folder);
	}
}

/* Open the lock file.  One that we made is empty; nothing else is used. */
static int
open_lock(const char *path, struct error *error)
{
	struct stat status;
	int fd;

	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
	    O_NONBLOCK | O_NOCTTY, 0600);
	if (fd < 0) {
		error_set_errno(error, errno, path,
		    "could not open the lock file");
		if (lstat(path, &status) == 0 && !S_ISREG(status.st_mode))
			error->class = ERROR_USAGE;
	} else if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
	    status.st_size != 0) {
		error_set(error, ERROR_USAGE, CAUSE_OTHER, path, "what lies "
		    "there is no lock file of ckptsync");
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		error_cure(error, "name another place with --socket or "
		    "CKPTSYNC_SOCKET");
	return fd;
}

int
place_lock(struct place *place, struct error *error)
{
	int fd;

	if ((fd = open_lock(place->lock_path, error)) < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		if (control_check(place->socket, error) != 0) {
			close(fd);
			return -1;
		}
		place->lock = fd;
		return 0;
	}
	if (errno == EWOULDBLOCK)
		error_set(error, ERROR_FAILED, CAUSE_EXISTS, place->folder,
		    "an agent is already running for this directory");
	else
		error_set_errno(error, errno, place->lock_path,
		    "could not lock");
	close(fd);
	return -1;
}

/* The folder for state by the rules of the header; NULL: none is named. */
static char *
state_folder(void)
{
	const char *text;
	char *folder = NULL;

	if ((text = getenv("CKPTSYNC_STATE_DIR")) != NULL && text[0] != '\0')
		return strdup(text);
	if ((text = getenv("XDG_STATE_HOME")) != NULL && text[0] == '/')
		return path_join(text, "ckptsync");
	if ((text = getenv("HOME")) == NULL || text[0] != '/')
		return NULL;
	if (asprintf(&folder, "%s/.local/state/ckptsync", text) < 0)
		return NULL;
	return folder;
}

const char *
place_state(struct place *place)
{
	char *folder;
	struct error error = ERROR_INIT;
	char text[ERROR_TEXT_SIZE];

	if (place->state_sought)
		return place->state;
	place->state_sought = true;
	folder = state_folder();
	if (folder == NULL)
		error_set(&error, ERROR_FAILED, CAUSE_NOT_FOUND, NULL,
		    "neither CKPTSYNC_STATE_DIR, XDG_STATE_HOME nor HOME is set");
	else if (path_make_folders(folder, 0700, &error) == 0) {
		if (access(folder, W_OK | X_OK) != 0)
			error_set_errno(&error, errno, folder,
			    "could not write there");
		else if (asprintf(&place->state, "%s/%s.json", folder,
		    place->name) < 0)
			place->state = NULL;
	}
	free(folder);
	if (place->state == NULL)
		log_line(LOG_WARNING, "no_state", "nothing is remembered from "
		    "one start to the next: %s; set CKPTSYNC_STATE_DIR to "
		    "change that", error_text(&error, text));
	return place->state;
}

void
place_free(struct place *place)
{
	if (place == NULL)
		return;
	if (place->lock >= 0)
		close(place->lock);
	free(place->folder);
	free(place->socket);
	free(place->lock_path);
	free(place->notice);
	free(place->state);
	free(place);
}
