#ifndef MOVE_RESTORE_H
#define MOVE_RESTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "move/progress.h"

struct backend;
struct manifest;
struct truth;

/*
 * The way back (DESIGN 9): plan, fetch in parallel, check every chunk, write
 * into `.ckptsync-restore-<id>/` inside the target, fsync, rename each
 * checkpoint into place, pointers last.  A restore that is cut goes on where
 * it was; bytes that are here already are not fetched.
 */
struct restore {
	/* What is needed; all borrowed. */
	struct backend *backend;
	const struct truth *truth;
	const char *folder;		/* the target; made when missing */
	const struct manifest *const *wanted;	/* checkpoints, resume point last */
	size_t wanted_count;
	bool pointers;			/* of the last wanted one */
	bool companions;		/* of the newest valid manifest; they never
					 * replace a longer local file */
	const char *const *include;	/* globs on paths; empty: everything */
	size_t include_count;
	const char *const *exclude;
	size_t exclude_count;
	bool force;			/* replace what the remote does not know */
	bool keep_pointers;		/* do not touch pointers that are there */
	unsigned in_flight;		/* GETs at a time, 0: 16 */

	_Atomic bool cancel;
	struct progress progress;
};

/* What would come down. */
struct restore_plan {
	uint64_t total_bytes;		/* of the files wanted */
	uint64_t fetch_bytes;		/* of chunks to be fetched */
	uint64_t present_bytes;		/* already here, in place or from a cut restore */
	struct restore_step {
		char *path;		/* a checkpoint, pointer or companion */
		enum { RESTORE_SAME, RESTORE_NEW, RESTORE_REPLACE } action;
		uint64_t size;
	} *steps;
	size_t count;

	struct selection *selection;	/* restore_run's */
};

/**
 * restore_plan_make(restore, plan, error):
 * Compare with what lies in the target and say what has to be done; changes
 * nothing.  -1 with CAUSE_EXISTS when a complete local file that the remote
 * does not know would be replaced (named in the error; --force is the cure).
 */
int restore_plan_make(struct restore *restore, struct restore_plan *plan,
    struct error *error);
void restore_plan_free(struct restore_plan *plan);

/**
 * restore_run(restore, plan, error):
 * Do it.  Return 0 when all is in place; -1: ERROR_DAMAGED (a chunk is not
 * what it should be, or is gone: names checkpoint and chunk),
 * CAUSE_UNREACHABLE, CAUSE_NO_SPACE (checked before anything is fetched, and
 * when it happens), CAUSE_DENIED (read-only), CAUSE_CANCELLED.  Whatever
 * happens, no checkpoint in the target is half old and half new, and what was
 * fetched is kept for the next run.
 */
int restore_run(struct restore *restore, const struct restore_plan *plan,
    struct error *error);

#endif
