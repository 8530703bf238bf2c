#ifndef WATCH_VIEW_H
#define WATCH_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/checkpoint.h"

struct error;

/*
 * What lies in a directory at one moment: a scan, the layout table applied to
 * it, and the proof of each checkpoint (DESIGN 6).  The truth behind every
 * event.
 */

/* Which files count, and the waiting times of DESIGN 6.1; zero the rest. */
struct view_options {
	const char *const *include;	/* globs; empty: everything */
	size_t include_count;
	const char *const *exclude;	/* besides the defaults (wandb/, .git/,
					 * __pycache__/, *.tmp) */
	size_t exclude_count;
	uint64_t settle_known;		/* quiet time where leases do not work; 0: 10 s */
	uint64_t settle_unknown;	/* for files of no known structure; 0: 2 s */
	uint64_t settle_marker;		/* other ranks' files after the marker; 0: 2 s */
	bool poll;			/* look every 2 s although inotify would do */
};

struct proof;

struct view {
	/* Complete ones in the order of completion, then torn, then waiting. */
	struct checkpoint **checkpoints;
	size_t count;
	struct surroundings *surroundings;
	bool leases;		/* leases work here */
	bool blind;		/* inotify sees nothing here (NFS, FUSE) */
	size_t folders;		/* how many directories were seen */
	uint64_t check_again;	/* clock_monotonic() when a waiting one may be
				 * complete without a further event; CLOCK_NEVER */

	/* What a user should know of this folder: links that lead out of it
	 * or nowhere, folders that cannot be read. */
	struct error *notes;
	size_t note_count;

	/* What was learnt of each file, for the next view; sorted by path. */
	struct proof *proofs;
	size_t proof_count;
};

/* Told of each folder (an open descriptor) before its names are read, so
 * that a watch on it is there first; may be NULL. */
struct view_guide {
	void (*enter)(void *context, int folder, const struct identity *identity);
	void *context;
};

/**
 * view_take(folder, options, previous, error):
 * Look at ${folder} now.  ${previous} (may be NULL) is an earlier view of the
 * same folder: what has not changed since is not inspected again.  A folder
 * that is not there is an empty view.  Reads structure only; reads no tensor;
 * holds no lease for longer than the call that takes it.  The order numbers
 * are 0.  NULL only when the folder could not be read or memory ran out.
 * Files under names that start with ".ckptsync-" at the top are never seen.
 */
struct view *view_take(const char *folder, const struct view_options *options,
    const struct view *previous, struct error *error);

/**
 * view_take_guided(folder, options, previous, guide, error):
 * The same; ${guide} (may be NULL) sees each folder first.
 */
struct view *view_take_guided(const char *folder,
    const struct view_options *options, const struct view *previous,
    const struct view_guide *guide, struct error *error);

/**
 * view_may_mislead(view, checkpoint):
 * Whether a trainer that starts now could take ${checkpoint}, one of ${view}
 * that is not complete, for the newest of its series: no complete one has a
 * higher step or, where steps are not known, is younger.  A folder whose
 * marker or pointer never came, but that others have left behind, misleads
 * nobody: it may well be whole.
 */
bool view_may_mislead(const struct view *view,
    const struct checkpoint *checkpoint);

/**
 * view_surroundings(folder, options, error):
 * Only the surroundings, as they are now: what a commit records.
 */
struct surroundings *view_surroundings(const char *folder,
    const struct view_options *options, struct error *error);

/**
 * view_free(view):
 * Behave consistently with free(NULL).
 */
void view_free(struct view *view);

#endif
