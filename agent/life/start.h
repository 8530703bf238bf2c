#ifndef LIFE_START_H
#define LIFE_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "life/state.h"

struct backend;
struct checkpoint;
struct settings;
struct writer;

/*
 * How an agent's life begins (DESIGN 9), on a thread of its own: look at the
 * directory and at the remote, take over, tell what is known, newer or older,
 * and for a trainer that is about to start move torn checkpoints out of its
 * sight and restore the resume point.
 */
struct start;

struct start_needs {
	const struct settings *settings;
	const char *folder;	/* real path */
	const char *state_path;	/* NULL: none */
	struct state remembered;	/* by the supervisor; term.number 0: see state_path */
	bool tidy;		/* no trainer runs yet: move what is torn, restore */
	bool again;		/* this agent replaces one that died: end as
				 * superseded when a newer one has taken over */
	uint64_t give_up;	/* ns for a remote that does not answer; CLOCK_NEVER */
};

/* What came of it.  Who takes it owns all. */
struct start_result {
	struct error error;		/* class ERROR_NONE: begun */
	struct backend *backend;
	struct writer *writer;
	struct state state;		/* the term that began */
	char *restored;			/* path to go on from, "": none */

	/* Checkpoints here that need no upload. */
	struct checkpoint **known;	/* durable */
	size_t known_count;
	struct checkpoint **older;	/* unknown, but older than the resume point */
	size_t older_count;

	bool undurable;		/* something complete here is not durable, or that
				 * was not found out */
};

struct start_progress {
	const char *doing;	/* words for a log line */
	uint64_t total;		/* bytes of a restore, 0: none runs */
	uint64_t done;
};

/**
 * start_begin(needs, error): start the thread.
 */
struct start *start_begin(const struct start_needs *needs,
    struct error *error);

/**
 * start_fd(start): readable when start_take has the result.
 * start_take(start): the result, once; NULL while it is not there.
 */
int start_fd(struct start *start);
struct start_result *start_take(struct start *start);

/**
 * start_progress(start): what it is doing.
 */
struct start_progress start_progress(struct start *start);

/**
 * start_cancel(start): end soon, with CAUSE_CANCELLED.
 */
void start_cancel(struct start *start);

/**
 * start_free(start, until):
 * Return 0, or -1 when its thread has not ended by ${until}.  NULL is fine.
 */
int start_free(struct start *start, uint64_t until);

/**
 * start_result_free(result): with all that was not taken out of it (set what
 * was to NULL).  Behave consistently with free(NULL).
 */
void start_result_free(struct start_result *result);

#endif
