#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "s3/call.h"
#include "s3/client.h"
#include "s3/fetch.h"
#include "s3/perform.h"
#include "s3/pool.h"
#include "s3/service.h"
#include "s3/transfer.h"

#define THREADS_USUAL 2
#define THREADS_LIMIT 64
#define CONNECTIONS_USUAL 16
#define CONNECTIONS_LIMIT 1024

struct s3_client {
	struct pool *pool;
	struct service *service;
	unsigned count;
	struct transfer *transfers[THREADS_LIMIT];
};

/* New credentials came: on the thread that fetched them. */
static void
wake(void *context)
{
	struct s3_client *client = context;

	pool_wake(client->pool);
}

static unsigned
number_of(unsigned wanted, unsigned usual, unsigned limit)
{
	if (wanted == 0)
		return usual;
	return wanted < limit ? wanted : limit;
}

static int
transfers_start(struct s3_client *client, struct error *error)
{
	for (unsigned i = 0; i < client->count; i++) {
		client->transfers[i] = transfer_new(client->service,
		    client->pool, i, error);
		if (client->transfers[i] == NULL)
			return -1;
	}
	for (unsigned i = 0; i < client->count; i++)
		if (transfer_start(client->transfers[i], error) != 0)
			return -1;
	return 0;
}

struct s3_client *
s3_client_new(const struct s3_config *config, struct error *error)
{
	unsigned connections = number_of(config->connections,
	    CONNECTIONS_USUAL, CONNECTIONS_LIMIT);
	struct s3_client *client = calloc(1, sizeof(*client));

	if (client == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	fetch_start_curl();
	client->count = number_of(config->threads, THREADS_USUAL,
	    THREADS_LIMIT);
	if (client->count > connections)
		client->count = connections;
	client->pool = pool_new(client->count, connections, error);
	if (client->pool == NULL)
		goto fail;
	client->service = service_new(config, connections, wake, client,
	    error);
	if (client->service == NULL || transfers_start(client, error) != 0)
		goto fail;
	return client;
fail:
	s3_client_free(client);
	return NULL;
}

void
s3_client_free(struct s3_client *client)
{
	if (client == NULL)
		return;
	if (client->pool != NULL)
		pool_close(client->pool);
	/* The credentials' thread wakes the transfers: it ends first. */
	if (client->service != NULL)
		credentials_stop(client->service->credentials);
	for (unsigned i = 0; i < client->count; i++)
		transfer_free(client->transfers[i]);
	if (client->pool != NULL)
		pool_drain(client->pool);
	service_free(client->service);
	pool_free(client->pool);
	free(client);
}

void
s3_client_submit(struct s3_client *client, struct s3_request *request)
{
	struct call *call = call_new(request);

	if (call == NULL) {
		error_set(&request->error, ERROR_FAILED, CAUSE_MEMORY,
		    request->key, "out of memory");
		request->done(request);
		return;
	}
	call_check(call);
	pool_submit(client->pool, call);
}

void
s3_client_cancel(struct s3_client *client, struct s3_request *request)
{
	pool_cancel(client->pool, request);
}

/* Somebody who waits for one request. */
struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool over;
};

static void
on_over(void *context)
{
	struct waiter *waiter = context;

	pthread_mutex_lock(&waiter->lock);
	waiter->over = true;
	pthread_cond_signal(&waiter->changed);
	pthread_mutex_unlock(&waiter->lock);
}

int
client_perform_call(struct s3_client *client, struct call *call)
{
	struct s3_request *request = call->request;
	struct waiter waiter = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .changed = PTHREAD_COND_INITIALIZER };

	call->over = on_over;
	call->over_context = &waiter;
	pool_submit(client->pool, call);
	pthread_mutex_lock(&waiter.lock);
	while (!waiter.over)
		pthread_cond_wait(&waiter.changed, &waiter.lock);
	pthread_mutex_unlock(&waiter.lock);
	pthread_cond_destroy(&waiter.changed);
	pthread_mutex_destroy(&waiter.lock);
	return request->error.class == ERROR_NONE ? 0 : -1;
}

int
s3_client_perform(struct s3_client *client, struct s3_request *request)
{
	struct call *call = call_new(request);

	if (call == NULL)
		return error_set(&request->error, ERROR_FAILED, CAUSE_MEMORY,
		    request->key, "out of memory");
	call_check(call);
	return client_perform_call(client, call);
}

char *
s3_client_credentials_text(struct s3_client *client, char *text, size_t size)
{
	return credentials_text(client->service->credentials, text, size);
}

#define REFRESH_TIME (30 * CLOCK_SECOND)

void
s3_client_refresh(struct s3_client *client)
{
	atomic_store(&client->service->fresh_until,
	    clock_monotonic() + REFRESH_TIME);
}

void
s3_client_facts(struct s3_client *client, struct s3_facts *facts)
{
	struct service *service = client->service;
	char host[ENDPOINT_HOST_SIZE];

	memset(facts, 0, sizeof(*facts));
	credentials_look(service->credentials, facts);
	service_get_region(service, facts->region);
	memcpy(facts->first_region, service->endpoint.region,
	    sizeof(facts->first_region));
	endpoint_host(&service->endpoint, facts->region, host);
	snprintf(facts->address, sizeof(facts->address), "%s://%s",
	    endpoint_scheme(&service->endpoint), host);
	facts->clock_known = atomic_load(&service->clock_seen);
	facts->clock_offset = atomic_load(&service->clock_seen_offset);
}

struct service *
client_service(struct s3_client *client)
{
	return client->service;
}
