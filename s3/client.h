#ifndef S3_CLIENT_H
#define S3_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/source.h"

/*
 * A client of one bucket on an S3-compatible server.  Requests are handed
 * over and run on the client's transfer threads, each with a multi handle of
 * its own; connections are kept; HTTP/1.1.  Every attempt is signed anew
 * (SigV4, signed payload hash) with the clock corrected by what the server
 * said.  Passing faults are tried again as reference 4 of the S3 notes says,
 * within a retry budget shared by all requests.
 */
struct s3_client;
struct rate;

/* AUTO: see endpoint.h, which also tells where address and region come from. */
enum s3_addressing { S3_ADDRESSING_AUTO, S3_ADDRESSING_PATH, S3_ADDRESSING_VIRTUAL };

/* What a client is made from.  NULL or 0: from the environment, the AWS
 * files, or the default.  The texts are copied. */
struct s3_config {
	const char *bucket;		/* compulsory */
	const char *endpoint_url;	/* http:// or https://, host, port, no path */
	const char *region;
	const char *profile;
	const char *ca_bundle;		/* PEM file */
	enum s3_addressing addressing;
	unsigned threads;		/* transfer threads, 0: 2 */
	unsigned connections;		/* in all threads together, 0: 16 */
	bool trace;			/* log one line a request at LOG_INFO */

	/* Limits; 0: the default in brackets, in nanoseconds. */
	uint64_t connect_timeout;	/* one attempt to connect [10 s] */
	uint64_t first_byte_timeout;	/* request sent until answer [30 s] */
	uint64_t stall_timeout;		/* below 1 byte/s [20 s] */
	uint64_t give_up_after;		/* trying again, from the first failure
					 * of one request on [120 s]; what
					 * moves is never cut off */
	uint64_t answer_within;		/* the same as long as the server has
					 * never answered, for somebody who
					 * waits: the first failure is then
					 * logged as a warning [give_up_after,
					 * no warning] */
};

/**
 * s3_client_new(config, error):
 * A client with its threads running.  Sends nothing yet; credentials are
 * looked up at the first request.  NULL with ERROR_USAGE when a setting is
 * wrong or no credentials can come from anywhere.
 */
struct s3_client *s3_client_new(const struct s3_config *config,
    struct error *error);

/**
 * s3_client_free(client):
 * Cancel what is running (each `done` is called), end the threads, free all.
 * Behave consistently with free(NULL).
 */
void s3_client_free(struct s3_client *client);

enum s3_operation { S3_PUT, S3_GET, S3_HEAD, S3_DELETE };

/*
 * One request.  The caller fills the first part (zero the rest), keeps it
 * alive and untouched until `done` was called, and then reads the last part.
 */
struct s3_request {
	enum s3_operation operation;
	const char *key;

	/*
	 * PUT: `length` bytes of `body` from `offset` on, whose SHA-256 is
	 * `sha256`.  The body is read again at each attempt, by transfer
	 * threads, several requests at a time: its read_at must allow that.
	 * It is never held in memory whole.
	 */
	const struct source *body;
	uint8_t sha256[SHA256_SIZE];
	bool if_absent;		/* PUT: with If-None-Match: * */

	/*
	 * PUT and GET; GET with length 0: from `offset` to the end.  An object
	 * that ends before offset + length is ERROR_DAMAGED, after the sink
	 * was given what is there (416: it got nothing).
	 */
	uint64_t offset;
	uint64_t length;

	/*
	 * GET: called on a transfer thread with the next bytes, in order, each
	 * byte once even when the request had to be tried again.  -1 ends the
	 * request with that error.
	 */
	int (*sink)(void *context, const void *data, size_t length,
	    struct error *error);

	struct rate *rate;	/* paces PUT bodies and GET answers; may be NULL */
	uint64_t deadline;	/* clock_monotonic() at which to give up; 0: none */

	/*
	 * Called exactly once, on a transfer thread (or within
	 * s3_client_cancel or _free); must not block.  The client touches the
	 * request no more after it.
	 */
	void (*done)(struct s3_request *request);
	void *context;		/* the caller's, also given to sink */

