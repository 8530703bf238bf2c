#include "unit/store/delaying.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct object {
	char *key;
	char *data;		/* NULL in a late request: a DELETE */
	size_t length;
};

struct objects {
	struct object *items;
	size_t count;
};

struct store {
	struct backend backend;
	delaying_decide decide;
	void *context;

	pthread_mutex_t mutex;	/* over all below */
	struct objects objects;	/* in the order of their keys */
	struct objects late;
	size_t changes;
};

static struct store *
store_of(struct backend *backend)
{
	return (struct store *)backend;
}

static void
must(bool fine)
{
	if (!fine)
		abort();	/* out of memory, in a test */
}

static void
insert(struct objects *objects, size_t at, const char *key, const void *data,
    size_t length)
{
	struct object *object;

	objects->items = realloc(objects->items,
	    (objects->count + 1) * sizeof(*objects->items));
	must(objects->items != NULL);
	memmove(&objects->items[at + 1], &objects->items[at],
	    (objects->count - at) * sizeof(*objects->items));
	objects->count++;
	object = &objects->items[at];
	object->key = strdup(key);
	object->length = length;
	object->data = data == NULL ? NULL : malloc(length + 1);
	must(object->key != NULL && (data == NULL || object->data != NULL));
	if (data != NULL) {
		memcpy(object->data, data, length);
		object->data[length] = '\0';
	}
}

static void
erase(struct objects *objects, size_t at)
{
	free(objects->items[at].key);
	free(objects->items[at].data);
	objects->count--;
	memmove(&objects->items[at], &objects->items[at + 1],
	    (objects->count - at) * sizeof(*objects->items));
}

