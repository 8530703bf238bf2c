#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "s3/call.h"
#include "s3/pool.h"

/* Calls in the order in which they came. */
struct line {
	struct call *first;
	struct call **last;
};

struct seat {
	CURLM *multi;
	unsigned capacity;
	unsigned taken;		/* calls that have a place here */
	struct line inbox;	/* those that the thread did not take yet */
};

struct pool {
	pthread_mutex_t lock;
	struct line waiting;
	bool closed;
	unsigned count;
	struct seat seats[];
};

static void
line_init(struct line *line)
{
	line->first = NULL;
	line->last = &line->first;
}

static void
line_put(struct line *line, struct call *call)
{
	call->next = NULL;
	*line->last = call;
	line->last = &call->next;
}

/* Take out the call that ${place} points at. */
static struct call *
line_take(struct line *line, struct call **place)
{
	struct call *call = *place;

	if (call == NULL)
		return NULL;
	*place = call->next;
	if (line->last == &call->next)
		line->last = place;
	call->next = NULL;
	return call;
}

struct pool *
pool_new(unsigned seats, unsigned connections, struct error *error)
{
	struct pool *pool = calloc(1, sizeof(*pool) +
	    seats * sizeof(pool->seats[0]));

	if (pool == NULL || pthread_mutex_init(&pool->lock, NULL) != 0) {
		free(pool);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	line_init(&pool->waiting);
	pool->count = seats;
	for (unsigned i = 0; i < seats; i++) {
		line_init(&pool->seats[i].inbox);
		pool->seats[i].capacity = connections / seats +
		    (i < connections % seats ? 1 : 0);
	}
	return pool;
}

void
pool_free(struct pool *pool)
{
	if (pool == NULL)
		return;
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

void
pool_seat(struct pool *pool, unsigned seat, CURLM *multi)
{
	pool->seats[seat].multi = multi;
}

unsigned
pool_capacity(const struct pool *pool, unsigned seat)
{
	return pool->seats[seat].capacity;
}

/* The seat with the fewest calls that has room, or NULL. */
static struct seat *
seat_find(struct pool *pool)
{
	struct seat *best = NULL;

	for (unsigned i = 0; i < pool->count; i++) {
		struct seat *seat = &pool->seats[i];

		if (seat->taken < seat->capacity &&
		    (best == NULL || seat->taken < best->taken))
			best = seat;
	}
	return best;
}

static void
seat_give(struct pool *pool, struct seat *seat, struct call *call)
{
	call->waiting = false;
	call->seat = (unsigned)(seat - pool->seats);
	seat->taken++;
	line_put(&seat->inbox, call);
	curl_multi_wakeup(seat->multi);
}

static void
cancel(struct call *call)
{
	error_set(&call->request->error, ERROR_FAILED, CAUSE_CANCELLED,
	    call->request->key, "cancelled");
}

void
pool_submit(struct pool *pool, struct call *call)
{
	struct seat *seat;
	bool closed;

	pthread_mutex_lock(&pool->lock);
	closed = pool->closed;
	if (!closed) {
		call->request->private_data = call;
		seat = seat_find(pool);
		if (seat != NULL) {
			seat_give(pool, seat, call);
		} else {
			call->waiting = true;
			line_put(&pool->waiting, call);
		}
	}
	pthread_mutex_unlock(&pool->lock);
	if (closed) {
		cancel(call);
		pool_finish(pool, call, false);
	}
}

struct call *
pool_take(struct pool *pool, unsigned seat)
{
	struct line *inbox = &pool->seats[seat].inbox;
	struct call *call;

	pthread_mutex_lock(&pool->lock);
	call = line_take(inbox, &inbox->first);
	pthread_mutex_unlock(&pool->lock);
	return call;
}

void
pool_finish(struct pool *pool, struct call *call, bool seated)
{
	struct s3_request *request = call->request;
	void (*over)(void *context) = call->over;
	void *context = call->over_context;

	pthread_mutex_lock(&pool->lock);
	request->private_data = NULL;
	if (seated) {
		struct seat *seat = &pool->seats[call->seat];
		struct call *next = line_take(&pool->waiting,
		    &pool->waiting.first);

		assert(seat->taken > 0);
		seat->taken--;
		if (next != NULL)
			seat_give(pool, seat, next);
	}
	pthread_mutex_unlock(&pool->lock);
	free(call);
	if (over != NULL)
		over(context);
	else
		request->done(request);
}

struct call *
pool_take_overdue(struct pool *pool, uint64_t now)
{
	struct call *call = NULL;

	pthread_mutex_lock(&pool->lock);
	for (struct call **place = &pool->waiting.first; *place != NULL;
	    place = &(*place)->next) {
		uint64_t deadline = (*place)->request->deadline;

		if (deadline != 0 && deadline <= now) {
			call = line_take(&pool->waiting, place);
			call->waiting = false;
			break;
		}
	}
	pthread_mutex_unlock(&pool->lock);
	return call;
}

/* Take a call out of the waiting line. */
static void
unline(struct pool *pool, struct call *call)
{
	struct call **place = &pool->waiting.first;

	while (*place != call)
		place = &(*place)->next;
	line_take(&pool->waiting, place);
	call->waiting = false;
}

void
pool_cancel(struct pool *pool, struct s3_request *request)
{
	struct call *alone = NULL;
	struct call *call;

	pthread_mutex_lock(&pool->lock);
	call = request->private_data;
	if (call != NULL && call->waiting) {
		unline(pool, call);
		alone = call;
	} else if (call != NULL) {
		atomic_store(&call->cancelled, true);
		curl_multi_wakeup(pool->seats[call->seat].multi);
	}
	pthread_mutex_unlock(&pool->lock);
	if (alone != NULL) {
		cancel(alone);
		pool_finish(pool, alone, false);
	}
}

void
pool_wake(struct pool *pool)
{
	for (unsigned i = 0; i < pool->count; i++)
		curl_multi_wakeup(pool->seats[i].multi);
}

void
pool_close(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->closed = true;
	pthread_mutex_unlock(&pool->lock);
	pool_wake(pool);
}

bool
pool_is_closed(struct pool *pool)
{
	bool closed;

	pthread_mutex_lock(&pool->lock);
	closed = pool->closed;
	pthread_mutex_unlock(&pool->lock);
	return closed;
}

void
pool_drain(struct pool *pool)
{
	for (;;) {
		struct call *call;

		pthread_mutex_lock(&pool->lock);
		call = line_take(&pool->waiting, &pool->waiting.first);
		for (unsigned i = 0; call == NULL && i < pool->count; i++)
			call = line_take(&pool->seats[i].inbox,
			    &pool->seats[i].inbox.first);
		pthread_mutex_unlock(&pool->lock);
		if (call == NULL)
			return;
		cancel(call);
		pool_finish(pool, call, false);
	}
}
