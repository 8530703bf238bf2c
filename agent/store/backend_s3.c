#include "store/backend_s3.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "s3/client.h"
#include "store/backend.h"
#include "store/key.h"
#include "store/remote.h"
#include "store/strength.h"

/* The longest key that S3 takes, in bytes. */
#define S3_KEY_MAXIMUM 1024

struct store {
	struct backend backend;
	struct s3_client *client;
	char *prefix;		/* "run1/", or "" */
	size_t prefix_length;
	pthread_mutex_t mutex;	/* over private_data of the requests, holders */
};

/* A backend's request with the client's. */
struct call {
	struct s3_request s3;
	struct store *store;
	struct backend_request *request;
	unsigned holders;	/* the request, and who cancels it */
	char key[];
};

static struct store *
store_of(struct backend *backend)
{
	return (struct store *)backend;
}

/* Let go of ${call}; the last one frees it. */
static void
release(struct call *call)
{
	struct store *store = call->store;
	unsigned left;

	pthread_mutex_lock(&store->mutex);
	left = --call->holders;
	pthread_mutex_unlock(&store->mutex);
	if (left == 0)
		free(call);
}

static int
pass_bytes(void *context, const void *data, size_t length,
    struct error *error)
{
	struct call *call = context;

	return call->request->sink(call->request->context, data, length,
	    error);
}

static void
ended(struct s3_request *s3)
{
	struct call *call = s3->context;
	struct backend_request *request = call->request;

	pthread_mutex_lock(&call->store->mutex);
	request->private_data = NULL;
	pthread_mutex_unlock(&call->store->mutex);
	request->error = s3->error;
	/* A DELETE of what is not there works. */
	if (request->operation == BACKEND_DELETE &&
	    s3->error.cause == CAUSE_NOT_FOUND)
		error_clear(&request->error);
	request->size = s3->size;
	request->attempts = s3->attempts;
	release(call);
	request->done(request);
}

static struct call *
call_new(struct store *store, struct backend_request *request)
{
	static const enum s3_operation operations[] = {
		[BACKEND_PUT] = S3_PUT, [BACKEND_GET] = S3_GET,
		[BACKEND_DELETE] = S3_DELETE };
	size_t size = store->prefix_length + strlen(request->key) + 1;
	struct call *call = calloc(1, sizeof(*call) + size);

	if (call == NULL)
		return NULL;
	snprintf(call->key, size, "%s%s", store->prefix, request->key);
	call->store = store;
	call->request = request;
	call->holders = 1;
	call->s3 = (struct s3_request){
		.operation = operations[request->operation],
		.key = call->key, .body = request->body,
		.offset = request->offset, .length = request->length,
		.sink = request->sink == NULL ? NULL : pass_bytes,
		.rate = request->rate, .deadline = request->deadline,
		.done = ended, .context = call };
	memcpy(call->s3.sha256, request->sha256, SHA256_SIZE);
	return call;
}

static void
store_submit(struct backend *backend, struct backend_request *request)
{
	struct store *store = store_of(backend);
	struct call *call = call_new(store, request);

	error_clear(&request->error);
	if (call == NULL) {
		error_set(&request->error, ERROR_FAILED, CAUSE_MEMORY,
		    request->key, "out of memory");
		request->done(request);
		return;
	}
	pthread_mutex_lock(&store->mutex);
	request->private_data = call;
	pthread_mutex_unlock(&store->mutex);
	s3_client_submit(store->client, &call->s3);
}

static void
store_cancel(struct backend *backend, struct backend_request *request)
{
	struct store *store = store_of(backend);
	struct call *call;

	pthread_mutex_lock(&store->mutex);
	call = request->private_data;
	if (call != NULL)
		call->holders++;	/* it may end while we cancel it */
	pthread_mutex_unlock(&store->mutex);
	if (call == NULL)
		return;
	s3_client_cancel(store->client, &call->s3);
	release(call);
}

/* Hands a listing on without the prefix. */
struct listing {
	struct store *store;
	backend_visit visit;
	void *context;
};

static int
pass_entry(void *context, const struct s3_entry *entry, struct error *error)
{
	const struct listing *listing = context;
	struct backend_entry inner = { .key = entry->key,
		.is_prefix = entry->is_prefix, .size = entry->size };

	if (strncmp(entry->key, listing->store->prefix,
	    listing->store->prefix_length) != 0)
		return error_set(error, ERROR_FAILED, CAUSE_OTHER, entry->key,
		    "the server lists a key outside the prefix that was asked "
		    "for");
	inner.key += listing->store->prefix_length;
	return listing->visit(listing->context, &inner, error);
}

static int
store_list(struct backend *backend, const char *prefix, bool fold,
    backend_visit visit, void *context, struct error *error)
{
	struct store *store = store_of(backend);
	struct listing listing = { store, visit, context };
	char whole[S3_KEY_MAXIMUM + 1];
	int length;

	length = snprintf(whole, sizeof(whole), "%s%s", store->prefix, prefix);
	if (length < 0 || (size_t)length >= sizeof(whole))
		return error_set(error, ERROR_FAILED, CAUSE_LIMIT, prefix,
		    "the prefix is too long");
	return s3_client_list(store->client, whole, fold ? "/" : NULL,
	    pass_entry, &listing, error);
}

