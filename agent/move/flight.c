#include "move/flight.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

/* How often cancel and deadline are looked at while waiting. */
#define LOOK_NANOSECONDS 100000000

struct flight {
	struct flight_options options;
	struct error failure;		/* the first; class ERROR_NONE: none */
	unsigned count;			/* not landed yet */
	bool stopped;			/* all were told to stop */
	struct flight_request *all;	/* not landed yet */

	pthread_mutex_t lock;		/* for what follows, and `ended` */
	pthread_cond_t changed;
	unsigned ended;			/* how many of `all` have ended */
};

struct flight *
flight_new(const struct flight_options *options, struct error *error)
{
	pthread_condattr_t attributes;
	struct flight *flight;

	assert(options->limit > 0);
	if ((flight = calloc(1, sizeof(*flight))) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	flight->options = *options;
	pthread_mutex_init(&flight->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&flight->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return flight;
}

/* On a thread of the backend. */
static void
request_done(struct backend_request *request)
{
	struct flight_request *one = request->context;
	struct flight *flight = one->flight;

	pthread_mutex_lock(&flight->lock);
	one->ended = true;
	flight->ended++;
	pthread_cond_signal(&flight->changed);
	pthread_mutex_unlock(&flight->lock);
}

/* Whether the caller wants it to end. */
static int
check_wish(struct flight *flight, struct error *error)
{
	uint64_t deadline = 0;

	if (*flight->options.cancel)
		return error_set(error, ERROR_FAILED, CAUSE_CANCELLED, NULL,
		    "cancelled");
	if (flight->options.deadline != NULL)
		deadline = *flight->options.deadline;
	if (deadline != 0 && clock_monotonic() >= deadline)
		return error_set(error, ERROR_NOT_DURABLE, CAUSE_CANCELLED,
		    NULL, "time was up before everything was stored");
	return 0;
}

int
flight_check(struct flight *flight, struct error *error)
{
	if (flight->failure.class != ERROR_NONE) {
		*error = flight->failure;
		return -1;
	}
	return check_wish(flight, error);
}

/* Take back what has ended.  ${wait}: until something ends or it is time to
 * look at cancel and deadline again. */
static void
land(struct flight *flight, bool wait)
{
	struct flight_request *one, *next;
	struct timespec until;
	struct error error = ERROR_INIT;

	pthread_mutex_lock(&flight->lock);
	if (wait && flight->ended == 0) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += LOOK_NANOSECONDS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&flight->changed, &flight->lock, &until);
	}
	for (one = flight->all; one != NULL && flight->ended > 0; one = next) {
		next = one->next;
		if (!one->ended)
			continue;
		flight->ended--;
		flight->count--;
		if (one->previous != NULL)
			one->previous->next = one->next;
		else
			flight->all = one->next;
		if (one->next != NULL)
			one->next->previous = one->previous;
		pthread_mutex_unlock(&flight->lock);
		if (flight->options.landed(flight->options.context, one,
		    &error) == -1 && flight->failure.class == ERROR_NONE)
			flight->failure = error;
		pthread_mutex_lock(&flight->lock);
	}
	pthread_mutex_unlock(&flight->lock);
}

int
flight_start(struct flight *flight, struct flight_request *request,
    struct error *error)
{
	do {
		land(flight, flight->count >= flight->options.limit);
		if (flight_check(flight, error) == -1)
			return -1;
	} while (flight->count >= flight->options.limit);

	request->flight = flight;
	request->ended = false;
	request->previous = NULL;
	request->next = flight->all;
	if (flight->all != NULL)
		flight->all->previous = request;
	flight->all = request;
	flight->count++;
	request->request.done = request_done;
	request->request.context = request;
	backend_submit(flight->options.backend, &request->request);
	return 0;
}

int
flight_wait(struct flight *flight, struct error *error)
{
	while (flight->count > 0) {
		land(flight, true);
		if (flight_check(flight, error) == -1)
			return -1;
	}
	return flight_check(flight, error);
}

/* Tell everything that has not ended to stop.  The lock is not held over the
 * backend, which may call `done` from within; the list is this thread's, and
 * a request that ends meanwhile stays in it until it is landed. */
static void
stop(struct flight *flight)
{
	struct flight_request *one;
	bool ended;

	for (one = flight->all; one != NULL; one = one->next) {
		pthread_mutex_lock(&flight->lock);
		ended = one->ended;
		pthread_mutex_unlock(&flight->lock);
		if (!ended)
			backend_cancel(flight->options.backend, &one->request);
	}
	flight->stopped = true;
}

void
flight_end(struct flight *flight, bool cancel)
{
	struct error error = ERROR_INIT;

	while (flight->count > 0) {
		if (!flight->stopped &&
		    (cancel || check_wish(flight, &error) == -1))
			stop(flight);
		land(flight, true);
	}
}

void
flight_free(struct flight *flight)
{
	if (flight == NULL)
		return;
	assert(flight->count == 0);
	pthread_cond_destroy(&flight->changed);
	pthread_mutex_destroy(&flight->lock);
	free(flight);
}
