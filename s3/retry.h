#ifndef S3_RETRY_H
#define S3_RETRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * What deserves another attempt, when, and how many of them all requests
 * together may make.
 */

/* What a failed attempt means for the next one. */
enum retry_kind {
	RETRY_NEVER,		/* trying again will not help */
	RETRY_FAULT,		/* a passing fault of the server */
	RETRY_THROTTLE,		/* the server asks for fewer requests */
	RETRY_TIMEOUT,		/* no answer in time */
	RETRY_CONNECTION	/* never reached the server, or it went away */
};

/**
 * retry_kind_of(status, code):
 * By the HTTP status and S3's error code ("" when unknown), after botocore's,
 * minio-go's and aws-c-s3's tables.  What needs a correction first (clock,
 * region, token, hash) is RETRY_NEVER here.
 */
enum retry_kind retry_kind_of(int status, const char *code);

/**
 * retry_delay(kind, attempt, asked, random):
 * Nanoseconds to wait after the failed attempt number ${attempt} (from 1 on):
 * between nothing and an end that doubles from 100 ms (1 s when throttled) up
 * to RETRY_CAP, by ${random}; at least what the server ${asked} for, up to
 * RETRY_CAP.
 */
#define RETRY_CAP UINT64_C(20000000000)
uint64_t retry_delay(enum retry_kind kind, unsigned attempt, uint64_t asked,
    uint64_t random);

/*
 * The budget: every retry takes tokens, every success brings some back.  An
 * attempt that never reached the server costs nothing, for it is no load.
 * When there are none left the next attempt waits for RETRY_CAP: an
 * overloaded server sees no storm, and no request is given up early.
 * Any thread.
 */
#define RETRY_BUDGET 500

struct retry_budget {
	atomic_int tokens;
};

void retry_budget_init(struct retry_budget *budget);

/**
 * retry_budget_take(budget, kind):
 * The tokens taken (possibly 0), or -1 when there were not enough.
 */
int retry_budget_take(struct retry_budget *budget, enum retry_kind kind);

/**
 * retry_budget_return(budget, tokens):
 * A request succeeded: give back what its last retry took, or 1.
 */
void retry_budget_return(struct retry_budget *budget, int tokens);

#endif
