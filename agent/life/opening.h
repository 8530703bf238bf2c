#ifndef LIFE_OPENING_H
#define LIFE_OPENING_H

#include <stdbool.h>

#include "life/precedence.h"

struct error;
struct start;
struct truth;

/*
 * The remote's side of a start: a look at it, the takeover, and what was
 * adopted.
 */
struct opening {
	struct truth *truth;		/* after the takeover; NULL: nothing yet */
	struct precedence precedence;	/* against its resume point */
	bool overdue;			/* the last try had not enough time */
};

/**
 * opening_run(start, opening, error):
 * Reach the remote, trying again as start->needs.give_up allows, and take
 * over; fills start->result's backend, writer and state.  Return 0 or -1.
 */
int opening_run(struct start *start, struct opening *opening,
    struct error *error);

/**
 * opening_end(opening): free what it holds.
 */
void opening_end(struct opening *opening);

#endif
