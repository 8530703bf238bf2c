#ifndef MOVE_FETCHER_H
#define MOVE_FETCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "move/ranges.h"

struct backend;
struct error;

/*
 * Ranges on their way, checked while they stream.
 */
struct fetcher {
	struct backend *backend;
	const struct ranges *ranges;
	unsigned in_flight;		/* GETs at a time, 0: 16 */
	const _Atomic bool *cancel;
	_Atomic uint64_t *fetched;	/* counts every byte that came */

	/*
	 * The next ${length} bytes of ${portion}, of which ${at} were given
	 * before; 0 once more when it is fetched anew.  They are not checked
	 * yet.  On a thread of the backend, for one portion never on two at a
	 * time.
	 */
	int (*take)(void *context, const struct ranges_portion *portion,
	    uint64_t at, const void *data, size_t length,
	    struct error *error);

	/*
	 * All portions of ${range} came and are right.  On the thread of
	 * fetcher_run.  May be NULL.
	 */
	int (*done)(void *context, const struct range *range,
	    struct error *error);
	void *context;
};

/**
 * fetcher_run(fetcher, error):
 * Fetch all.  What is wrong is fetched a second time before it is called
 * damaged.  Return 0, or -1: ERROR_DAMAGED names checkpoint and chunk,
 * CAUSE_CANCELLED, CAUSE_UNREACHABLE, ..., or what a hook said.
 */
int fetcher_run(const struct fetcher *fetcher, struct error *error);

#endif
