#ifndef LIFE_TRIAL_H
#define LIFE_TRIAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/key.h"

struct backend;
struct error;

/*
 * Objects of our own for trying out a remote, "doctor-<16 hex digits>-<n>":
 * format 1 has no such key at the top (store/key.h), so nobody ever takes one
 * for something else.  All are removed again by trial_clear.
 */
#define TRIAL_PREFIX "doctor-"
#define TRIAL_OBJECTS 160	/* how many there can be */

struct trial {
	struct backend *backend;
	const atomic_bool *stop;	/* the user has had enough */
	char prefix[40];		/* of all keys of this trial */
	size_t count;			/* keys given so far */
	bool unanswered;		/* a PUT was, which may still work */
};

/**
 * trial_init(trial, backend, stop): a trial without objects.
 */
void trial_init(struct trial *trial, struct backend *backend,
    const atomic_bool *stop);

/**
 * trial_key(trial, key):
 * The key of a new object.  Return false when TRIAL_OBJECTS are there.
 */
bool trial_key(struct trial *trial, char key[KEY_SIZE]);

/**
 * trial_clear(trial, deadline, error):
 * Delete every object of it, and look whether that is so.  Return 0, or -1
 * when one may remain.
 */
int trial_clear(struct trial *trial, uint64_t deadline, struct error *error);

/* What writing, reading, listing and deleting came to. */
struct trial_outcome {
	const char *failed;	/* "write", "read", "list", "delete"; NULL: none */
	bool lags;		/* a listing did not show what had been done */
	bool wrong_bytes;	/* what was read is not what was written */
	uint64_t put;		/* ns that the fastest write took */
};

/**
 * trial_run(trial, deadline, outcome, error):
 * Three rounds of: write an object, read it, list it, delete it, list again,
 * read again.  Return 0 when all was answered as it should be, up to
 * outcome->lags; else -1.
 */
int trial_run(struct trial *trial, uint64_t deadline,
    struct trial_outcome *outcome, struct error *error);

/* How fast bytes go up. */
struct trial_speed {
	uint64_t bytes;		/* acknowledged in `time`; 0: none in time */
	uint64_t time;		/* ns */
	uint64_t per_second;
};

/**
 * trial_speed(trial, time, speed, error):
 * Send at most 33 MiB of random bytes, as many requests at once as an upload,
 * for about ${time}; then wait at most as long again for the answers to what
 * was begun, also when trial->stop was set: what is cut off could still take
 * effect.  Only acknowledged objects count.  Return 0, or -1 when a request
 * failed for another reason than the time.
 */
int trial_speed(struct trial *trial, uint64_t time, struct trial_speed *speed,
    struct error *error);

#endif
