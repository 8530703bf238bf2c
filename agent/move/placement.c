#include "move/placement.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "base/random.h"
#include "move/beneath.h"
#include "move/durable.h"
#include "move/staging.h"

struct placement {
	struct staging *staging;
	int target;
	const struct selection *selection;
	const struct item *item;
	int from;		/* directory in new/ that holds it; -1: none */
	int to;			/* directory in the target */
	const char *name;	/* in both */
};

static int
failed(const struct placement *placement, int number, const char *what,
    struct error *error)
{
	const char *path = placement->item->path;

	if (number == EBUSY || number == EXDEV) {
		error_set(error, ERROR_FAILED, CAUSE_UNSUPPORTED, path, "%s: "
		    "a mount point or another file system is in the way", what);
		return error_cure(error, "restore into a directory without "
		    "mount points in it");
	}
	if (number == ELOOP || number == ENOTDIR) {
		error_set(error, ERROR_FAILED, CAUSE_EXISTS, path, "%s: "
		    "a link or a file lies where its directory belongs", what);
		return error_cure(error, "remove that, or restore into "
		    "another directory");
	}
	return error_set_errno(error, number, path, "%s", what);
}

/* Move ${name} in ${folder} to old/ under a name that nobody has. */
static int
set_aside(const struct placement *placement, int folder)
{
	char name[32];

	snprintf(name, sizeof(name), "%016" PRIx64, random_bits());
	return renameat(folder, placement->name,
	    staging_old(placement->staging), name);
}

/* Something that a plain rename does not replace is in the place. */
static int
exchange(const struct placement *placement, struct error *error)
{
	if (renameat2(placement->from, placement->name, placement->to,
	    placement->name, RENAME_EXCHANGE) == 0) {
		/* If this fails the old one is removed with the staging. */
		(void)set_aside(placement, placement->from);
		return 0;
	}
	if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return failed(placement, errno, "cannot put it into place",
		    error);
	/* A file system that cannot exchange: for a moment neither is there;
	 * the next run finishes if this one dies in it. */
	if (set_aside(placement, placement->to) == -1 ||
	    renameat(placement->from, placement->name, placement->to,
	    placement->name) == -1)
		return failed(placement, errno, "cannot put it into place",
		    error);
	return 0;
}

/* Its own mode and time, which could not be set before the rename. */
static int
finish_folder(const struct placement *placement, struct error *error)
{
	const struct manifest_entry *entry = NULL;
	struct timespec times[2];
	size_t i;
	int fd, result = 0;

	for (i = 0; entry == NULL && i < placement->item->count; i++) {
		entry = placement->selection->
		    parts[placement->item->first + i].entry;
		if (strcmp(entry->path, placement->item->path) != 0)
			entry = NULL;
	}
	if (entry == NULL)
		return 0;
	times[0] = (struct timespec){ .tv_nsec = UTIME_OMIT };
	times[1] = entry->modified;
	fd = openat(placement->to, placement->name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || futimens(fd, times) == -1 ||
	    fchmod(fd, entry->mode & 0777) == -1)
		result = failed(placement, errno, "cannot set its mode",
		    error);
	if (fd != -1)
		close(fd);
	return result;
}

static int
place_made(struct placement *placement, struct error *error)
{
	bool tree = placement->item->kind == ITEM_TREE;
	struct stat status;
	int result;

	result = fstatat(placement->to, placement->name, &status,
	    AT_SYMLINK_NOFOLLOW);
	if (result == -1 && errno != ENOENT)
		return failed(placement, errno, "cannot look at its place",
		    error);
	if (result == 0 && (tree || S_ISDIR(status.st_mode)))
		result = exchange(placement, error);
	else if (renameat(placement->from, placement->name, placement->to,
	    placement->name) == -1)
		result = failed(placement, errno, "cannot put it into place",
		    error);
	else
		result = 0;
	if (result == 0 && tree)
		result = finish_folder(placement, error);
	return result;
}

static int
place_folder(const struct placement *placement, struct error *error)
{
	struct stat status;

	if (fstatat(placement->to, placement->name, &status,
	    AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(status.st_mode) &&
	    set_aside(placement, placement->to) == -1)
		return failed(placement, errno, "cannot move away what is in "
		    "its place", error);
	if (mkdirat(placement->to, placement->name, 0777) == -1 &&
	    errno != EEXIST)
		return failed(placement, errno, "cannot make the directory",
		    error);
	return finish_folder(placement, error);
}

static int
place_item(struct placement *placement, struct error *error)
{
	const char *path = placement->item->path;
	bool folder = placement->item->kind == ITEM_FOLDER;
	int result = -1;

	placement->name = path_base(path);
	placement->from = -1;
	placement->to = beneath_parent(placement->target, path, true);
	if (placement->to == -1)
		return failed(placement, errno, "cannot make its directory",
		    error);
	if (!folder)
		placement->from = beneath_parent(
		    staging_new(placement->staging), path, false);
	if (folder)
		result = place_folder(placement, error);
	else if (placement->from == -1)
		failed(placement, errno, "cannot find what was made", error);
	else
		result = place_made(placement, error);
	if (placement->from != -1)
		close(placement->from);
	close(placement->to);
	return result;
}

int
placement_run(struct staging *staging, int target,
    struct selection *selection, enum item_phase phase, struct error *error)
{
	struct placement placement = {
		.staging = staging, .target = target, .selection = selection
	};
	struct durable_folders changed = { 0 };
	struct item *item;
	int result = 0;
	size_t i;

	for (i = 0; i < selection->item_count && result == 0; i++) {
		item = &selection->items[i];
		if (item->phase != phase || item->settled)
			continue;
		placement.item = item;
		result = durable_note(&changed, item->path, error);
		if (result == 0)
			result = place_item(&placement, error);
		if (result == 0)
			item->settled = true;
	}
	if (result == 0 && changed.count > 0)
		result = durable_sync(&changed, target, error);
	durable_free(&changed);
	return result;
}
