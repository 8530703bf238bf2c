#include "move/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/path.h"
#include "move/beneath.h"
#include "move/local.h"
#include "move/match.h"
#include "move/walk.h"

/* A file that is no larger may be a pointer, and is replaced as one. */
#define POINTER_MAXIMUM 65536

struct survey {
	const struct restore *restore;
	struct selection *selection;
	int target;
	dev_t device;		/* of the target */
	struct local *local;
	struct item *item;	/* the one that is looked at */
	const char **paths;	/* of its parts, when it is a tree */
	bool same;		/* so far */
};

static int
in_the_way(const char *path, const char *what, struct error *error)
{
	error_set(error, ERROR_FAILED, CAUSE_EXISTS, path, "%s", what);
	return error_cure(error, "move it away, restore into another "
	    "directory, or use --force to replace it");
}

/* A regular file that would go away: may it? */
static int
check_file(struct survey *survey, const char *path, struct error *error)
{
	int may;

	if (survey->restore->force)
		return 0;
	may = local_may_replace(survey->local, path, error);
	if (may == 0)
		return in_the_way(path, "this file is complete and the "
		    "remote does not have it", error);
	return may == -1 ? -1 : 0;
}

/* The same for whatever is there. */
static int
check_other(struct survey *survey, const char *path, const struct stat *status,
    struct error *error)
{
	survey->same = false;
	if (S_ISREG(status->st_mode))
		return check_file(survey, path, error);
	if (survey->restore->force || S_ISLNK(status->st_mode))
		return 0;
	if (S_ISDIR(status->st_mode))
		return in_the_way(path, "a directory is where a file "
		    "belongs", error);
	return in_the_way(path, "something that is no file is in "
	    "the way", error);
}

/* A part that is a regular file here too. */
static int
survey_file(struct survey *survey, struct part *part, struct error *error)
{
	const char *path = part->entry->path;
	int same;

	same = local_compare(survey->local, path, part->manifest,
	    part->content, error);
	if (same == -1)
		return -1;
	if (same == 1)
		return 0;
	survey->same = false;
	if (check_file(survey, path, error) == -1)
		return -1;
	return local_search(survey->local, path, part->manifest,
	    part->content, error);
}

/* What a part with a content stands for: its own, or its twin's. */
static const struct part *
content_part(const struct survey *survey, const struct part *part)
{
	return part->twin == SIZE_MAX ? part :
	    &survey->selection->parts[part->twin];
}

/* Compare one part with what lies at its path. */
static int
survey_part(struct survey *survey, struct part *part,
    const struct stat *status, struct error *error)
{
	const char *path = part->entry->path;
	struct part as_file = *part;
	char *target;

	switch (part->entry->kind) {
	case MANIFEST_FOLDER:
		if (S_ISDIR(status->st_mode))
			return 0;
		break;
	case MANIFEST_LINK:
		if (!S_ISLNK(status->st_mode))
			break;
		target = beneath_link(survey->target, path);
		if (target == NULL || strcmp(target, part->entry->target) != 0)
			survey->same = false;
		free(target);
		return 0;
	default:
		if (!S_ISREG(status->st_mode))
			break;
		as_file.content = content_part(survey, part)->content;
		return survey_file(survey, &as_file, error);
	}
	return check_other(survey, path, status, error);
}

/* What the directory has and the checkpoint has not would go away. */
static int
visit_extra(void *context, const char *path, const struct stat *status,
    struct error *error)
{
	struct survey *survey = context;

	if (selection_has(survey->paths, survey->item->count, path))
		return 0;
	survey->same = false;
	if (S_ISREG(status->st_mode))
		return check_file(survey, path, error);
	return 0;
}

static int
survey_tree(struct survey *survey, struct error *error)
{
	struct part *part;
	struct stat status;
	size_t i;
	int result;

	for (i = 0; i < survey->item->count; i++) {
		part = &survey->selection->parts[survey->item->first + i];
		if (beneath_status(survey->target, part->entry->path,
		    &status) == -1) {
			if (errno != ENOENT && errno != ENOTDIR &&
			    errno != ELOOP)
				return error_set_errno(error, errno,
				    part->entry->path, "cannot look at it");
			survey->same = false;
		} else if (survey_part(survey, part, &status, error) == -1) {
			return -1;
		}
	}
	survey->paths = selection_paths(survey->selection, survey->item->first,
	    survey->item->count, error);
	if (survey->paths == NULL)
		return -1;
	result = walk_beneath(survey->target, survey->item->path, visit_extra,
	    survey, error);
	free(survey->paths);
	return result;
}

