#include "life/start_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/unit.h"
#include "format/checkpoint.h"
#include "life/aside.h"
#include "life/opening.h"
#include "life/settings.h"
#include "store/truth.h"
#include "watch/view.h"

/* Whether it is shown that a trainer cannot go on from it.  What cannot be
 * read, or may be written at this moment, may well be whole. */
static bool
is_broken(const struct checkpoint *checkpoint)
{
	return checkpoint->state == CHECKPOINT_TORN ||
	    (checkpoint->unfinished && !checkpoint->unreadable);
}

static void
warn_left(const struct checkpoint *checkpoint)
{
	log_event(LOG_WARNING, checkpoint->unreadable ? "unreadable" :
	    "left_waiting", LOG_FIELDS(
	    LOG_TEXT_FIELD("checkpoint", checkpoint->name),
	    LOG_TEXT_FIELD("reason", checkpoint->reason)),
	    "%s is left where it is, and the trainer may pick it: %s",
	    checkpoint->name, checkpoint->reason);
}

/* Move what is not whole, and that a trainer might go on from, out of its
 * sight; other leftovers stay where they are. */
static int
move_torn(struct start *start, const struct view *view, struct error *error)
{
	struct aside aside = { .folder = start->needs.folder,
	    .kind = "torn" };
	const struct checkpoint *checkpoint;
	size_t i;

	for (i = 0; i < view->count; i++) {
		checkpoint = view->checkpoints[i];
		if (checkpoint->state == CHECKPOINT_COMPLETE ||
		    !view_may_mislead(view, checkpoint))
			continue;
		if (!is_broken(checkpoint)) {
			warn_left(checkpoint);
			continue;
		}
		if (aside_move(&aside, checkpoint, error) != 0)
			return -1;
		log_event(LOG_WARNING, "torn_moved", LOG_FIELDS(
		    LOG_TEXT_FIELD("checkpoint", checkpoint->name),
		    LOG_TEXT_FIELD("moved_to", aside.name)),
		    "%s is not whole (%s); moved to %s so that no trainer "
		    "picks it", checkpoint->name, checkpoint->reason,
		    aside.name);
	}
	return 0;
}

static bool
overlaps(const struct checkpoint *checkpoint, const struct manifest *manifest)
{
	size_t i, j;

	if (strcmp(checkpoint->name, manifest->name) == 0)
		return true;
	for (i = 0; i < checkpoint->entry_count; i++)
		for (j = 0; j < manifest->entry_count; j++)
			if (checkpoint->entries[i].kind != ENTRY_FOLDER &&
			    strcmp(checkpoint->entries[i].path,
			    manifest->entries[j].path) == 0)
				return true;
	return false;
}

/* What is not complete as well, which the inventory does not hold. */
static int
move_unproven(struct start *start, const struct view *view,
    const struct manifest *wanted, struct error *error)
{
	struct aside aside = { .folder = start->needs.folder,
	    .kind = "replaced" };
	const struct checkpoint *checkpoint;
	size_t i;

	for (i = 0; i < view->count; i++) {
		checkpoint = view->checkpoints[i];
		if (checkpoint->state != CHECKPOINT_WAITING ||
		    (is_broken(checkpoint) &&
		    view_may_mislead(view, checkpoint)) ||
		    !overlaps(checkpoint, wanted))
			continue;
		if (aside_move(&aside, checkpoint, error) != 0)
			return -1;
		log_event(LOG_WARNING, "unproven_moved", LOG_FIELDS(
		    LOG_TEXT_FIELD("checkpoint", checkpoint->name),
		    LOG_TEXT_FIELD("moved_to", aside.name)),
		    "%s gives way to what is restored; moved to %s",
		    checkpoint->name, aside.name);
	}
	return 0;
}

/* What only this machine has is moved, never replaced. */
static int
move_unknown(struct start *start, const struct inventory *inventory,
    const struct manifest *wanted, struct error *error)
{
	struct aside aside = { .folder = start->needs.folder,
	    .kind = "replaced" };
	const struct inventory_item *item;
	size_t i;

	for (i = 0; i < inventory->count; i++) {
		item = &inventory->items[i];
		if (item->standing == INVENTORY_KNOWN ||
		    !overlaps(item->checkpoint, wanted))
			continue;
		if (aside_move(&aside, item->checkpoint, error) != 0)
			return -1;
		log_event(LOG_WARNING, "unknown_moved", LOG_FIELDS(
		    LOG_TEXT_FIELD("checkpoint", item->checkpoint->name),
		    LOG_TEXT_FIELD("moved_to", aside.name)),
		    "%s here is not in the remote and older than what is "
		    "restored; moved to %s", item->checkpoint->name,
		    aside.name);
	}
	return 0;
}

static void
say_restore(const struct manifest *wanted, const struct restore_plan *plan,
    uint64_t took)
{
	char id[MANIFEST_ID_SIZE], fetched[UNIT_TEXT_SIZE];
	char here[UNIT_TEXT_SIZE], time[UNIT_TEXT_SIZE];

	log_event(LOG_INFO, "restored", LOG_FIELDS(
	    LOG_TEXT_FIELD("checkpoint", wanted->name),
	    LOG_TEXT_FIELD("id", manifest_id(wanted, id)),
	    LOG_NUMBER_FIELD("fetched_bytes", plan->fetch_bytes),
	    LOG_NUMBER_FIELD("present_bytes", plan->present_bytes),
	    LOG_SECONDS_FIELD("took_s", (double)took / (double)CLOCK_SECOND)),
	    "restored %s (%s): %s fetched, %s was here, in %s",
	    wanted->name, manifest_id(wanted, id),
	    unit_size_text(plan->fetch_bytes, fetched),
	    unit_size_text(plan->present_bytes, here),
	    unit_duration_text(took, time));
}

