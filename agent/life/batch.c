#include "life/batch.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"

/* How soon a stop is seen. */
#define LOOK_EVERY (50 * CLOCK_MILLISECOND)

struct batch {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	size_t running;
};

static void
on_done(struct backend_request *request)
{
	struct batch_item *item = request->context;
	struct batch *batch = item->batch;

	item->ended = clock_monotonic();
	pthread_mutex_lock(&batch->lock);
	if (--batch->running == 0)
		pthread_cond_signal(&batch->ended);
	pthread_mutex_unlock(&batch->lock);
}

/* Return whether something still runs. */
static bool
wait_a_moment(struct batch *batch)
{
	struct timespec until;
	bool running;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)LOOK_EVERY;
	if (until.tv_nsec >= (long)CLOCK_SECOND) {
		until.tv_sec++;
		until.tv_nsec -= (long)CLOCK_SECOND;
	}
	pthread_mutex_lock(&batch->lock);
	if (batch->running > 0)
		pthread_cond_timedwait(&batch->ended, &batch->lock, &until);
	running = batch->running > 0;
	pthread_mutex_unlock(&batch->lock);
	return running;
}

void
batch_run(struct backend *backend, struct batch_item *items, size_t count,
    const atomic_bool *stop)
{
	struct batch batch = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .ended = PTHREAD_COND_INITIALIZER, .running = count };
	bool cancelled = false;

	for (size_t i = 0; i < count; i++) {
		items[i].batch = &batch;
		items[i].request.done = on_done;
		items[i].request.context = &items[i];
		backend_submit(backend, &items[i].request);
	}
	while (wait_a_moment(&batch)) {
		if (stop == NULL || !atomic_load(stop) || cancelled)
			continue;
		for (size_t i = 0; i < count; i++)
			backend_cancel(backend, &items[i].request);
		cancelled = true;
	}
	pthread_cond_destroy(&batch.ended);
	pthread_mutex_destroy(&batch.lock);
}

const struct batch_item *
batch_failure(const struct batch_item *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (items[i].request.error.class != ERROR_NONE)
			return &items[i];
	return NULL;
}
