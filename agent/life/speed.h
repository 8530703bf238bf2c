#ifndef LIFE_SPEED_H
#define LIFE_SPEED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How fast the wire is: from the bytes handed to it (base/rate.h) while an
 * upload runs, over the last seconds.  Neither clock nor threads.
 */

#define SPEED_SAMPLES 8

struct speed {
	struct {
		uint64_t when;		/* clock_monotonic() */
		uint64_t passed;	/* bytes ever handed to the wire */
	} samples[SPEED_SAMPLES];	/* oldest first */
	unsigned count;
	bool fresh;		/* the samples of this upload gave `known` */
	uint64_t known;		/* bytes a second; 0: unknown */
};

/**
 * speed_sample(speed, now, passed):
 * ${passed} bytes were ever handed to the wire, and an upload runs.  May be
 * called as often as is handy.
 */
void speed_sample(struct speed *speed, uint64_t now, uint64_t passed);

/**
 * speed_ended(speed, bytes, took):
 * An upload that sent ${bytes} in ${took} ns has ended; counts when it was too
 * short for samples.
 */
void speed_ended(struct speed *speed, uint64_t bytes, uint64_t took);

/**
 * speed_forget(speed): the wire is another one now (a limit was lifted).
 */
void speed_forget(struct speed *speed);

/**
 * speed_now(speed): bytes a second, 0: unknown.
 */
uint64_t speed_now(const struct speed *speed);

#endif
