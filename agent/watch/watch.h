#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "format/checkpoint.h"
#include "watch/view.h"

/*
 * A directory, watched: a thread of its own with one inotify descriptor (or
 * polling every 2 s where inotify sees nothing) that takes a new view when
 * something may have changed, and tells what became of each checkpoint.
 * Events are hints; the scan is the truth.  Writes nothing into the directory.
 */
struct watch;

enum watch_kind {
	WATCH_COMPLETE,		/* `checkpoint` is complete: each version once, in order */
	WATCH_TORN,		/* provably torn and nobody writes it; each version once */
	WATCH_WAITING,		/* something is being written; once a name and reason */
	WATCH_SCANNED,		/* the scan asked for with `token` is over: all that was
				 * complete when it was asked for has been told */
	WATCH_NOTE		/* for the log: `note` (polling here, overflow, watch limit
				 * reached, folder not there yet, bytes of a complete one
				 * never written); class ERROR_NONE: good news */
};

struct watch_event {
	enum watch_kind kind;
	struct checkpoint *checkpoint;	/* the receiver's, or NULL */
	uint64_t token;
	struct error note;
};

/**
 * watch_start(folder, options, error):
 * Begin.  ${folder} may not exist yet: it is waited for.  ${options} is
 * copied.  NULL only when a thread or descriptor could not be had.
 */
struct watch *watch_start(const char *folder,
    const struct view_options *options, struct error *error);

/**
 * watch_fd(watch):
 * Readable while watch_next has something.
 */
int watch_fd(struct watch *watch);

/**
 * watch_next(watch):
 * The next event, or NULL when there is none now.  The receiver frees it with
 * watch_event_free (which frees the checkpoint unless it was taken out).
 * Never blocks.  If the receiver lags, versions that a newer one of the same
 * name has replaced may be left out.
 */
struct watch_event *watch_next(struct watch *watch);
void watch_event_free(struct watch_event *event);

/**
 * watch_scan(watch, token):
 * Look at everything now and tell WATCH_SCANNED with ${token} after it.
 * Does not wait.  Any thread.
 */
void watch_scan(struct watch *watch, uint64_t token);

/**
 * watch_free(watch):
 * End the thread and free all.  Behave consistently with free(NULL).
 */
void watch_free(struct watch *watch);

#endif
