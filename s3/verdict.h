#ifndef S3_VERDICT_H
#define S3_VERDICT_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "s3/retry.h"

struct exchange;

/*
 * What the outcome of one attempt means for its request.
 */
struct verdict {
	enum { VERDICT_DONE, VERDICT_FAILED, VERDICT_AGAIN } kind;
	enum retry_kind retry;	/* AGAIN: RETRY_NEVER when something was
				 * corrected and it may go on at once */
	uint64_t asked;		/* AGAIN: nanoseconds that the server wants */
};

/**
 * verdict_of(attempt, code):
 * Judge the attempt that ended with ${code}, or whose `silence` says why we
 * ended it.  Fills the request's outcome; with AGAIN its error is what it
 * fails with if there is no other attempt.  Corrects region, clock and
 * credentials.
 */
struct verdict verdict_of(struct exchange *exchange, CURLcode code);

#endif