/* Where ${key} is or would be. */
static size_t
place_of(const struct objects *objects, const char *key, bool *there)
{
	size_t low = 0, high = objects->count, middle;
	int order;

	*there = false;
	while (low < high && !*there) {
		middle = low + (high - low) / 2;
		order = strcmp(objects->items[middle].key, key);
		if (order == 0) {
			low = middle;
			*there = true;
		} else if (order < 0) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

static void
apply(struct store *store, const char *key, const void *data, size_t length)
{
	bool there;
	size_t at = place_of(&store->objects, key, &there);

	store->changes++;
	if (there)
		erase(&store->objects, at);
	if (data != NULL)
		insert(&store->objects, at, key, data, length);
}

static enum delaying_fate
decide(struct store *store, enum delaying_operation operation, const char *key)
{
	return store->decide == NULL ? DELAYING_ANSWERED :
	    store->decide(store->context, operation, key);
}

static int
answer(enum delaying_fate fate, const char *key, struct error *error)
{
	if (fate == DELAYING_ANSWERED || fate == DELAYING_TWICE)
		return 0;
	if (fate == DELAYING_DENIED)
		return error_set(error, ERROR_FAILED, CAUSE_DENIED, key,
		    "AccessDenied");
	return error_set(error, ERROR_FAILED, CAUSE_UNREACHABLE, key,
	    "no answer");
}

/* A PUT, or with ${data} NULL a DELETE. */
static int
change(struct store *store, const char *key, const void *data, size_t length,
    struct error *error)
{
	enum delaying_fate fate = decide(store, data == NULL ?
	    DELAYING_DELETE : DELAYING_PUT, key);

	pthread_mutex_lock(&store->mutex);
	if (fate == DELAYING_ANSWERED || fate == DELAYING_UNANSWERED ||
	    fate == DELAYING_TWICE)
		apply(store, key, data, length);
	if (fate == DELAYING_LATER || fate == DELAYING_TWICE)
		insert(&store->late, store->late.count, key, data, length);
	pthread_mutex_unlock(&store->mutex);
	return answer(fate, key, error);
}

static int
put(struct store *store, struct backend_request *request)
{
	size_t length = (size_t)request->length;
	char *data = malloc(length + 1);
	uint8_t digest[SHA256_SIZE];
	int result = -1;

	must(data != NULL);
	if (source_read(request->body, request->offset, data, length,
	    &request->error) == 0) {
		sha256_of(data, length, digest);
		if (memcmp(digest, request->sha256, SHA256_SIZE) != 0)
			error_set(&request->error, ERROR_FAILED,
			    CAUSE_REFUSED, request->key, "wrong hash");
		else
			result = change(store, request->key, data, length,
			    &request->error);
	}
	free(data);
	return result;
}

static int
get(struct store *store, struct backend_request *request)
{
	enum delaying_fate fate = decide(store, DELAYING_GET, request->key);
	char *copy = NULL;
	size_t length = 0, at;
	bool there;
	int result;

	if (answer(fate, request->key, &request->error) != 0)
		return -1;
	pthread_mutex_lock(&store->mutex);
	at = place_of(&store->objects, request->key, &there);
	if (there) {
		const struct object *object = &store->objects.items[at];

		assert(request->offset <= object->length);
		request->size = object->length;
		length = request->length != 0 ? (size_t)request->length :
		    object->length - (size_t)request->offset;
		copy = malloc(length + 1);
		must(copy != NULL);
		memcpy(copy, object->data + request->offset, length);
	}
	pthread_mutex_unlock(&store->mutex);
	if (!there)
		return error_set(&request->error, ERROR_FAILED,
		    CAUSE_NOT_FOUND, request->key, "NoSuchKey");
	result = length == 0 ? 0 : request->sink(request->context, copy,
	    length, &request->error);
	free(copy);
	return result;
}

static void
store_submit(struct backend *backend, struct backend_request *request)
{
	struct store *store = store_of(backend);

	error_clear(&request->error);
	request->attempts = 1;
	switch (request->operation) {
	case BACKEND_PUT:
		put(store, request);
		break;
	case BACKEND_GET:
		get(store, request);
		break;
	case BACKEND_DELETE:
		change(store, request->key, NULL, 0, &request->error);
		break;
	}
	request->done(request);
}

static void
store_cancel(struct backend *backend, struct backend_request *request)
{
	(void)backend;	/* every request has ended when submit returns */
	(void)request;
}

/* The keys that a LIST shows, folded or not. */
static void
collect(struct store *store, const char *prefix, bool fold,
    struct objects *found)
{
	size_t length = strlen(prefix), i, cut;
	char key[512];

	for (i = 0; i < store->objects.count; i++) {
		const struct object *object = &store->objects.items[i];

		if (strncmp(object->key, prefix, length) != 0)
			continue;
		cut = length + strcspn(object->key + length, "/");
		if (!fold || object->key[cut] == '\0')
			cut = strlen(object->key) - 1;
		snprintf(key, sizeof(key), "%.*s", (int)cut + 1, object->key);
		if (found->count > 0 &&
		    strcmp(found->items[found->count - 1].key, key) == 0)
			continue;
		insert(found, found->count, key, NULL, object->length);
	}
}

static int
store_list(struct backend *backend, const char *prefix, bool fold,
    backend_visit visit, void *context, struct error *error)
{
	struct store *store = store_of(backend);
	struct objects found = { 0 };
	int result;
	size_t i;

	if (answer(decide(store, DELAYING_LIST, prefix), prefix, error) != 0)
		return -1;
	pthread_mutex_lock(&store->mutex);
	collect(store, prefix, fold, &found);
	pthread_mutex_unlock(&store->mutex);
	for (result = 0, i = 0; result == 0 && i < found.count; i++) {
		const char *key = found.items[i].key;
		struct backend_entry entry = { .key = key,
			.is_prefix = key[strlen(key) - 1] == '/',
			.size = found.items[i].length };

		result = visit(context, &entry, error);
	}
	while (found.count > 0)
		erase(&found, found.count - 1);
	free(found.items);
	return result;
}

static int
store_remove(struct backend *backend, const char *const *keys, size_t count,
    struct error *error)
{
	int result = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		if (change(store_of(backend), keys[i], NULL, 0, error) != 0)
			result = -1;
	}
	return result;
}

static void
store_free(struct backend *backend)
{
	struct store *store = store_of(backend);

	while (store->objects.count > 0)
		erase(&store->objects, store->objects.count - 1);
	while (store->late.count > 0)
		erase(&store->late, store->late.count - 1);
	free(store->objects.items);
	free(store->late.items);
	pthread_mutex_destroy(&store->mutex);
	free(store);
}

static const struct backend_operations operations = {
	.submit = store_submit, .cancel = store_cancel, .list = store_list,
	.remove = store_remove, .free = store_free };

struct backend *
delaying_new(delaying_decide decide_fate, void *context)
{
	struct store *store = calloc(1, sizeof(*store));

	must(store != NULL);
	store->backend.operations = &operations;
	store->backend.local = true;
	snprintf(store->backend.name, sizeof(store->backend.name),
	    "delaying://");
	store->decide = decide_fate;
	store->context = context;
	pthread_mutex_init(&store->mutex, NULL);
	return &store->backend;
}

size_t
delaying_late(struct backend *backend)
{
	return store_of(backend)->late.count;
}

void
delaying_release(struct backend *backend, size_t index)
{
	struct store *store = store_of(backend);
	const struct object *late = &store->late.items[index];

	pthread_mutex_lock(&store->mutex);
	apply(store, late->key, late->data, late->length);
	erase(&store->late, index);
	pthread_mutex_unlock(&store->mutex);
}

void
delaying_forget(struct backend *backend, size_t index)
{
	erase(&store_of(backend)->late, index);
}

size_t
delaying_changes(struct backend *backend)
{
	return store_of(backend)->changes;
}

size_t
delaying_count(struct backend *backend)
{
	return store_of(backend)->objects.count;
}

const char *
delaying_key(struct backend *backend, size_t index)
{
	return store_of(backend)->objects.items[index].key;
}

const char *
delaying_get(struct backend *backend, const char *key, size_t *length)
{
	struct store *store = store_of(backend);
	bool there;
	size_t at = place_of(&store->objects, key, &there);

	if (!there)
		return NULL;
	*length = store->objects.items[at].length;
	return store->objects.items[at].data;
}

void
delaying_set(struct backend *backend, const char *key, const void *data,
    size_t length)
{
	apply(store_of(backend), key, data, length);
}
