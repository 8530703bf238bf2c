#ifndef MOVE_PROGRESS_H
#define MOVE_PROGRESS_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * How far a transfer is.  Written by the transfer, read by anybody; each
 * number is right by itself, all together only nearly so.
 */
struct progress {
	_Atomic uint64_t total;		/* bytes in all, known early */
	_Atomic uint64_t done;		/* of these: stored, fetched or found to be there */
	_Atomic uint64_t moved;		/* bytes that went over the wire and counted */
	_Atomic uint64_t reused;	/* bytes that were there already */
	_Atomic uint64_t started;	/* clock_monotonic() */
};

#endif
