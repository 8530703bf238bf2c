#include "base/queue.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	pthread_cond_t emptied;
	size_t capacity;
	int event;	/* readable exactly while count > 0 or closed */

	/* Under the lock. */
	size_t first;
	size_t count;
	bool closed;
	bool readable;	/* what was last told to ${event} */
	void *items[];
};

struct queue *
queue_new(size_t capacity, struct error *error)
{
	struct queue *queue;
	pthread_condattr_t attributes;

	assert(capacity > 0);
	if (capacity > (SIZE_MAX - sizeof(*queue)) / sizeof(void *) ||
	    (queue = calloc(1, sizeof(*queue) +
	    capacity * sizeof(void *))) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a queue of %zu items", capacity);
		return NULL;
	}
	queue->capacity = capacity;
	queue->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (queue->event < 0) {
		error_set_errno(error, errno, NULL,
		    "could not make an event descriptor");
		free(queue);
		return NULL;
	}

	/* These only fill in memory on Linux; they don't fail. */
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->filled, &attributes);
	pthread_cond_init(&queue->emptied, &attributes);
	pthread_condattr_destroy(&attributes);
	return queue;
}

/* Make the descriptor say what is; with the lock held. */
static void
tell_event(struct queue *queue)
{
	bool readable = queue->count > 0 || queue->closed;
	eventfd_t value;

	if (readable == queue->readable)
		return;
	queue->readable = readable;

	/* The counter is 0 or 1, so neither call can be refused. */
	if (readable)
		(void)eventfd_write(queue->event, 1);
	else
		(void)eventfd_read(queue->event, &value);
}

static int
put(struct queue *queue, void *item, bool wait)
{
	int result = -1;

	assert(item != NULL);
	pthread_mutex_lock(&queue->lock);
	while (wait && queue->count == queue->capacity && !queue->closed)
		pthread_cond_wait(&queue->emptied, &queue->lock);
	if (!queue->closed && queue->count < queue->capacity) {
		size_t last = queue->first + queue->count;

		if (last >= queue->capacity)
			last -= queue->capacity;
		queue->items[last] = item;
		queue->count++;
		tell_event(queue);
		pthread_cond_signal(&queue->filled);
		result = 0;
	}
	pthread_mutex_unlock(&queue->lock);
	return result;
}

int
queue_put(struct queue *queue, void *item)
{
	return put(queue, item, true);
}

int
queue_try_put(struct queue *queue, void *item)
{
	return put(queue, item, false);
}

/* Now and ${timeout} on the real clock: condition variables know no other. */
static struct timespec
deadline_after(uint64_t timeout)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now.tv_sec += (time_t)(timeout / CLOCK_SECOND);
	now.tv_nsec += (long)(timeout % CLOCK_SECOND);
	if (now.tv_nsec >= (long)CLOCK_SECOND) {
		now.tv_nsec -= (long)CLOCK_SECOND;
		now.tv_sec++;
	}
	return now;
}

/* Wait until there is an item, the queue is closed, or time is up. */
static void
wait_filled(struct queue *queue, uint64_t timeout)
{
	struct timespec deadline;
	int result = 0;

	if (timeout == 0)
		return;
	deadline = deadline_after(timeout);
	while (queue->count == 0 && !queue->closed && result == 0) {
		if (timeout == CLOCK_NEVER)
			result = pthread_cond_wait(&queue->filled,
			    &queue->lock);
		else
			result = pthread_cond_timedwait(&queue->filled,
			    &queue->lock, &deadline);
	}
}

void *
queue_take(struct queue *queue, uint64_t timeout)
{
	void *item = NULL;

	pthread_mutex_lock(&queue->lock);
	wait_filled(queue, timeout);
	if (queue->count > 0) {
		item = queue->items[queue->first];
		queue->first++;
		if (queue->first == queue->capacity)
			queue->first = 0;
		queue->count--;
		tell_event(queue);
		pthread_cond_signal(&queue->emptied);
	}
	pthread_mutex_unlock(&queue->lock);
	return item;
}

int
queue_fd(struct queue *queue)
{
	return queue->event;
}

size_t
queue_length(struct queue *queue)
{
	size_t count;

	pthread_mutex_lock(&queue->lock);
	count = queue->count;
	pthread_mutex_unlock(&queue->lock);
	return count;
}

void
queue_close(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->closed = true;
	tell_event(queue);
	pthread_cond_broadcast(&queue->filled);
	pthread_cond_broadcast(&queue->emptied);
	pthread_mutex_unlock(&queue->lock);
}

void
queue_free(struct queue *queue)
{
	if (queue == NULL)
		return;
	close(queue->event);
	pthread_cond_destroy(&queue->emptied);
	pthread_cond_destroy(&queue->filled);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}