static int
store_remove(struct backend *backend, const char *const *keys, size_t count,
    struct error *error)
{
	struct store *store = store_of(backend);
	char **whole = calloc(count, sizeof(*whole));
	int result = -1;
	size_t i, size;

	if (whole == NULL)
		goto memory;
	for (i = 0; i < count; i++) {
		size = store->prefix_length + strlen(keys[i]) + 1;
		whole[i] = malloc(size);
		if (whole[i] == NULL)
			goto memory;
		snprintf(whole[i], size, "%s%s", store->prefix, keys[i]);
	}
	result = s3_client_delete_many(store->client,
	    (const char *const *)whole, count, error);
	goto out;
memory:
	error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL, "out of memory");
out:
	for (i = 0; whole != NULL && i < count; i++)
		free(whole[i]);
	free(whole);
	return result;
}

static void
store_free(struct backend *backend)
{
	struct store *store = store_of(backend);

	s3_client_free(store->client);
	pthread_mutex_destroy(&store->mutex);
	free(store->prefix);
	free(store);
}

static void
store_refresh(struct backend *backend)
{
	s3_client_refresh(store_of(backend)->client);
}

static const struct backend_operations operations = {
	.submit = store_submit, .cancel = store_cancel, .list = store_list,
	.remove = store_remove, .refresh = store_refresh, .free = store_free };

/* A prefix without empty, "." and ".." steps: servers disagree about those. */
static bool
is_plain(const char *prefix)
{
	size_t length;

	for (;; prefix += length + 1) {
		length = strcspn(prefix, "/");
		if (length == 0 || (length == 1 && prefix[0] == '.') ||
		    (length == 2 && memcmp(prefix, "..", 2) == 0))
			return false;
		if (prefix[length] == '\0')
			return true;
	}
}

/* Take "bucket/prefix" apart into fresh memory; the prefix gets its slash. */
static int
split(const char *url, char **bucket, char **prefix, struct error *error)
{
	const char *rest = url + strlen("s3://");
	size_t bucket_length = strcspn(rest, "/"), length;

	*bucket = strndup(rest, bucket_length);
	rest += bucket_length;
	rest += *rest == '/';
	length = strlen(rest);
	while (length > 0 && rest[length - 1] == '/')
		length--;
	*prefix = calloc(length + 2, 1);
	if (*bucket == NULL || *prefix == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, url,
		    "out of memory");
	memcpy(*prefix, rest, length);
	if (bucket_length == 0 || (length > 0 && !is_plain(*prefix)) ||
	    length + KEY_SIZE > S3_KEY_MAXIMUM) {
		error_set(error, ERROR_USAGE, CAUSE_OTHER, url,
		    "is not a bucket and a plain prefix");
		return error_cure(error, "write s3://bucket/prefix");
	}
	if (length > 0)
		(*prefix)[length] = '/';
	return 0;
}

/* The endpoint as the AWS variables say it, for the table of weak stores. */
static const char *
endpoint_of(const struct remote_options *options)
{
	const char *url = options->endpoint_url;

	if (url == NULL || *url == '\0')
		url = getenv("AWS_ENDPOINT_URL_S3");
	if (url == NULL || *url == '\0')
		url = getenv("AWS_ENDPOINT_URL");
	return url;
}

struct backend *
backend_s3_open(const char *url, const struct remote_options *options,
    struct error *error)
{
	struct store *store = calloc(1, sizeof(*store));
	struct s3_config config = { .endpoint_url = options->endpoint_url,
		.region = options->region, .profile = options->profile,
		.ca_bundle = options->ca_bundle,
		.addressing = options->addressing,
		.connections = options->connections,
		.give_up_after = options->give_up_after,
		.answer_within = options->answer_within,
		.trace = options->trace };
	char *bucket = NULL;

	if (store == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, url,
		    "out of memory");
		return NULL;
	}
	pthread_mutex_init(&store->mutex, NULL);
	store->backend.operations = &operations;
	store->backend.weak = strength_is_weak(endpoint_of(options));
	if (split(url, &bucket, &store->prefix, error) == 0) {
		config.bucket = bucket;
		store->prefix_length = strlen(store->prefix);
		snprintf(store->backend.name, sizeof(store->backend.name),
		    "s3://%s/%.*s", bucket, (int)(store->prefix_length -
		    (store->prefix_length > 0)), store->prefix);
		store->client = s3_client_new(&config, error);
	}
	free(bucket);
	if (store->client == NULL) {
		store_free(&store->backend);
		return NULL;
	}
	return &store->backend;
}

bool
backend_s3_facts(struct backend *backend, struct s3_facts *facts)
{
	if (backend->operations != &operations)
		return false;
	s3_client_facts(store_of(backend)->client, facts);
	return true;
}
