#ifndef S3_FETCH_H
#define S3_FETCH_H

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer;
struct error;

/*
 * One small HTTP request, waited for: metadata servers, STS.  Never follows a
 * redirect.
 */
struct fetch {
	const char *method;		/* GET, PUT or POST */
	const char *url;
	const char *headers[6];		/* "Name: value" */
	size_t header_count;
	const char *body;		/* POST: a form */
	const char *ca_bundle;		/* PEM file, or NULL */
	uint64_t timeout;		/* of the whole, nanoseconds */
	bool direct;			/* not through a proxy */
	const atomic_bool *stop;	/* when it gets true: end; may be NULL */
	struct buffer *answer;		/* added to; its limit is the answer's */
	int status;			/* the outcome */
};

/**
 * fetch_start_curl():
 * Make libcurl ready, once for the program.  Any thread.
 */
void fetch_start_curl(void);

/**
 * fetch_new(error):
 * A handle that keeps its connection from one request to the next; end it
 * with curl_easy_cleanup.  One thread at a time.
 */
CURL *fetch_new(struct error *error);

/**
 * fetch_run(easy, fetch, error):
 * Run ${fetch} with a handle of fetch_new.  Return 0 when an answer of any
 * status came; -1 with CAUSE_UNREACHABLE when none did, CAUSE_LIMIT when it
 * was too large, CAUSE_CANCELLED when stopped.
 */
int fetch_run(CURL *easy, struct fetch *fetch, struct error *error);

#endif
