#ifndef STORE_STANDING_H
#define STORE_STANDING_H

#include <stdatomic.h>
#include <stdint.h>

#include "store/key.h"

struct backend;
struct error;
struct opening;

/*
 * Whether a term still counts (DESIGN 5, step C3): what stands above it.
 */

/* How long a claim may stay without an open.json until its starter is dead. */
#define STANDING_DEAD_AFTER (60 * UINT64_C(1000000000))

enum standing {
	STANDING_FAILED = -1,	/* the store did not say */
	STANDING_CLEAR,		/* nothing */
	STANDING_CLAIMED,	/* a claim without an open.json */
	STANDING_SUPERSEDED,	/* a newer open term */
	STANDING_DEAD		/* standing_wait: a claim that stays one */
};

/**
 * standing_look(backend, term, claim, newer, error):
 * Ask once.  STANDING_CLAIMED fills ${claim}; STANDING_SUPERSEDED gives the
 * newer term's opening (opening_free), NULL when it cannot be read.
 */
enum standing standing_look(struct backend *backend, const struct term *term,
    struct term *claim, struct opening **newer, struct error *error);

/**
 * standing_wait(backend, term, deadline, hurry, dead_after, newer, error):
 * Ask until it is something else than a claim, until ${deadline}
 * (STANDING_CLAIMED), or until one claim stayed for ${dead_after} ns
 * (STANDING_DEAD; CLOCK_NEVER: never said).  ${hurry} (may be NULL; 0: nothing)
 * is another deadline, which another thread may set while this waits; once
 * it is set, STANDING_DEAD is not said.
 */
enum standing standing_wait(struct backend *backend, const struct term *term,
    uint64_t deadline, const _Atomic uint64_t *hurry, uint64_t dead_after,
    struct opening **newer, struct error *error);

/**
 * standing_say(newer, error):
 * Fill ${error} with ERROR_SUPERSEDED: which agent took over, and when; NULL:
 * one that cannot be read.  Return -1.
 */
int standing_say(const struct opening *newer, struct error *error);

#endif