/* Pointers and companions are no checkpoints: they have rules of their own.
 * Return 1 when the item stays as it is. */
static int
survey_around(const struct survey *survey, const struct stat *status)
{
	const struct item *item = survey->item;
	const struct part *part =
	    &survey->selection->parts[item->first];

	if (item->phase == PHASE_POINTER)
		return survey->restore->keep_pointers;
	if (!S_ISREG(status->st_mode) || part->content == NULL)
		return 1;
	return (uint64_t)status->st_size > part->content->size;
}

static bool
is_small_pointer(const struct item *item, const struct stat *status)
{
	return item->phase == PHASE_POINTER && S_ISREG(status->st_mode) &&
	    status->st_size <= POINTER_MAXIMUM;
}

/* Something lies where the item belongs. */
static int
survey_existing(struct survey *survey, const struct stat *status,
    struct error *error)
{
	struct item *item = survey->item;
	struct part *part = &survey->selection->parts[item->first];
	int result;

	survey->same = true;
	item->exists = true;
	if (item->phase != PHASE_CHECKPOINT && survey_around(survey, status)) {
		item->settled = true;
		return 0;
	}
	if (S_ISDIR(status->st_mode) && status->st_dev != survey->device) {
		error_set(error, ERROR_FAILED, CAUSE_UNSUPPORTED, item->path,
		    "it is a mount point and cannot be replaced");
		return error_cure(error, "restore into another directory, or "
		    "unmount it");
	}
	if (item->kind == ITEM_TREE && S_ISDIR(status->st_mode)) {
		result = survey_tree(survey, error);
	} else if (item->phase == PHASE_COMPANION ||
	    is_small_pointer(item, status)) {
		survey->same = S_ISREG(status->st_mode) &&
		    part->content != NULL;
		result = survey->same ? local_compare(survey->local,
		    item->path, part->manifest, part->content, error) : 0;
		survey->same = result == 1;
		/* As long as ours but another: it stays (restore.h). */
		if (result == 0 && item->phase == PHASE_COMPANION)
			survey->same = (uint64_t)status->st_size ==
			    part->content->size;
	} else {
		result = survey_part(survey, part, status, error);
	}
	item->settled = survey->same;
	return result == -1 ? -1 : 0;
}

static int
survey_item(struct survey *survey, struct item *item, struct error *error)
{
	struct stat status, above;
	int parent, number;

	survey->item = item;
	parent = beneath_parent(survey->target, item->path, false);
	if (parent == -1 && errno == ENOENT)
		return 0;
	if (parent == -1 && (errno == ELOOP || errno == ENOTDIR)) {
		error_set(error, ERROR_FAILED, CAUSE_EXISTS, item->path,
		    "a link or a file lies where its directory belongs, and "
		    "links are not followed");
		return error_cure(error, "remove that, or restore into "
		    "another directory");
	}
	if (parent == -1)
		return error_set_errno(error, errno, item->path,
		    "cannot look at its directory");
	if (fstat(parent, &above) == 0 && above.st_dev != survey->device) {
		close(parent);
		error_set(error, ERROR_FAILED, CAUSE_UNSUPPORTED, item->path,
		    "its directory is on another file system than the target");
		return error_cure(error, "restore into a directory without "
		    "mount points in it");
	}
	number = fstatat(parent, path_base(item->path), &status,
	    AT_SYMLINK_NOFOLLOW) == -1 ? errno : 0;
	close(parent);
	if (number == 0)
		return survey_existing(survey, &status, error);
	if (number == ENOENT)
		return 0;
	return error_set_errno(error, number, item->path,
	    "cannot look at it");
}

int
survey_make(const struct restore *restore, int target,
    struct selection *selection, struct error *error)
{
	struct survey survey = {
		.restore = restore, .selection = selection, .target = target
	};
	struct stat status;
	size_t i;
	int result = 0;

	if (fstat(target, &status) == -1)
		return error_set_errno(error, errno, restore->folder,
		    "cannot look at the target");
	survey.device = status.st_dev;
	survey.local = local_new(restore->truth, target, selection, error);
	if (survey.local == NULL)
		return -1;
	for (i = 0; i < selection->item_count && result == 0; i++)
		result = survey_item(&survey, &selection->items[i], error);
	if (result == 0)
		local_resolve(survey.local);
	local_free(survey.local);
	return result;
}