	/* The outcome: error.class is ERROR_NONE when it worked. */
	struct error error;
	uint64_t size;		/* GET, HEAD: of the whole object */
	unsigned attempts;
	int status;		/* the last HTTP status, 0: none */
	struct timespec server_time;	/* the answer's Date; zero: none */

	void *private_data;	/* the client's */
};

/**
 * s3_client_submit(client, request):
 * Start ${request}.  Requests beyond the connections wait in order.  Any
 * thread.  `done` is always called, also for a request that is wrong.
 *
 * Errors of note: CAUSE_NOT_FOUND (NoSuchKey; a missing bucket says so in the
 * message and is CAUSE_DENIED), CAUSE_EXISTS (if_absent and it was there;
 * after an unanswered attempt the caller must look what is there),
 * CAUSE_REFUSED (the body did not fit its hash), CAUSE_DENIED (403 and the
 * like), CAUSE_UNREACHABLE (no answer or passing faults until the limit),
 * CAUSE_CANCELLED.  Deleting what is not there works.  The message carries
 * S3's code and message, the request id and the number of attempts; the
 * object is the key.
 */
void s3_client_submit(struct s3_client *client, struct s3_request *request);

/**
 * s3_client_cancel(client, request):
 * End ${request} soon: `done` is called with CAUSE_CANCELLED unless it was
 * finishing anyway.  Any thread but from within `done` of the same request.
 */
void s3_client_cancel(struct s3_client *client, struct s3_request *request);

/**
 * s3_client_perform(client, request):
 * Submit and wait; ${request}'s `done` and `context` are used by the client.
 * Not from a transfer thread.  Return 0, or -1 when request->error says why.
 */
int s3_client_perform(struct s3_client *client, struct s3_request *request);

/* One line of a listing. */
struct s3_entry {
	const char *key;	/* or the common prefix, ending in the delimiter */
	bool is_prefix;
	uint64_t size;
};

/**
 * s3_client_list(client, prefix, delimiter, visit, context, error):
 * List every key that starts with ${prefix}, in order, over all pages; with
 * ${delimiter} (may be NULL) what lies behind it is folded into prefixes.
 * ${visit} returns -1 (error filled) to stop.  Waits; not from a transfer
 * thread.  Return 0 or -1.
 */
int s3_client_list(struct s3_client *client, const char *prefix,
    const char *delimiter, int (*visit)(void *context,
    const struct s3_entry *entry, struct error *error), void *context,
    struct error *error);

/**
 * s3_client_delete_many(client, keys, count, error):
 * Delete keys by batches of at most 1,000 (by single DELETEs where the server
 * has no batch delete).  A key that is not there counts as deleted.  Waits.
 * Return 0, or -1 with the first key that could not be deleted in the error
 * (others may have been).
 */
int s3_client_delete_many(struct s3_client *client, const char *const *keys,
    size_t count, struct error *error);

/**
 * s3_client_credentials_text(client, text, size):
 * Where the credentials come from and how long they last, for people.
 * Write it into ${text} and return it.
 */
char *s3_client_credentials_text(struct s3_client *client, char *text,
    size_t size);

/**
 * s3_client_refresh(client):
 * The machine was frozen: what is sent in the next half minute goes over new
 * connections, since those that were kept are dead without knowing.  Any
 * thread.
 */
void s3_client_refresh(struct s3_client *client);

/* What a client has found out so far, for those who look for a fault. */
struct s3_facts {
	char address[640];		/* "https://s3.eu-west-3.amazonaws.com" */
	char first_region[64];		/* the one to begin with */
	char region[64];		/* another one: the server said so */
	char source[160];		/* of the credentials */
	bool keys_known;		/* they were had; else nothing of: */
	bool temporary;			/* they have a session token */
	bool renewable;			/* their source may give newer ones */
	time_t expires;			/* 0: no end is known */
	bool clock_known;		/* an answer told the server's time */
	long long clock_offset;		/* seconds: its clock minus ours, by the
					 * last answer */
};

/**
 * s3_client_facts(client, facts):
 * Fill in ${facts} as of now.  Sends nothing.  Any thread.
 */
void s3_client_facts(struct s3_client *client, struct s3_facts *facts);

#endif
