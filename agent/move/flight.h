#ifndef MOVE_FLIGHT_H
#define MOVE_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "store/backend.h"

/*
 * A bounded number of requests on their way.  One thread starts them and
 * waits; the backend's threads end them.  It looks at `cancel` and `deadline`
 * several times a second, so both work soon whatever the store does.
 */
struct flight;

/* One request; embedded in what its owner knows about it. */
struct flight_request {
	struct backend_request request;	/* `done` and `context` are the flight's:
					 * context points to this struct */
	struct flight *flight;
	struct flight_request *next;
	struct flight_request *previous;
	bool ended;
};

struct flight_options {
	struct backend *backend;
	unsigned limit;			/* at a time, > 0 */
	const _Atomic bool *cancel;
	const _Atomic uint64_t *deadline;	/* may be NULL */

	/*
	 * ${request} has ended, well or not (request.error); it is the owner's
	 * again.  On the thread that starts and waits.  -1 with ${error}: this
	 * fails the flight (the first such error counts).
	 */
	int (*landed)(void *context, struct flight_request *request,
	    struct error *error);
	void *context;
};

/**
 * flight_new(options, error):
 * Nothing on its way.  NULL when out of memory.
 */
struct flight *flight_new(const struct flight_options *options,
    struct error *error);

/**
 * flight_check(flight, error):
 * -1 when the flight has failed, was cancelled, or its deadline is over.
 */
int flight_check(struct flight *flight, struct error *error);

/**
 * flight_start(flight, request, error):
 * Wait for room and submit.  Return 0: `landed` will be called; -1:
 * ${request} was not taken (see flight_check).
 */
int flight_start(struct flight *flight, struct flight_request *request,
    struct error *error);

/**
 * flight_wait(flight, error):
 * Wait until all have landed.  Return 0, or -1 as soon as it failed.
 */
int flight_wait(struct flight *flight, struct error *error);

/**
 * flight_end(flight, cancel):
 * Wait until everything has landed, having told it to stop when ${cancel};
 * without, a cancel or deadline still stops it.
 */
void flight_end(struct flight *flight, bool cancel);

/**
 * flight_free(flight):
 * Nothing may be on its way.  Behave consistently with free(NULL).
 */
void flight_free(struct flight *flight);

#endif
