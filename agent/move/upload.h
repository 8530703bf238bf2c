#ifndef MOVE_UPLOAD_H
#define MOVE_UPLOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "format/checkpoint.h"
#include "move/progress.h"

struct backend;
struct manifest;
struct rate;
struct writer;

/*
 * The upload of one checkpoint: read each byte once, cut, hash, store what is
 * new, commit (DESIGN 4, 5, 7).  PUT bodies are read again from the page
 * cache, so memory does not grow with connections.
 */

enum upload_snapshot { UPLOAD_IN_PLACE, UPLOAD_SNAPSHOT };

struct upload {
	/* What is needed; all borrowed. */
	struct backend *backend;
	struct writer *writer;
	int folder;			/* descriptor of the watched directory */
	const struct checkpoint *checkpoint;	/* complete */
	struct surroundings *(*look)(void *context, struct error *error);
	void *look_context;		/* `look` gives the surroundings as they are
					 * now; asked at the start, for pointers,
					 * and at the commit */
	json_t *environment;		/* may be NULL */
	uint64_t companion_limit;	/* bytes each; 0: none */
	struct rate *rate;		/* may be NULL */
	unsigned in_flight;		/* PUTs at a time, 0: 16 */
	enum upload_snapshot snapshot;	/* reflink or copy first (DESIGN 7) */
	const char *spool;		/* --spool; NULL: the directory's file system */
	uint64_t save_attempt;		/* the save it belongs to: start of the job */

	/* May be set by another thread while it runs. */
	_Atomic bool cancel;		/* stop soon: CAUSE_CANCELLED */
	_Atomic uint64_t deadline;	/* clock_monotonic(); 0: none */

	struct progress progress;	/* bytes of the checkpoint's files */
};

struct upload_outcome {
	bool known;			/* identical content was durable already */
	const struct manifest *manifest;	/* the writer's */
	uint64_t new_bytes;		/* stored for it, companions included */
	uint64_t reused_bytes;
	uint64_t took;			/* ns */
	char snapshot[64];		/* "", "reflink", "copy", "copy in spool" */
};

/**
 * upload_run(upload, outcome, error):
 * Do it; on the calling thread, which hashes, while the backend's threads
 * send.  Return 0 when it is durable.  -1: CAUSE_CHANGED when a file changed
 * under it (nothing is committed; what was sent stays known to the writer),
 * ERROR_SUPERSEDED, CAUSE_UNREACHABLE (call again later: what was stored is
 * not sent again), CAUSE_CANCELLED, CAUSE_NO_SPACE, ERROR_NOT_DURABLE.
 * Every request has ended when it returns.
 */
int upload_run(struct upload *upload, struct upload_outcome *outcome,
    struct error *error);

#endif
