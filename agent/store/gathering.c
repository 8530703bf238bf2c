#include "store/gathering.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "store/backend.h"
#include "store/manifest.h"

/* Manifests on their way at a time: each may take its maximum of memory. */
#define SLOTS 8

struct gathering {
	struct backend *backend;
	struct manifest **items;
	size_t count, capacity;
};

/* One manifest on its way. */
struct slot {
	struct fetch *fetch;
	struct backend_request request;
	struct buffer buffer;
	size_t index;		/* into the keys */
	enum { SLOT_FREE, SLOT_BUSY, SLOT_ENDED } state;
};

struct fetch {
	struct gathering *gathering;
	const char *const *keys;
	struct error *failures;
	size_t count, next, running;
	struct slot slots[SLOTS];

	pthread_mutex_t mutex;	/* over the slots' states */
	pthread_cond_t ended;
};

struct gathering *
gathering_new(struct backend *backend)
{
	struct gathering *gathering = calloc(1, sizeof(*gathering));

	if (gathering != NULL)
		gathering->backend = backend;
	return gathering;
}

static struct manifest **
find(struct gathering *gathering, const char *key)
{
	size_t i;

	for (i = 0; i < gathering->count; i++) {
		if (strcmp(gathering->items[i]->key, key) == 0)
			return &gathering->items[i];
	}
	return NULL;
}

/* Return 0, or -1 when out of memory. */
static int
add(struct gathering *gathering, struct manifest *manifest)
{
	if (gathering->count == gathering->capacity) {
		size_t capacity = gathering->capacity == 0 ? 16 :
		    gathering->capacity * 2;
		struct manifest **items = realloc(gathering->items,
		    capacity * sizeof(*items));

		if (items == NULL)
			return -1;
		gathering->items = items;
		gathering->capacity = capacity;
	}
	gathering->items[gathering->count++] = manifest;
	return 0;
}

static int
add_bytes(void *context, const void *data, size_t length, struct error *error)
{
	struct slot *slot = context;

	return buffer_append(&slot->buffer, data, length, error);
}

static void
ended(struct backend_request *request)
{
	struct slot *slot = request->context;
	struct fetch *fetch = slot->fetch;

	pthread_mutex_lock(&fetch->mutex);
	slot->state = SLOT_ENDED;
	pthread_cond_signal(&fetch->ended);
	pthread_mutex_unlock(&fetch->mutex);
}

/* Read what came into ${slot}. */
static void
collect(struct fetch *fetch, struct slot *slot)
{
	const char *key = fetch->keys[slot->index];
	struct error *failure = &fetch->failures[slot->index];
	struct manifest *manifest;

	*failure = slot->request.error;
	if (failure->class == ERROR_NONE) {
		manifest = manifest_read(key, buffer_text(&slot->buffer),
		    slot->buffer.length, failure);
		if (manifest != NULL && add(fetch->gathering, manifest) != 0) {
			manifest_free(manifest);
			error_set(failure, ERROR_FAILED, CAUSE_MEMORY, key,
			    "out of memory");
		}
	} else if (failure->cause == CAUSE_LIMIT) {
		error_set(failure, ERROR_DAMAGED, CAUSE_LIMIT, key,
		    "is larger than a manifest can be");
	}
	buffer_free(&slot->buffer);
	slot->state = SLOT_FREE;
}

/* Start the next key that is not there yet in ${slot}. */
static void
start(struct fetch *fetch, struct slot *slot)
{
	while (fetch->next < fetch->count &&
	    find(fetch->gathering, fetch->keys[fetch->next]) != NULL)
		fetch->next++;
	if (fetch->next == fetch->count)
		return;
	slot->fetch = fetch;
	slot->index = fetch->next++;
	slot->state = SLOT_BUSY;
	buffer_init(&slot->buffer, MANIFEST_SIZE_MAXIMUM);
	slot->request = (struct backend_request){ .operation = BACKEND_GET,
		.key = fetch->keys[slot->index], .sink = add_bytes,
		.done = ended, .context = slot };
	fetch->running++;
	backend_submit(fetch->gathering->backend, &slot->request);
}

/* A slot that ended, waiting for one. */
static struct slot *
wait_for_one(struct fetch *fetch)
{
	struct slot *found = NULL;
	size_t i;

	pthread_mutex_lock(&fetch->mutex);
	while (found == NULL) {
		for (i = 0; i < SLOTS && found == NULL; i++) {
			if (fetch->slots[i].state == SLOT_ENDED)
				found = &fetch->slots[i];
		}
		if (found == NULL)
			pthread_cond_wait(&fetch->ended, &fetch->mutex);
	}
	pthread_mutex_unlock(&fetch->mutex);
	fetch->running--;
	return found;
}

void
gathering_fetch(struct gathering *gathering, const char *const *keys,
    size_t count, struct error *failures)
{
	struct fetch fetch = { .gathering = gathering, .keys = keys,
		.failures = failures, .count = count,
		.mutex = PTHREAD_MUTEX_INITIALIZER,
		.ended = PTHREAD_COND_INITIALIZER };
	struct slot *slot;
	size_t i;

	for (i = 0; i < count; i++)
		error_clear(&failures[i]);
	for (i = 0; i < SLOTS; i++)
		start(&fetch, &fetch.slots[i]);
	while (fetch.running > 0) {
		slot = wait_for_one(&fetch);
		collect(&fetch, slot);
		start(&fetch, slot);
	}
	pthread_cond_destroy(&fetch.ended);
	pthread_mutex_destroy(&fetch.mutex);
}

struct manifest *
gathering_take(struct gathering *gathering, const char *key)
{
	struct manifest **place = find(gathering, key), *manifest;

	if (place == NULL)
		return NULL;
	manifest = *place;
	*place = gathering->items[--gathering->count];
	return manifest;
}

void
gathering_give(struct gathering *gathering, struct manifest *manifest)
{
	if (manifest != NULL && add(gathering, manifest) != 0)
		manifest_free(manifest);
}

void
gathering_free(struct gathering *gathering)
{
	size_t i;

	if (gathering == NULL)
		return;
	for (i = 0; i < gathering->count; i++)
		manifest_free(gathering->items[i]);
	free(gathering->items);
	free(gathering);
}
