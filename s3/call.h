#ifndef S3_CALL_H
#define S3_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "s3/client.h"
#include "s3/sign.h"

/*
 * A request on its way, with all that its attempts have in common.
 */
struct call {
	struct s3_request *request;

	/* Beyond what a caller can ask for (listings, batch deletes). */
	bool is_post;			/* an S3_PUT sent as POST */
	const struct sign_field *parameters;
	size_t parameter_count;
	const char *content_md5;	/* NULL: not sent */
	/* Takes in the whole answer of a success instead of the sink; -1
	 * (error filled): the answer is damaged, try again. */
	int (*accept)(void *context, const void *data, size_t length,
	    struct error *error);
	void *accept_context;
	/* Called when it is over, instead of the request's `done`. */
	void (*over)(void *context);
	void *over_context;

	/* Between the threads (pool.c). */
	struct call *next;
	unsigned seat;			/* the transfer thread's */
	bool waiting;			/* in line for a seat */
	atomic_bool cancelled;
	bool wrong;			/* request->error says why */

	/* The transfer thread's. */
	uint64_t not_before;		/* when the next attempt may start */
	uint64_t first_failure;		/* since the last success; 0: none */
	unsigned failures;
	uint64_t delivered;		/* GET: bytes given to the sink */
	uint64_t delivered_before;	/* when the attempt began */
	char etag[128];			/* of what was delivered */
	int tokens;			/* taken for the last retry */
	bool fresh;			/* on a new connection */
	bool probing;			/* HEAD: asked as GET to learn why */
	bool region_corrected;
	bool token_renewed;
	bool sent_again;		/* the body did not fit its hash */
	unsigned clock_corrections;
};

/* Bytes of an answer that is kept whole: a page of 1,000 longest keys. */
#define CALL_ANSWER_LIMIT (16u * 1024 * 1024)
/* Bytes of an error's answer; what is beyond is dropped. */
#define CALL_ERROR_LIMIT (64u * 1024)

/**
 * call_new(request):
 * A call for ${request}; its outcome is emptied.  NULL when out of memory.
 */
struct call *call_new(struct s3_request *request);

/**
 * call_check(call):
 * Whether a caller's request makes sense; it becomes `wrong` when not.
 */
void call_check(struct call *call);

/**
 * call_method(call):
 * "PUT", "GET", ... of the next attempt.
 */
const char *call_method(const struct call *call);

#endif
