#include "life/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "format/checkpoint.h"

/* Make the folder, under the first name of this second that is free. */
static int
make_folder(struct aside *aside, struct error *error)
{
	struct timespec now = clock_wall();
	struct tm tm;
	char when[32], *path;
	unsigned i;
	int result;

	if (aside->name[0] != '\0')
		return 0;
	gmtime_r(&now.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	for (i = 0; i < 1000; i++) {
		if (i == 0)
			snprintf(aside->name, sizeof(aside->name),
			    ".ckptsync-%s-%s", aside->kind, when);
		else
			snprintf(aside->name, sizeof(aside->name),
			    ".ckptsync-%s-%s-%u", aside->kind, when, i);
		if ((path = path_join(aside->folder, aside->name)) == NULL)
			break;
		result = mkdir(path, 0777);
		if (result != 0 && errno != EEXIST)
			error_set_errno(error, errno, path,
			    "could not make a folder to move to");
		free(path);
		if (result == 0)
			return 0;
		if (errno != EEXIST) {
			aside->name[0] = '\0';
			return -1;
		}
	}
	aside->name[0] = '\0';
	return error_set(error, ERROR_FAILED, CAUSE_OTHER, aside->folder,
	    "could not find a free name for a folder to move to");
}

static int
move_path(struct aside *aside, const char *path, struct error *error)
{
	char *from = NULL, *target = NULL, *to = NULL, *parent = NULL, *slash;
	int result = -1;

	if (make_folder(aside, error) != 0)
		return -1;
	if ((from = path_join(aside->folder, path)) == NULL ||
	    (target = path_join(aside->folder, aside->name)) == NULL ||
	    (to = path_join(target, path)) == NULL ||
	    (parent = strdup(to)) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, path,
		    "out of memory for a path");
		goto done;
	}
	if ((slash = strrchr(parent, '/')) != NULL)
		*slash = '\0';
	if (path_make_folders(parent, 0777, error) != 0)
		goto done;
	if (rename(from, to) == 0 || errno == ENOENT)
		result = 0;
	else
		error_set_errno(error, errno, from, "could not move it to %s",
		    aside->name);
done:
	free(parent);
	free(to);
	free(target);
	free(from);
	return result;
}

static bool
is_beneath(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return strncmp(path, folder, length) == 0 &&
	    (path[length] == '/' || path[length] == '\0');
}

int
aside_move(struct aside *aside, const struct checkpoint *checkpoint,
    struct error *error)
{
	const struct checkpoint_entry *entry;
	struct stat status;
	char *path;
	bool whole;
	size_t i;

	/* One file or directory with the checkpoint's name, if it has one... */
	if ((path = path_join(aside->folder, checkpoint->name)) == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
		    checkpoint->name, "out of memory for a path");
	whole = lstat(path, &status) == 0;
	free(path);
	if (whole && move_path(aside, checkpoint->name, error) != 0)
		return -1;
	/* ... and what belongs to it beside that.  A folder that others may
	 * share stays. */
	for (i = 0; i < checkpoint->entry_count; i++) {
		entry = &checkpoint->entries[i];
		if (entry->kind == ENTRY_FOLDER ||
		    (whole && is_beneath(entry->path, checkpoint->name)))
			continue;
		if (move_path(aside, entry->path, error) != 0)
			return -1;
	}
	return 0;
}
