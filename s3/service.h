#ifndef S3_SERVICE_H
#define S3_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "s3/credentials.h"
#include "s3/endpoint.h"
#include "s3/keys.h"
#include "s3/retry.h"

struct error;
struct profile;
struct s3_config;

/*
 * The server as one client knows it: what was configured, and what it taught
 * us since (region, clock).  Shared by all transfer threads.
 */
struct service {
	struct endpoint endpoint;
	struct profile *profile;
	struct credentials *credentials;
	struct retry_budget budget;
	char *ca_bundle;
	bool trace;
	uint64_t connect_timeout;	/* nanoseconds */
	uint64_t first_byte_timeout;
	uint64_t stall_timeout;
	uint64_t give_up_after;
	uint64_t answer_within;		/* 0: nobody waits */
	atomic_bool answered;		/* it did, once */
	atomic_bool complained;		/* it was said that it does not */
	long upload_buffer;		/* bytes a connection */
	long download_buffer;
	_Atomic uint64_t fresh_until;	/* no kept connection before then */
	atomic_bool no_batch_delete;	/* the server has none */

	atomic_llong clock_offset;	/* seconds: its clock minus ours */
	atomic_bool clock_seen;		/* the last answer told the time: */
	atomic_llong clock_seen_offset;
	pthread_mutex_t lock;		/* of what follows */
	char region[ENDPOINT_REGION_SIZE];
	struct {
		unsigned long keys;	/* number of the keys; 0: no entry */
		char stamp[SIGN_STAMP_SIZE];
		char region[ENDPOINT_REGION_SIZE];
		uint8_t key[SHA256_SIZE];
	} signing;
};

/**
 * service_new(config, connections, wake, context, error):
 * Find out everything; ${wake} as for credentials_new.  NULL with
 * ERROR_USAGE.
 */
struct service *service_new(const struct s3_config *config,
    unsigned connections, void (*wake)(void *context), void *context,
    struct error *error);

/**
 * service_free(service):
 * Behave consistently with free(NULL).
 */
void service_free(struct service *service);

/**
 * service_now(service):
 * The time by the server's clock, as far as we know it.
 */
time_t service_now(struct service *service);

/**
 * service_set_clock(service, now):
 * The server's clock shows ${now}.
 */
void service_set_clock(struct service *service, time_t now);

/**
 * service_see_clock(service, now):
 * An answer says that the server's clock shows ${now}: noted for those who
 * ask, without any effect.
 */
void service_see_clock(struct service *service, time_t now);

/**
 * service_get_region(service, region) / service_set_region(service, region):
 * The region to sign for.  Set returns whether ${region} can be one.
 */
void service_get_region(struct service *service,
    char region[ENDPOINT_REGION_SIZE]);
bool service_set_region(struct service *service, const char *region);

/**
 * service_signing_key(service, keys, stamp, region, key):
 * The signing key of that day, derived once.
 */
void service_signing_key(struct service *service, const struct keys *keys,
    const char *stamp, const char *region, uint8_t key[SHA256_SIZE]);

#endif
