#ifndef NOTICE_ASKER_H
#define NOTICE_ASKER_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/*
 * Several small HTTP requests at once, on connections of their own that are
 * kept: never through a proxy, never following a redirect, at most 256 KiB an
 * answer, and timed by base/clock.  One thread, but asker_wake.
 */
struct asker;

enum request_state { REQUEST_IDLE, REQUEST_RUNNING, REQUEST_DONE };

/* No cloud's own ETag comes near; a longer one is taken as none. */
#define REQUEST_ETAG_SIZE 128

struct request {
	/* What to ask; the strings must stay while it runs. */
	const char *method;		/* GET, PUT or POST */
	char url[1024];
	const char *headers[3];		/* "Name: value"; NULL ends them */
	const char *body;		/* POST: JSON; or NULL */
	uint64_t timeout;		/* of the whole, nanoseconds */

	/* REQUEST_DONE: what came of it.  Its owner sets REQUEST_IDLE. */
	enum request_state state;
	uint64_t started;		/* clock_monotonic() */
	int status;			/* 0: no whole answer came, see error */
	struct buffer answer;
	char etag[REQUEST_ETAG_SIZE];	/* "" when there was none */
	bool google;			/* with "Metadata-Flavor: Google" */
	bool timed_out;
	int system_error;		/* errno of a failed connect, or 0 */
	struct error error;

	/* The asker's. */
	CURL *easy;
	struct curl_slist *list;
	struct request *next;
};

/**
 * request_init(request):
 * Make it idle.  It must be freed before its asker.
 */
void request_init(struct request *request);

/**
 * asker_new(error):
 * NULL when no memory or descriptor could be had.
 */
struct asker *asker_new(struct error *error);

/**
 * asker_start(asker, request):
 * Send ${request}, which is idle.  It is running or, when that failed, done.
 */
void asker_start(struct asker *asker, struct request *request);

/**
 * asker_wait(asker, until):
 * Wait until a request is done, asker_wake was called, or ${until} on
 * clock_monotonic() is reached.  May also return for no reason.
 */
void asker_wait(struct asker *asker, uint64_t until);

/**
 * asker_cancel(asker, request):
 * Make ${request} idle, whatever it does, and give back what it holds.
 */
void asker_cancel(struct asker *asker, struct request *request);

/**
 * asker_wake(asker):
 * End the present or the next asker_wait.  Any thread.
 */
void asker_wake(struct asker *asker);

/**
 * asker_drop_connections(asker):
 * Open new ones from now on; no request may be running.  Return 0 or -1.
 */
int asker_drop_connections(struct asker *asker, struct error *error);

/**
 * asker_free(asker):
 * Behave consistently with free(NULL).
 */
void asker_free(struct asker *asker);

#endif