static void
share_restore(struct start *start, struct restore *restore)
{
	pthread_mutex_lock(&start->lock);
	start->restore = restore;
	if (restore != NULL)
		restore->cancel = start->cancel;
	pthread_mutex_unlock(&start->lock);
}

static int
bring(struct start *start, const struct truth *truth,
    const struct manifest *wanted, struct error *error)
{
	const struct manifest *list[1] = { wanted };
	struct restore restore = { .backend = start->result->backend,
	    .truth = truth, .folder = start->needs.folder, .wanted = list,
	    .wanted_count = 1, .pointers = true };
	struct restore_plan plan;
	char text[ERROR_TEXT_SIZE];
	uint64_t began = clock_monotonic(), until;
	unsigned attempt = 0;
	int result;

	until = start->needs.give_up == CLOCK_NEVER ? CLOCK_NEVER :
	    began + start->needs.give_up;
	start_say(start, "restoring");
	for (;;) {
		if ((result = restore_plan_make(&restore, &plan, error)) == 0) {
			share_restore(start, &restore);
			result = restore_run(&restore, &plan, error);
			share_restore(start, NULL);
			if (result == 0)
				say_restore(wanted, &plan,
				    clock_monotonic() - began);
			restore_plan_free(&plan);
		}
		if (result == 0 || error->cause != CAUSE_UNREACHABLE)
			break;
		log_line(LOG_WARNING, "restore_failed",
		    "the restore goes on after a while: %s",
		    error_text(error, text));
		if (start_pause(start, attempt++, until) != 0)
			break;
	}
	if (result != 0 && error->class == ERROR_DAMAGED)
		error_cure(error, "see `ckptsync list`; go on from another one "
		    "with --checkpoint, or from scratch with --no-restore");
	return result;
}

static int
set_restored(struct start *start, const char *name, struct error *error)
{
	char *path = path_join(start->needs.folder, name);

	if (path == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, name,
		    "out of memory for a path");
	free(start->result->restored);
	start->result->restored = path;
	return 0;
}

/* A restored checkpoint is known by where it came from: no second reading. */
static int
note_restored(struct start *start, const char *name, struct error *error)
{
	struct start_result *result = start->result;
	struct checkpoint **more, *copy;
	struct view *view;
	size_t i;

	view = view_take(start->needs.folder, &start->needs.settings->view,
	    NULL, error);
	if (view == NULL)
		return -1;
	for (i = 0; i < view->count; i++) {
		if (strcmp(view->checkpoints[i]->name, name) != 0)
			continue;
		more = reallocarray(result->known, result->known_count + 1,
		    sizeof(*more));
		copy = checkpoint_copy(view->checkpoints[i]);
		if (more != NULL)
			result->known = more;
		if (more != NULL && copy != NULL)
			result->known[result->known_count++] = copy;
		else
			checkpoint_free(copy);
	}
	view_free(view);
	return 0;
}

/*
 * Whether every pointer here names something that is whole, and none is
 * missing.  A pointer to what was torn would lead the trainer nowhere.
 */
static bool
pointers_hold(const struct view *view, const struct inventory *inventory,
    const struct manifest *wanted)
{
	const struct surroundings *around = view->surroundings;
	size_t i, j;

	if (around == NULL || around->pointed_count == 0)
		return wanted->pointer_count == 0;
	for (i = 0; i < around->pointed_count; i++) {
		for (j = 0; j < inventory->count; j++)
			if (strcmp(inventory->items[j].checkpoint->name,
			    around->pointed[i]) == 0)
				break;
		if (j == inventory->count)
			return false;
	}
	return true;
}

int
start_tidy(struct start *start, const struct view *view,
    const struct opening *opening, const struct inventory *inventory,
    struct error *error)
{
	const struct settings *settings = start->needs.settings;
	const struct manifest *wanted = opening->precedence.resume;
	const struct inventory_item *item;

	if (start_is_cancelled(start))
		return 0;
	if (move_torn(start, view, error) != 0)
		return -1;
	item = inventory_resume(inventory, view, wanted);
	if (settings->checkpoint != NULL) {
		if (opening->truth == NULL)
			return error_set(error, ERROR_NOTHING,
			    CAUSE_NOT_FOUND, settings->checkpoint,
			    "the remote holds no checkpoint yet");
		wanted = truth_find(opening->truth, settings->checkpoint,
		    error);
		if (wanted == NULL)
			return -1;
		item = NULL;
	} else if (settings->no_restore) {
		return 0;
	}
	if (item != NULL && (item->known == NULL ||
	    pointers_hold(view, inventory, item->known)))
		return set_restored(start, item->checkpoint->name, error);
	if (wanted == NULL) {
		log_line(LOG_INFO, "nothing_yet", "the remote holds no "
		    "checkpoint yet: a first start");
		return 0;
	}
	if (move_unproven(start, view, wanted, error) != 0 ||
	    move_unknown(start, inventory, wanted, error) != 0 ||
	    bring(start, opening->truth, wanted, error) != 0 ||
	    note_restored(start, wanted->name, error) != 0)
		return -1;
	return set_restored(start, wanted->name, error);
}
