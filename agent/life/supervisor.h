#ifndef LIFE_SUPERVISOR_H
#define LIFE_SUPERVISOR_H

#include <stdbool.h>

struct error;
struct place;
struct settings;

/*
 * The first process of `run`: small, without threads and without a network.
 * It forks the agent, starts it again when it dies, starts the trainer when
 * the agent says so, passes signals on, reaps (it may be process 1), and ends
 * with the right exit code.  Killing the agent never ends the training; when
 * the supervisor itself is killed, both go on, and the agent ends after the
 * trainer.
 */

/**
 * supervisor_run(settings, place, error):
 * The whole of `run`; ${place} is locked.  Before any thread was started.
 * Return the exit code; ${error} says why it could not even begin, when its
 * class is not ERROR_NONE.
 */
int supervisor_run(const struct settings *settings, struct place *place,
    struct error *error);

/* How a run ended. */
struct supervisor_end {
	bool noticed;		/* a deadline ran */
	bool interrupted;	/* stopped by a second SIGINT */
	bool stopped;		/* the trainer was stopped as superseded */
	bool began;		/* the trainer was to be started */
	int trainer;		/* its status; 0 when it was never started */
	int class;		/* what the agent said: enum error_class */
};

/**
 * supervisor_status(end):
 * The exit code (DESIGN 12): after a notice 75 or 6; else the trainer's
 * status, and if that is 0, 0, 5 or 6; before the trainer was to be started,
 * whatever kept it from that.
 */
int supervisor_status(const struct supervisor_end *end);

#endif
