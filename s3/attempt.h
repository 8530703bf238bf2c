#ifndef S3_ATTEMPT_H
#define S3_ATTEMPT_H

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
struct attempt {
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
 * attempt_new(service, sockets, error) / attempt_free(attempt):
 * Not while its handle is in a multi handle.
 */
struct attempt *attempt_new(struct service *service, struct sockets *sockets,
    struct error *error);
void attempt_free(struct attempt *attempt);

/**
 * attempt_prepare(attempt, call, keys, error):
 * Build the next attempt of ${call}, ready for a multi handle.
 */
int attempt_prepare(struct attempt *attempt, struct call *call,
    const struct keys *keys, struct error *error);

/**
 * attempt_is_silent(attempt, now):
 * Whether nothing has moved for too long; `silence` says why.
 */
bool attempt_is_silent(struct attempt *attempt, uint64_t now);

/**
 * attempt_resume(attempt):
 * Go on after a pause for the pace.
 */
void attempt_resume(struct attempt *attempt);

/**
 * attempt_sent(attempt) / attempt_received(attempt):
 * Bytes of bodies so far.
 */
uint64_t attempt_sent(const struct attempt *attempt);
uint64_t attempt_received(const struct attempt *attempt);

#endif
