#ifndef UNIT_MOVE_SCRIPT_H
#define UNIT_MOVE_SCRIPT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kit/kit.h"
#include "store/backend.h"

/*
 * A store that does what a test wrote into its script: it counts chunks, runs
 * a hook before one, loses it, or holds it until it is cancelled; all else
 * goes to the store behind it.
 */
struct script {
	struct backend backend;
	struct backend *inner;
	pthread_mutex_t mutex;

	/* The script; numbers count chunk PUTs or GETs from 1, 0: never. */
	unsigned fail_put, fail_get;	/* this one and every later one */
	enum error_cause cause;		/* with this, default unreachable */
	unsigned hook_put, hook_get;
	void (*hook)(void *context);
	void *hook_context;
	bool hold;			/* answer chunks only when cancelled */

	/* What happened. */
	unsigned puts, gets;		/* asked for */
	unsigned stored, fetched;	/* that worked */
	uint64_t put_bytes;		/* of all PUTs that worked */
	uint64_t get_bytes;		/* of chunk GETs, as they came */
	unsigned in_flight, most_in_flight;
	char *keys[4096];		/* of chunks that were fetched whole */
};

struct relay {
	struct backend_request inner;	/* first */
	struct backend_request *outer;
	struct script *script;
	bool chunk;
};

static inline int
relay_sink(void *context, const void *data, size_t length,
    struct error *error)
{
	struct relay *relay = context;

	if (relay->chunk) {
		pthread_mutex_lock(&relay->script->mutex);
		relay->script->get_bytes += length;
		pthread_mutex_unlock(&relay->script->mutex);
	}
	return relay->outer->sink(relay->outer->context, data, length, error);
}

static inline void
script_count(struct script *script, const struct relay *relay)
{
	const struct backend_request *request = &relay->inner;

	if (relay->chunk)
		script->in_flight--;
	if (request->error.class != ERROR_NONE)
		return;
	if (request->operation == BACKEND_PUT)
		script->put_bytes += request->length;
	if (!relay->chunk)
		return;
	if (request->operation == BACKEND_PUT)
		script->stored++;
	if (request->operation == BACKEND_GET && script->fetched <
	    sizeof(script->keys) / sizeof(script->keys[0]))
		script->keys[script->fetched++] = strdup(request->key);
}

static inline void
relay_done(struct backend_request *inner)
{
	struct relay *relay = (struct relay *)inner;
	struct backend_request *outer = relay->outer;
	struct script *script = relay->script;

	pthread_mutex_lock(&script->mutex);
	script_count(script, relay);
	outer->private_data = NULL;
	pthread_mutex_unlock(&script->mutex);
	outer->error = inner->error;
	outer->size = inner->size;
	outer->attempts = inner->attempts;
	free(relay);
	outer->done(outer);
}

/* What the script says about the next chunk; -1: it is answered already. */
static inline int
script_play(struct script *script, struct backend_request *request)
{
	bool put = request->operation == BACKEND_PUT, fail;
	unsigned number, at, hook_at;

	pthread_mutex_lock(&script->mutex);
	number = put ? ++script->puts : ++script->gets;
	at = put ? script->fail_put : script->fail_get;
	hook_at = put ? script->hook_put : script->hook_get;
	fail = at != 0 && number >= at;
	pthread_mutex_unlock(&script->mutex);
	if (hook_at != 0 && number == hook_at)
		script->hook(script->hook_context);
	if (!fail)
		return 0;
	error_set(&request->error, ERROR_FAILED, script->cause != CAUSE_OTHER ?
	    script->cause : CAUSE_UNREACHABLE, request->key, "lost");
	request->done(request);
	return -1;
}

static inline void
script_submit(struct backend *backend, struct backend_request *request)
{
	struct script *script = (struct script *)backend;
	bool chunk = strstr(request->key, "/chunks/") != NULL;
	struct relay *relay;

	error_clear(&request->error);
	request->private_data = NULL;
	if (chunk && script_play(script, request) == -1)
		return;
	relay = calloc(1, sizeof(*relay));
	assert_non_null(relay);
	relay->inner = *request;
	relay->inner.done = relay_done;
	relay->inner.context = relay;
	if (request->sink != NULL)
		relay->inner.sink = relay_sink;
	relay->outer = request;
	relay->script = script;
	relay->chunk = chunk;
	pthread_mutex_lock(&script->mutex);
	request->private_data = relay;
	if (chunk && ++script->in_flight > script->most_in_flight)
		script->most_in_flight = script->in_flight;
	if (chunk && script->hold) {
		pthread_mutex_unlock(&script->mutex);
		return;
	}
	pthread_mutex_unlock(&script->mutex);
	backend_submit(script->inner, &relay->inner);
}

static inline void
script_cancel(struct backend *backend, struct backend_request *request)
{
	struct script *script = (struct script *)backend;
	struct relay *relay;

	pthread_mutex_lock(&script->mutex);
	relay = request->private_data;
	pthread_mutex_unlock(&script->mutex);
	if (relay == NULL)
		return;
	if (!relay->chunk || !script->hold) {
		backend_cancel(script->inner, &relay->inner);
		return;
	}
	error_set(&relay->inner.error, ERROR_FAILED, CAUSE_CANCELLED,
	    request->key, "cancelled");
	relay_done(&relay->inner);
}

static inline int
script_list(struct backend *backend, const char *prefix, bool fold,
    backend_visit visit, void *context, struct error *error)
{
	struct script *script = (struct script *)backend;

	return backend_list(script->inner, prefix, fold, visit, context,
	    error);
}

static inline int
script_remove(struct backend *backend, const char *const *keys, size_t count,
    struct error *error)
{
	return backend_remove(((struct script *)backend)->inner, keys, count,
	    error);
}

/* Forget what happened. */
static inline void
script_reset(struct script *script)
{
	unsigned i;

	for (i = 0; i < script->fetched; i++)
		free(script->keys[i]);
	script->puts = script->gets = script->stored = script->fetched = 0;
	script->put_bytes = script->get_bytes = 0;
	script->fail_put = script->fail_get = 0;
	script->hook_put = script->hook_get = 0;
	script->most_in_flight = 0;
	script->cause = CAUSE_OTHER;
}

static inline void
script_free(struct backend *backend)
{
	struct script *script = (struct script *)backend;

	backend_free(script->inner);
	script_reset(script);
	pthread_mutex_destroy(&script->mutex);
	free(script);
}

static inline struct script *
script_new(struct backend *inner)
{
	static const struct backend_operations operations = {
		.submit = script_submit, .cancel = script_cancel,
		.list = script_list, .remove = script_remove,
		.free = script_free
	};
	struct script *script = calloc(1, sizeof(*script));

	assert_non_null(script);
	script->backend = *inner;
	script->backend.operations = &operations;
	script->inner = inner;
	pthread_mutex_init(&script->mutex, NULL);
	return script;
}

/* Whether any chunk was fetched twice. */
static inline bool
script_fetched_twice(const struct script *script)
{
	unsigned i, j;

	for (i = 0; i < script->fetched; i++)
		for (j = 0; j < i; j++)
			if (strcmp(script->keys[i], script->keys[j]) == 0)
				return true;
	return false;
}

#endif
