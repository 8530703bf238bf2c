#ifndef S3_EXCHANGE_H
#define S3_EXCHANGE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "s3/head.h"
#include "s3/keys.h"
#include "s3/sign.h"
#include "s3/endpoint.h"

struct call;
struct service;
struct sockets;

/*
 * One HTTP request on one libcurl handle: built and signed, its body read,
 * its answer taken in, its pace and its silence watched.  One thread.
 */
struct exchange {
	struct service *service;
	struct sockets *sockets;
	CURL *easy;
	struct call *call;
	struct curl_slist *headers;
	struct buffer url;
	char curl_text[CURL_ERROR_SIZE];

	/* What it was signed with. */
	struct buffer canonical;
	char region[ENDPOINT_REGION_SIZE];
	unsigned long keys_number;
	time_t signed_at;
	uint64_t started;	/* clock_monotonic() */

	/* The answer. */
	struct head head;
	struct buffer answer;	/* an error's, or one that is kept whole */
	struct error local;	/* reading the body or the sink failed */
	const char *silence;	/* why we end it, or NULL */

	/* The body's place, and pace. */
	uint64_t position;	/* of the next byte to send */
	uint64_t owed;		/* bytes taken in beyond the pace */
	bool paused;
	uint64_t resume_at;

	/* Silence. */
	uint64_t begun;		/* the request goes out; 0: connecting */
	int fd;
	uint64_t mark_moved;
	uint64_t mark_time;
	uint64_t sent_at;	/* all of it was acknowledged; 0: not yet */
};

/**
 * exchange_new(service, sockets, error) / exchange_free(attempt):
 * Not while its handle is in a multi handle.
 */
struct exchange *exchange_new(struct service *service, struct sockets *sockets,
    struct error *error);
void exchange_free(struct exchange *exchange);

/**
 * exchange_prepare(attempt, call, keys, error):
 * Build the next attempt of ${call}, ready for a multi handle.
 */
int exchange_prepare(struct exchange *exchange, struct call *call,
    const struct keys *keys, struct error *error);

/**
 * exchange_is_silent(attempt, now):
 * Whether nothing has moved for too long; `silence` says why.
 */
bool exchange_is_silent(struct exchange *exchange, uint64_t now);

/**
 * exchange_resume(attempt):
 * Go on after a pause for the pace.
 */
void exchange_resume(struct exchange *exchange);

/**
 * exchange_sent(attempt) / exchange_received(attempt):
 * Bytes of bodies so far.
 */
uint64_t exchange_sent(const struct exchange *exchange);
uint64_t exchange_received(const struct exchange *exchange);

#endif
