#include "base/rate.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"

struct rate {
	pthread_mutex_t lock;

	/* Under the lock. */
	uint64_t limit;
	uint64_t bucket;	/* bytes that may pass now */
	uint64_t part;		/* of the next byte, in billionths */
	uint64_t filled;	/* the time up to which the bucket was filled */
	uint64_t passed;	/* bytes ever allowed */
};

/* One fifth of a second, and never so little that nothing passes. */
static uint64_t
capacity_of(uint64_t limit)
{
	return limit >= 5 ? limit / 5 : 1;
}

/* Add what has come since the last time; with the lock held. */
static void
refill(struct rate *rate)
{
	uint64_t now = clock_monotonic();
	uint64_t capacity = capacity_of(rate->limit);
	uint64_t passed = now - rate->filled;
	unsigned __int128 parts = (unsigned __int128)passed * rate->limit +
	    rate->part;

	rate->filled = now;
	rate->part = (uint64_t)(parts % CLOCK_SECOND);
	if (parts / CLOCK_SECOND > capacity - rate->bucket) {
		rate->bucket = capacity;
		rate->part = 0;
	} else {
		rate->bucket += (uint64_t)(parts / CLOCK_SECOND);
	}
}

struct rate *
rate_new(uint64_t limit, struct error *error)
{
	struct rate *rate = calloc(1, sizeof(*rate));

	if (rate == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a rate limit");
		return NULL;
	}
	pthread_mutex_init(&rate->lock, NULL);
	rate->limit = limit;
	rate->bucket = capacity_of(limit);
	rate->filled = clock_monotonic();
	return rate;
}

void
rate_set(struct rate *rate, uint64_t limit)
{
	pthread_mutex_lock(&rate->lock);
	if (rate->limit != 0)
		refill(rate);
	else
		rate->bucket = capacity_of(limit);
	rate->limit = limit;
	rate->filled = clock_monotonic();
	if (rate->bucket > capacity_of(limit))
		rate->bucket = capacity_of(limit);
	pthread_mutex_unlock(&rate->lock);
}

uint64_t
rate_allow(struct rate *rate, uint64_t wanted)
{
	uint64_t allowed = wanted;

	pthread_mutex_lock(&rate->lock);
	if (rate->limit != 0) {
		refill(rate);
		if (allowed > rate->bucket)
			allowed = rate->bucket;
		rate->bucket -= allowed;
	}
	rate->passed += allowed;
	pthread_mutex_unlock(&rate->lock);
	return allowed;
}

uint64_t
rate_passed(struct rate *rate)
{
	uint64_t passed;

	pthread_mutex_lock(&rate->lock);
	passed = rate->passed;
	pthread_mutex_unlock(&rate->lock);
	return passed;
}

/*
 * Once the bucket is empty wait for a quarter of it, 50 ms, rather than for a
 * byte: nobody wants to wake up for each byte.
 */
uint64_t
rate_wait(struct rate *rate)
{
	uint64_t wait = 0;

	pthread_mutex_lock(&rate->lock);
	if (rate->limit != 0) {
		refill(rate);
		if (rate->bucket == 0) {
			unsigned __int128 parts =
			    (unsigned __int128)CLOCK_SECOND *
			    (capacity_of(rate->limit) / 4 + 1) - rate->part;

			wait = (uint64_t)((parts + rate->limit - 1) /
			    rate->limit);
		}
	}
	pthread_mutex_unlock(&rate->lock);
	return wait;
}

void
rate_free(struct rate *rate)
{
	if (rate == NULL)
		return;
	pthread_mutex_destroy(&rate->lock);
	free(rate);
}
