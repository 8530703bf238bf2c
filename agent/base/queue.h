#ifndef BASE_QUEUE_H
#define BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/*
 * A bounded queue of pointers between threads.  It owns none of them.
 * Every function may be called from any thread but queue_free, which is for
 * the owner when all others have stopped using it.
 */
struct queue;

/**
 * queue_new(capacity, error):
 * A queue for at most ${capacity} (> 0) items, or NULL.
 */
struct queue *queue_new(size_t capacity, struct error *error);

/**
 * queue_put(queue, item):
 * Add ${item} (not NULL), waiting for room.  Return 0, or -1 when the queue
 * was closed: the item is still the caller's.
 */
int queue_put(struct queue *queue, void *item);

/**
 * queue_try_put(queue, item):
 * The same without waiting: -1 also when it is full.
 */
int queue_try_put(struct queue *queue, void *item);

/**
 * queue_take(queue, timeout):
 * The oldest item, waiting at most ${timeout} nanoseconds (CLOCK_NEVER: no
 * limit; 0: not at all).  NULL when none came, or when the queue is closed
 * and empty.  The time is real time, also where a test has replaced the
 * clocks.
 */
void *queue_take(struct queue *queue, uint64_t timeout);

/**
 * queue_fd(queue):
 * A descriptor that is readable while the queue holds items or is closed, for
 * an event loop.  It is the queue's; poll it only.
 */
int queue_fd(struct queue *queue);

/**
 * queue_length(queue):
 * How many items wait now.
 */
size_t queue_length(struct queue *queue);

/**
 * queue_close(queue):
 * Take no more items; wake everybody that waits.  What is inside can still be
 * taken.
 */
void queue_close(struct queue *queue);

/**
 * queue_free(queue):
 * Behave consistently with free(NULL).  Items still inside are the caller's
 * loss: take them out first.
 */
void queue_free(struct queue *queue);

#endif
