#include "life/batch.h"

#include <pthread.h>

#include "base/clock.h"

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

void
batch_run(struct backend *backend, struct batch_item *items, size_t count)
{
	struct batch batch = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .ended = PTHREAD_COND_INITIALIZER, .running = count };

	for (size_t i = 0; i < count; i++) {
		items[i].batch = &batch;
		items[i].request.done = on_done;
		items[i].request.context = &items[i];
		backend_submit(backend, &items[i].request);
	}
	pthread_mutex_lock(&batch.lock);
	while (batch.running > 0)
		pthread_cond_wait(&batch.ended, &batch.lock);
	pthread_mutex_unlock(&batch.lock);
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
