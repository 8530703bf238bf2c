#ifndef STORE_TAKEOVER_H
#define STORE_TAKEOVER_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/key.h"
#include "store/glance.h"

struct backend;
struct error;

/*
 * The terms that one agent opened or, when the store did not answer, may have
 * opened; the oldest of many are forgotten.
 */
#define TAKEOVER_OWN_MAXIMUM 16

struct takeover_own {
	pthread_mutex_t mutex;	/* initialized by who makes it */
	struct term items[TAKEOVER_OWN_MAXIMUM];
	size_t count;		/* ever added */
};

/**
 * takeover_own_add(own, term): ${term} is one of ours.  Any thread.
 * takeover_own_holds(own, term): whether it is.  Any thread.
 */
void takeover_own_add(struct takeover_own *own, const struct term *term);
bool takeover_own_holds(struct takeover_own *own, const struct term *term);

/* Who wants to take over. */
struct takeover_request {
	struct backend *backend;
	uint32_t node, nodes;
	json_t *identity;	/* NULL: none */
	struct takeover_own *own;	/* where the new term is added */
	bool anew;		/* only from a term of our own: another open one
				 * above it is ERROR_SUPERSEDED */
	uint64_t deadline;	/* for waiting for other starters */
	const _Atomic uint64_t *hurry;	/* as in standing_wait; may be NULL */
};

/* A chunk of the predecessor's upload that was cut. */
struct takeover_leftover {
	uint64_t attempt;
	uint8_t digest[SHA256_SIZE];
	uint64_t size;
};

/*
 * What a takeover gave.  A checkpoint that the truth names but whose manifest
 * is damaged, or still gone after ten looks, is not adopted and stands in
 * glance.lost, and an error event names it: one lost checkpoint must not keep
 * the others from going on.  The writer then deletes nothing in older terms,
 * so that it can be salvaged by hand.  The truth itself (the newest manifest,
 * or the open.json of the highest term) must be whole: without it nobody knows
 * what is valid, and the takeover is refused (ERROR_DAMAGED).
 */
struct takeover {
	struct term term;	/* the new one */
	struct glance glance;	/* what was adopted, and from which term */
	struct takeover_leftover *leftovers;
	size_t leftover_count;
};

/**
 * takeover_run(request, takeover, error):
 * Steps T1 to T6 (DESIGN 5).  Return 0 and fill ${takeover} (takeover_free):
 * in charge.  -1: see writer_take_over.
 */
int takeover_run(const struct takeover_request *request,
    struct takeover *takeover, struct error *error);

/**
 * takeover_free(takeover):
 * Free what ${takeover} holds, not itself; it may be freed twice.
 */
void takeover_free(struct takeover *takeover);

#endif
