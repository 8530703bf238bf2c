#ifndef LIFE_AGENT_H
#define LIFE_AGENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "life/state.h"

struct place;
struct settings;

/*
 * The agent of a directory: the process that watches, uploads and answers.
 */

enum agent_mode {
	AGENT_TRAINER,	/* under the supervisor of `run` */
	AGENT_DAEMON,	/* beside a trainer: ends at SIGTERM or SIGINT, flushed */
	AGENT_PUSH	/* makes durable what is complete, then ends */
};

struct agent_needs {
	const struct settings *settings;
	struct place *place;		/* locked */
	enum agent_mode mode;
	int link;			/* AGENT_TRAINER: to the supervisor; else -1 */
	struct state remembered;	/* the supervisor's; term.number 0: none */
	bool trainer_begun;		/* AGENT_TRAINER: it was started before */
	bool quiet;			/* no progress line */
};

struct agent_outcome {
	struct error error;	/* why, when the class is not 0 */
	json_t *checkpoints;	/* AGENT_PUSH: object from names to the last event
				 * object of each (report.h); the caller's */
};

/**
 * agent_run(needs, outcome):
 * The whole life, on the calling thread; starts all others.  Takes SIGTERM and
 * SIGINT for itself, and stands back behind the trainer (courtesy.h) but for
 * AGENT_PUSH.  Return the class that it ended with: 0, or enum error_class.
 * When a request hangs at the end the process is left with threads running
 * that use memory which is not freed: end it.
 */
int agent_run(const struct agent_needs *needs, struct agent_outcome *outcome);

#endif
