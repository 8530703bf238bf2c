#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "s3/client.h"
#include "s3/profile.h"
#include "s3/service.h"

/* All connections together, each way; libcurl goes fastest with 512 KiB a
 * connection and gains nothing from more (measured, 7.88.1). */
#define BUFFERS_TOTAL (8L * 1024 * 1024)
#define BUFFER_LARGEST (512L * 1024)
#define BUFFER_SMALLEST (64L * 1024)

static uint64_t
or_default(uint64_t value, uint64_t seconds)
{
	return value != 0 ? value : seconds * CLOCK_SECOND;
}

static int
ca_bundle_find(struct service *service, const struct s3_config *config,
    struct error *error)
{
	const char *path = config->ca_bundle;

	if (path == NULL || path[0] == '\0')
		path = getenv("AWS_CA_BUNDLE");
	if (path == NULL || path[0] == '\0')
		path = profile_get(service->profile, "ca_bundle");
	if (path == NULL)
		return 0;
	service->ca_bundle = strdup(path);
	if (service->ca_bundle == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	return 0;
}

static void
limits_set(struct service *service, const struct s3_config *config,
    unsigned connections)
{
	long buffer = BUFFERS_TOTAL / (long)connections;

	if (buffer > BUFFER_LARGEST)
		buffer = BUFFER_LARGEST;
	if (buffer < BUFFER_SMALLEST)
		buffer = BUFFER_SMALLEST;
	service->upload_buffer = buffer;
	service->download_buffer = buffer;
	service->trace = config->trace;
	service->connect_timeout = or_default(config->connect_timeout, 10);
	service->first_byte_timeout = or_default(config->first_byte_timeout,
	    30);
	service->stall_timeout = or_default(config->stall_timeout, 20);
	service->give_up_after = or_default(config->give_up_after, 120);
	service->answer_within = config->answer_within;
}

struct service *
service_new(const struct s3_config *config, unsigned connections,
    void (*wake)(void *context), void *context, struct error *error)
{
	struct service *service = calloc(1, sizeof(*service));

	if (service == NULL || pthread_mutex_init(&service->lock, NULL) != 0) {
		free(service);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	limits_set(service, config, connections);
	retry_budget_init(&service->budget);
	service->profile = profile_load(config->profile, error);
	if (service->profile == NULL ||
	    ca_bundle_find(service, config, error) != 0 ||
	    endpoint_resolve(config, service->profile, &service->endpoint,
	    error) != 0)
		goto fail;
	memcpy(service->region, service->endpoint.region,
	    sizeof(service->region));
	service->credentials = credentials_new(config, service->profile,
	    service->region, service->ca_bundle, wake, context, error);
	if (service->credentials == NULL)
		goto fail;
	return service;
fail:
	service_free(service);
	return NULL;
}

void
service_free(struct service *service)
{
	if (service == NULL)
		return;
	credentials_free(service->credentials);
	profile_free(service->profile);
	free(service->ca_bundle);
	pthread_mutex_destroy(&service->lock);
	explicit_bzero(&service->signing, sizeof(service->signing));
	free(service);
}

time_t
service_now(struct service *service)
{
	return clock_wall().tv_sec +
	    (time_t)atomic_load(&service->clock_offset);
}

void
service_set_clock(struct service *service, time_t now)
{
	atomic_store(&service->clock_offset,
	    (long long)(now - clock_wall().tv_sec));
}

void
service_see_clock(struct service *service, time_t now)
{
	atomic_store(&service->clock_seen_offset,
	    (long long)(now - clock_wall().tv_sec));
	atomic_store(&service->clock_seen, true);
}

void
service_get_region(struct service *service, char region[ENDPOINT_REGION_SIZE])
{
	pthread_mutex_lock(&service->lock);
	memcpy(region, service->region, ENDPOINT_REGION_SIZE);
	pthread_mutex_unlock(&service->lock);
}

bool
service_set_region(struct service *service, const char *region)
{
	if (!endpoint_region_is_plain(region))
		return false;
	pthread_mutex_lock(&service->lock);
	memcpy(service->region, region, strlen(region) + 1);
	pthread_mutex_unlock(&service->lock);
	return true;
}

void
service_signing_key(struct service *service, const struct keys *keys,
    const char *stamp, const char *region, uint8_t key[SHA256_SIZE])
{
	pthread_mutex_lock(&service->lock);
	if (service->signing.keys != keys->number ||
	    memcmp(service->signing.stamp, stamp, 8) != 0 ||
	    strcmp(service->signing.region, region) != 0) {
		sign_key(keys->secret, stamp, region, "s3",
		    service->signing.key);
		memcpy(service->signing.stamp, stamp, SIGN_STAMP_SIZE);
		memcpy(service->signing.region, region, strlen(region) + 1);
		service->signing.keys = keys->number;
	}
	memcpy(key, service->signing.key, SHA256_SIZE);
	pthread_mutex_unlock(&service->lock);
}
