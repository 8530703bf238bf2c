#include "life/notice_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/path.h"
#include "life/causes.h"

/* How each one begins that was written here. */
static const char beginning[] = "{\"deadline\":";

int
notice_file_own(const char *path, struct error *error)
{
	char bytes[sizeof(beginning) - 1];
	const char *what = "it is not a file";
	struct stat status;
	ssize_t length;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
	    O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && errno != ELOOP && errno != ENXIO)
		what = strerror(errno);
	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		what = "somebody else has written it";
		length = read(fd, bytes, sizeof(bytes));
		if (status.st_uid == geteuid() && (length == 0 ||
		    (length == (ssize_t)sizeof(bytes) &&
		    memcmp(bytes, beginning, sizeof(bytes)) == 0)))
			what = NULL;
	}
	if (fd >= 0)
		close(fd);
	if (what == NULL)
		return 0;
	error_set(error, ERROR_USAGE, CAUSE_OTHER, path, "what lies there "
	    "cannot be replaced by the notice file: %s", what);
	return error_cure(error, "name a free path with --notice-file");
}

static char *
real_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *head, *real;

	if (slash == NULL)
		return realpath(".", NULL);
	head = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	real = head == NULL ? NULL : realpath(head, NULL);
	free(head);
	return real;
}

char *
notice_file_check(const char *folder, const char *path, struct error *error)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;
	size_t length = strlen(folder);
	char *real, *whole;

	if ((real = real_folder(path)) == NULL) {
		error_set_errno(error, errno, path, "could not find the "
		    "folder of the notice file");
		error->class = ERROR_USAGE;
		return NULL;
	}
	if (*name == '\0' || (strncmp(real, folder, length) == 0 &&
	    (real[length] == '\0' || real[length] == '/'))) {
		error_set(error, ERROR_USAGE, CAUSE_OTHER, path, *name == '\0' ?
		    "the notice file has no name" :
		    "the notice file must not lie in the directory of the "
		    "checkpoints");
		free(real);
		return NULL;
	}
	whole = path_join(real, name);
	free(real);
	if (whole == NULL)
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, path,
		    "out of memory for a path");
	else if (notice_file_own(whole, error) != 0) {
		free(whole);
		whole = NULL;
	}
	return whole;
}

static char *
make_text(const struct cause *cause, uint64_t now)
{
	uint64_t left = cause->when > now ? cause->when - now : 0;
	struct timespec end = clock_wall();
	char text[CLOCK_TEXT_SIZE];
	json_t *object;
	char *dump = NULL;

	end.tv_sec += (time_t)(left / CLOCK_SECOND);
	end.tv_nsec += (long)(left % CLOCK_SECOND);
	if (end.tv_nsec >= (long)CLOCK_SECOND) {
		end.tv_nsec -= (long)CLOCK_SECOND;
		end.tv_sec++;
	}
	object = json_pack("{s:s, s:f, s:o, s:o, s:b}", "deadline",
	    clock_text(end, text), "left_s",
	    (double)left / (double)CLOCK_SECOND, "source",
	    json_text(cause->source), "reason", json_text(cause->reason),
	    "survives", cause->survives);
	if (object != NULL)
		dump = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6));
	json_decref(object);
	return dump;
}

int
notice_file_write(const char *path, const struct cause *cause, uint64_t now,
    struct error *error)
{
	char *text = make_text(cause, now), *temporary = NULL;
	int fd = -1, result = -1;
	size_t length;

	if (notice_file_own(path, error) != 0)
		goto done;
	if (text == NULL || asprintf(&temporary, "%s.XXXXXX", path) < 0) {
		temporary = NULL;
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, path,
		    "out of memory for the notice file");
		goto done;
	}
	length = strlen(text);
	text[length] = '\n';	/* in place of the NUL: written by length */
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0644) != 0 || write(fd, text, length + 1) != (ssize_t)length + 1 ||
	    rename(temporary, path) != 0) {
		error_set_errno(error, errno, path,
		    "could not write the notice file");
		if (fd >= 0)
			unlink(temporary);
		goto done;
	}
	result = 0;
done:
	if (fd >= 0)
		close(fd);
	free(temporary);
	free(text);
	return result;
}

void
notice_file_remove(const char *path)
{
	struct error ignored = ERROR_INIT;

	if (notice_file_own(path, &ignored) == 0)
		(void)unlink(path);
}
