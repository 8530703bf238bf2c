#ifndef LIFE_START_PRIVATE_H
#define LIFE_START_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "life/inventory.h"
#include "life/start.h"
#include "move/restore.h"

/*
 * What the files of the start share: start.c (the thread), opening.c (the
 * remote), tidy.c (the directory).
 */

struct opening;
struct queue;

struct start {
	struct start_needs needs;
	pthread_t thread;
	struct queue *results;
	_Atomic bool cancel;

	/* The thread's, until it is put into results. */
	struct start_result *result;

	pthread_mutex_t lock;
	const char *doing;	/* under the lock */
	struct restore *restore;	/* under the lock; NULL: none runs */
};

bool start_is_cancelled(struct start *start);
void start_say(struct start *start, const char *doing);

/**
 * start_tidy(start, view, opening, inventory, error):
 * Before a trainer starts: move torn checkpoints out of its sight, restore
 * the resume point unless something here is newer, and set
 * start->result->restored.  Return 0 or -1.
 */
int start_tidy(struct start *start, const struct view *view,
    const struct opening *opening, const struct inventory *inventory,
    struct error *error);

/**
 * start_pause(start, attempt, until):
 * Wait before try number ${attempt} + 1 (from 0), longer each time, up to
 * 30 s.  Return 0, or -1 when ${until} (clock_monotonic) is reached or the
 * start was cancelled.
 */
int start_pause(struct start *start, unsigned attempt, uint64_t until);

#endif
