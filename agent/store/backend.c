#include "store/backend.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"

/* One request that its caller waits for. */
struct wait {
	pthread_mutex_t mutex;
	pthread_cond_t ended;
	bool done;
	struct buffer *buffer;	/* GET */
};

void
backend_submit(struct backend *backend, struct backend_request *request)
{
	assert(request->done != NULL);
	backend->operations->submit(backend, request);
}

void
backend_cancel(struct backend *backend, struct backend_request *request)
{
	backend->operations->cancel(backend, request);
}

void
backend_refresh(struct backend *backend)
{
	if (backend->operations->refresh != NULL)
		backend->operations->refresh(backend);
}

int
backend_list(struct backend *backend, const char *prefix, bool fold,
    backend_visit visit, void *context, struct error *error)
{
	return backend->operations->list(backend, prefix, fold, visit, context,
	    error);
}

int
backend_remove(struct backend *backend, const char *const *keys, size_t count,
    struct error *error)
{
	if (count == 0)
		return 0;
	return backend->operations->remove(backend, keys, count, error);
}

static void
ended(struct backend_request *request)
{
	struct wait *wait = request->context;

	pthread_mutex_lock(&wait->mutex);
	wait->done = true;
	pthread_cond_signal(&wait->ended);
	pthread_mutex_unlock(&wait->mutex);
}

static int
add_bytes(void *context, const void *data, size_t length, struct error *error)
{
	struct wait *wait = context;

	return buffer_append(wait->buffer, data, length, error);
}

static int
perform(struct backend *backend, struct backend_request *request,
    struct buffer *buffer, struct error *error)
{
	struct wait wait = { .mutex = PTHREAD_MUTEX_INITIALIZER,
		.ended = PTHREAD_COND_INITIALIZER, .buffer = buffer };

	request->context = &wait;
	request->done = ended;
	backend_submit(backend, request);
	pthread_mutex_lock(&wait.mutex);
	while (!wait.done)
		pthread_cond_wait(&wait.ended, &wait.mutex);
	pthread_mutex_unlock(&wait.mutex);
	pthread_cond_destroy(&wait.ended);
	pthread_mutex_destroy(&wait.mutex);
	if (request->error.class == ERROR_NONE)
		return 0;
	*error = request->error;
	return -1;
}

/* A request says 0 for no deadline. */
static uint64_t
bound(uint64_t deadline)
{
	return deadline == CLOCK_NEVER ? 0 : deadline;
}

int
backend_put(struct backend *backend, const char *key, const void *data,
    size_t length, uint64_t deadline, struct error *error)
{
	struct source_memory memory = { .data = data, .length = length };
	const struct source body = source_from_memory(&memory);
	struct backend_request request = { .operation = BACKEND_PUT,
		.key = key, .body = &body, .length = length,
		.deadline = bound(deadline) };

	sha256_of(data, length, request.sha256);
	return perform(backend, &request, NULL, error);
}

int
backend_get(struct backend *backend, const char *key, struct buffer *buffer,
    uint64_t deadline, struct error *error)
{
	struct backend_request request = { .operation = BACKEND_GET,
		.key = key, .sink = add_bytes, .deadline = bound(deadline) };

	return perform(backend, &request, buffer, error);
}

void
backend_free(struct backend *backend)
{
	if (backend != NULL)
		backend->operations->free(backend);
}
