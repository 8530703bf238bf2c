#include "move/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "base/unit.h"
#include "move/beneath.h"
#include "move/filler.h"
#include "move/jobs.h"
#include "move/loader.h"
#include "move/placement.h"
#include "move/selection.h"
#include "move/staging.h"
#include "move/survey.h"

/* Free space that is left: directories, the journal, other writers. */
#define MARGIN (UINT64_C(1) << 20)

static int
open_target(const struct restore *restore)
{
	return open(restore->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* What lies in the target and in the staging of an earlier run. */
static int
look(struct restore *restore, int target, struct selection *selection,
    struct error *error)
{
	struct staging *staging;
	struct error none = ERROR_INIT;
	int result;

	if (survey_make(restore, target, selection, error) == -1)
		return -1;
	staging = staging_find(restore, target, &none);
	if (staging == NULL) {
		if (none.class == ERROR_NONE)
			return 0;
		*error = none;
		return -1;
	}
	result = staging_check(staging, selection, false, error);
	staging_free(staging);
	return result;
}

/* The action of a step from those of its items. */
static void
settle_steps(struct restore_plan *plan)
{
	const struct item *item;
	struct restore_step *step;
	size_t i;

	for (i = 0; i < plan->count; i++)
		plan->steps[i].action = RESTORE_SAME;
	for (i = 0; i < plan->selection->item_count; i++) {
		item = &plan->selection->items[i];
		step = &plan->steps[item->step];
		if (item->settled)
			continue;
		if (item->exists)
			step->action = RESTORE_REPLACE;
		else if (step->action == RESTORE_SAME)
			step->action = RESTORE_NEW;
	}
}

/* Bytes that need not be fetched. */
static uint64_t
count_present(const struct selection *selection)
{
	const struct item *item;
	const struct part *part;
	uint64_t present = 0;
	size_t i, j, k;

	for (i = 0; i < selection->item_count; i++) {
		item = &selection->items[i];
		for (j = 0; j < item->count; j++) {
			part = &selection->parts[item->first + j];
			if (part->content == NULL)
				continue;
			for (k = 0; k < part->content->extent_count; k++)
				if (item->settled || part->origins[k].staged ||
				    part->origins[k].from != ORIGIN_STORE)
					present +=
					    part->content->extents[k].length;
		}
	}
	return present;
}

/* Why the target cannot be opened.  Return 0 when it is only to be made. */
static int
say_no_target(const struct restore *restore, int number, struct error *error)
{
	struct stat status;

	if (number != ENOENT)
		return error_set_errno(error, number, restore->folder,
		    "cannot open the target directory");
	if (lstat(restore->folder, &status) == -1 || !S_ISLNK(status.st_mode))
		return 0;
	error_set(error, ERROR_FAILED, CAUSE_NOT_FOUND, restore->folder,
	    "is a symbolic link to a directory that is not there");
	return error_cure(error, "make that directory, or remove the link");
}

int
restore_plan_make(struct restore *restore, struct restore_plan *plan,
    struct error *error)
{
	struct jobs jobs;
	int target, result = 0;

	memset(plan, 0, sizeof(*plan));
	plan->selection = selection_make(restore, plan, error);
	if (plan->selection == NULL)
		goto failed;
	if ((target = open_target(restore)) != -1) {
		result = look(restore, target, plan->selection, error);
		close(target);
	} else {
		result = say_no_target(restore, errno, error);
	}
	if (result == -1 || jobs_make(plan->selection, &jobs, error) == -1)
		goto failed;
	plan->fetch_bytes = jobs.bytes;
	plan->present_bytes = count_present(plan->selection);
	jobs_free(&jobs);
	settle_steps(plan);
	return 0;

failed:
	restore_plan_free(plan);
	return -1;
}

void
restore_plan_free(struct restore_plan *plan)
{
	size_t i;

	for (i = 0; i < plan->count; i++)
		free(plan->steps[i].path);
	free(plan->steps);
	selection_free(plan->selection);
	memset(plan, 0, sizeof(*plan));
}

/* Bytes that the new files will take beyond what staging has already. */
static uint64_t
count_needed(const struct selection *selection, const struct staging *staging)
{
	const struct item *item;
	const struct part *part;
	struct stat status;
	uint64_t needed = 0, there;
	size_t i, j;

	for (i = 0; i < selection->item_count; i++) {
		item = &selection->items[i];
		for (j = 0; !item->settled && j < item->count; j++) {
			part = &selection->parts[item->first + j];
			if (part->content == NULL)
				continue;
			there = 0;
			if (beneath_status(staging_new(staging),
			    part->entry->path, &status) == 0)
				there = (uint64_t)status.st_blocks * 512;
			if (part->content->size > there)
				needed += part->content->size - there;
		}
	}
	return needed;
}

static int
check_room(const struct restore *restore, int target, uint64_t needed,
    struct error *error)
{
	char wanted[UNIT_TEXT_SIZE], there[UNIT_TEXT_SIZE];
	struct statvfs status;
	uint64_t room;
	int tries;

	for (tries = 0; ; tries++) {
		if (fstatvfs(target, &status) == -1)
			return error_set_errno(error, errno, restore->folder,
			    "cannot ask for free space");
		room = (uint64_t)status.f_bavail * status.f_frsize;
		if (needed == 0 || needed + MARGIN <= room)
			return 0;
		if (tries == 1)
			break;
		/* What other restores left behind may be in the way. */
		staging_sweep(target);
	}
	error_set(error, ERROR_FAILED, CAUSE_NO_SPACE, restore->folder,
	    "the restore needs %s, but only %s are free",
	    unit_size_text(needed + MARGIN, wanted),
	    unit_size_text(room, there));
	return error_cure(error, "make room and run it again: what was "
	    "fetched is kept");
}

static void
begin_progress(struct restore *restore, const struct restore_plan *plan)
{
	restore->progress.total = plan->total_bytes;
	restore->progress.done = 0;
	restore->progress.moved = 0;
	restore->progress.reused = 0;
	restore->progress.started = clock_monotonic();
}

/* Fill the staging and make it ready. */
static int
fill(struct restore *restore, const struct restore_plan *plan, int target,
    struct staging *staging, struct error *error)
{
	struct selection *selection = plan->selection;
	struct filler *filler;
	struct jobs jobs;
	int result = -1;

	if (staging_prune(staging, selection, error) == -1 ||
	    staging_check(staging, selection, true, error) == -1 ||
	    check_room(restore, target, count_needed(selection, staging),
	    error) == -1)
		return -1;
	filler = filler_new(staging, target, selection, error);
	if (filler == NULL)
		return -1;
	if (filler_copy(filler, &restore->cancel, error) == -1)
		goto out;
	restore->progress.reused = count_present(selection);
	restore->progress.done = restore->progress.reused;
	if (jobs_make(selection, &jobs, error) == -1)
		goto out;
	result = loader_run(restore, &jobs, filler, staging, error);
	jobs_free(&jobs);
	if (result == 0)
		result = filler_finish(filler, error);
out:
	filler_free(filler);
	return result;
}

/* Checkpoints first: a pointer never names what is not there yet. */
static int
place(const struct restore_plan *plan, int target, struct staging *staging,
    struct error *error)
{
	static const enum item_phase order[] = {
		PHASE_CHECKPOINT, PHASE_COMPANION, PHASE_POINTER
	};
	size_t i;

	for (i = 0; i < sizeof(order) / sizeof(*order); i++)
		if (placement_run(staging, target, plan->selection, order[i],
		    error) == -1)
			return -1;
	return 0;
}

static bool
is_settled(const struct selection *selection)
{
	size_t i;

	for (i = 0; i < selection->item_count; i++)
		if (!selection->items[i].settled)
			return false;
	return true;
}

int
restore_run(struct restore *restore, const struct restore_plan *plan,
    struct error *error)
{
	struct staging *staging;
	int target, result;

	begin_progress(restore, plan);
	if (is_settled(plan->selection)) {
		restore->progress.done = plan->total_bytes;
		restore->progress.reused = plan->total_bytes;
		if ((target = open_target(restore)) != -1) {
			staging_sweep(target);
			close(target);
		}
		return 0;
	}
	if (path_make_folders(restore->folder, 0777, error) == -1)
		return -1;
	if ((target = open_target(restore)) == -1)
		return error_set_errno(error, errno, restore->folder,
		    "cannot open the target directory");
	staging = staging_make(restore, target, error);
	result = staging == NULL ? -1 : 0;
	if (result == 0)
		result = fill(restore, plan, target, staging, error);
	if (result == 0)
		result = place(plan, target, staging, error);
	if (result == 0) {
		staging_remove(staging);
		staging_sweep(target);
	}
	staging_free(staging);
	close(target);
	return result;
}
