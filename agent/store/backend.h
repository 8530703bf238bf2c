#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/source.h"

struct buffer;
struct rate;

/*
 * A place for objects: S3, a directory, or what a test puts under the
 * protocol (one that delays, repeats and loses requests).  It knows nothing
 * of checkpoints.  Keys are relative to the remote.
 */

enum backend_operation { BACKEND_PUT, BACKEND_GET, BACKEND_DELETE };

/* Caller's until submitted, the backend's until `done` was called. */
struct backend_request {
	enum backend_operation operation;
	const char *key;

	/*
	 * PUT: `length` bytes of `body` from `offset` on with this hash.  The
	 * body may be read again and by several threads at a time.  A body
	 * that does not fit the hash is refused (CAUSE_REFUSED) and nothing is
	 * stored.
	 */
	const struct source *body;
	uint8_t sha256[SHA256_SIZE];

	uint64_t offset;	/* PUT: in body; GET: in the object */
	uint64_t length;	/* GET: 0 means to the end */

	/* GET: next bytes in order, each once, on a thread of the backend. */
	int (*sink)(void *context, const void *data, size_t length,
	    struct error *error);

	struct rate *rate;	/* may be NULL */
	uint64_t deadline;	/* clock_monotonic(), 0: none */

	/* Called exactly once, on a thread of the backend or, when it cannot
	 * be started, within backend_submit; must not block. */
	void (*done)(struct backend_request *request);
	void *context;		/* the caller's, also given to sink */

	/* The outcome: error.class is ERROR_NONE when it worked. */
	struct error error;
	uint64_t size;		/* GET: size of the whole object, when known */
	uint32_t attempts;

	void *private_data;	/* the backend's */
};

struct backend_entry {
	const char *key;
	bool is_prefix;		/* a folded "term-.../" */
	uint64_t size;
};

typedef int (*backend_visit)(void *context, const struct backend_entry *entry,
    struct error *error);

struct backend;

struct backend_operations {
	void (*submit)(struct backend *backend, struct backend_request *request);
	void (*cancel)(struct backend *backend, struct backend_request *request);
	int (*list)(struct backend *backend, const char *prefix, bool fold,
	    backend_visit visit, void *context, struct error *error);
	int (*remove)(struct backend *backend, const char *const *keys,
	    size_t count, struct error *error);
	void (*refresh)(struct backend *backend);	/* may be NULL */
	void (*free)(struct backend *backend);
};

struct backend {
	const struct backend_operations *operations;
	bool weak;		/* LIST is only eventually consistent (DESIGN 5) */
	bool local;		/* no network: nothing to gain from compression
				 * or from waiting for bandwidth */
	char name[512];		/* "s3://bucket/run1", for messages */
};

/**
 * backend_submit(backend, request) / backend_cancel(backend, request):
 * Start a request; end it soon with CAUSE_CANCELLED.  Any thread.  Errors as
 * in s3/client.h: CAUSE_NOT_FOUND, CAUSE_REFUSED, CAUSE_UNREACHABLE (its
 * effect, for PUT and DELETE, is then unknown: it may still come), ...
 * A DELETE of what is not there works.
 */
void backend_submit(struct backend *backend, struct backend_request *request);
void backend_cancel(struct backend *backend, struct backend_request *request);

/**
 * backend_refresh(backend):
 * This machine was frozen: connections that were kept are dead.  Any thread.
 */
void backend_refresh(struct backend *backend);

/**
 * backend_list(backend, prefix, fold, visit, context, error):
 * Visit every key that starts with ${prefix}, in order; with ${fold}, what
 * lies behind the next '/' is one entry.  Waits.  ${visit} returning -1 stops
 * it.  Return 0 or -1.
 */
int backend_list(struct backend *backend, const char *prefix, bool fold,
    backend_visit visit, void *context, struct error *error);

/**
 * backend_remove(backend, keys, count, error):
 * Delete many, in batches.  Waits.  What is not there is fine.  Return 0, or
 * -1 when at least one may remain.
 */
int backend_remove(struct backend *backend, const char *const *keys,
    size_t count, struct error *error);

/**
 * backend_put(backend, key, data, length, deadline, error):
 * PUT a small object from memory and wait.  Return 0 or -1.
 */
int backend_put(struct backend *backend, const char *key, const void *data,
    size_t length, uint64_t deadline, struct error *error);

/**
 * backend_get(backend, key, buffer, deadline, error):
 * GET a whole small object into ${buffer} (whose limit bounds it) and wait.
 * Return 0 or -1.
 */
int backend_get(struct backend *backend, const char *key,
    struct buffer *buffer, uint64_t deadline, struct error *error);

/**
 * backend_free(backend):
 * Cancel what is running and free all.  Behave consistently with free(NULL).
 */
void backend_free(struct backend *backend);

#endif
