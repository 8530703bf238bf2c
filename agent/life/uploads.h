#ifndef LIFE_UPLOADS_H
#define LIFE_UPLOADS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/manifest.h"

struct backend;
struct checkpoint;
struct rate;
struct settings;
struct writer;

/*
 * The thread that uploads, one checkpoint at a time, and at last writes
 * close.json.  It decides nothing (candidates.h does).  The environment record
 * is gathered on a thread of its own, once; the first upload waits for it
 * unless a deadline runs.
 */
struct uploads;

struct uploads_needs {
	const struct settings *settings;
	const char *folder;		/* real path of the directory */
	struct backend *backend;
	struct writer *writer;
	struct rate *rate;
	uint64_t save_attempt;
};

/* How one order ended; plain memory: free() it. */
struct uploads_result {
	enum { UPLOADS_UPLOADED, UPLOADS_CLOSED } kind;
	struct error error;	/* class ERROR_NONE: durable, or closed */
	bool known;		/* its content was durable already */
	bool snapshot;		/* read from a snapshot: `how` says which */
	char how[64];
	char id[MANIFEST_ID_SIZE];	/* of its manifest */
	uint64_t new_bytes;
	uint64_t reused_bytes;
	uint64_t took;		/* ns */
};

struct uploads_progress {
	uint64_t total;		/* bytes */
	uint64_t done;
	uint64_t moved;
	uint64_t started;	/* clock_monotonic(), 0: nothing is in flight */
};

/**
 * uploads_start(needs, error): begin; all that ${needs} names must outlive it.
 */
struct uploads *uploads_start(const struct uploads_needs *needs,
    struct error *error);

/**
 * uploads_send(uploads, checkpoint, snapshot):
 * Upload ${checkpoint}, which is borrowed until its result came.  Only when
 * nothing is in flight.
 */
void uploads_send(struct uploads *uploads, const struct checkpoint *checkpoint,
    bool snapshot);

/**
 * uploads_close(uploads, facts, deadline):
 * Write close.json (the reference to ${facts} is taken).  Only when nothing is
 * in flight; nothing can be sent after it.
 */
void uploads_close(struct uploads *uploads, json_t *facts, uint64_t deadline);

/**
 * uploads_cancel(uploads): end what is in flight soon.
 * uploads_deadline(uploads, when): it and all that follow must end by then; 0:
 * there is no such end any more.
 */
void uploads_cancel(struct uploads *uploads);
void uploads_deadline(struct uploads *uploads, uint64_t when);

/**
 * uploads_progress(uploads): how far the one in flight is.
 */
struct uploads_progress uploads_progress(struct uploads *uploads);

/**
 * uploads_fd(uploads): readable when uploads_next has a result.
 * uploads_next(uploads): the next result, the caller's, or NULL.
 */
int uploads_fd(struct uploads *uploads);
struct uploads_result *uploads_next(struct uploads *uploads);

/**
 * uploads_stop(uploads, until):
 * End the threads and free all, waiting until ${until}.  Return 0, or -1 when
 * one is still running: then nothing it needs may be freed.  NULL is fine.
 */
int uploads_stop(struct uploads *uploads, uint64_t until);

#endif
