#include <stddef.h>
#include <string.h>

#include "s3/retry.h"

/* botocore's `retries/standard.py` and its legacy table, minio-go's
 * `retry.go`, aws-c-s3's `s3_util.c`; the Request... ones with 400 are S3's
 * own and Wasabi's. */
static const struct {
	const char *code;
	enum retry_kind kind;
} codes[] = {
	{ "SlowDown", RETRY_THROTTLE },
	{ "SlowDownRead", RETRY_THROTTLE },
	{ "SlowDownWrite", RETRY_THROTTLE },
	{ "Throttling", RETRY_THROTTLE },
	{ "ThrottlingException", RETRY_THROTTLE },
	{ "ThrottledException", RETRY_THROTTLE },
	{ "RequestThrottled", RETRY_THROTTLE },
	{ "RequestThrottledException", RETRY_THROTTLE },
	{ "RequestLimitExceeded", RETRY_THROTTLE },
	{ "RequestRateLimitExceeded", RETRY_THROTTLE },
	{ "BandwidthLimitExceeded", RETRY_THROTTLE },
	{ "TooManyRequestsException", RETRY_THROTTLE },
	{ "TooManyRequests", RETRY_THROTTLE },
	{ "PriorRequestNotComplete", RETRY_THROTTLE },
	{ "ServiceUnavailable", RETRY_FAULT },
	{ "InternalError", RETRY_FAULT },
	{ "InternalErrors", RETRY_FAULT },
	{ "InternalServerError", RETRY_FAULT },
	{ "OperationAborted", RETRY_FAULT },
	{ "ConditionalRequestConflict", RETRY_FAULT },
	{ "RequestTimeout", RETRY_FAULT },
	{ "RequestTimeoutException", RETRY_FAULT },
	{ "IncompleteBody", RETRY_FAULT },
};

enum retry_kind
retry_kind_of(int status, const char *code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(code, codes[i].code) == 0)
			return codes[i].kind;
	switch (status) {
	case 429:
	case 509:
		return RETRY_THROTTLE;
	case 408:
	case 499:
	case 500:
	case 502:
	case 503:
	case 504:
	case 520:
		return RETRY_FAULT;
	default:
		return RETRY_NEVER;
	}
}

uint64_t
retry_delay(enum retry_kind kind, unsigned attempt, uint64_t asked,
    uint64_t random)
{
	uint64_t end = kind == RETRY_THROTTLE ? UINT64_C(1000000000) :
	    UINT64_C(100000000);

	for (unsigned i = 1; i < attempt && end < RETRY_CAP; i++)
		end *= 2;
	if (end > RETRY_CAP)
		end = RETRY_CAP;

	uint64_t delay = random % (end + 1);

	if (asked > RETRY_CAP)
		asked = RETRY_CAP;
	return delay > asked ? delay : asked;
}

void
retry_budget_init(struct retry_budget *budget)
{
	atomic_init(&budget->tokens, RETRY_BUDGET);
}

int
retry_budget_take(struct retry_budget *budget, enum retry_kind kind)
{
	int cost = kind == RETRY_CONNECTION ? 0 : kind == RETRY_TIMEOUT ? 10 : 5;
	int have = atomic_load(&budget->tokens);

	do {
		if (have < cost)
			return -1;
	} while (!atomic_compare_exchange_weak(&budget->tokens, &have,
	    have - cost));
	return cost;
}

void
retry_budget_return(struct retry_budget *budget, int tokens)
{
	int have = atomic_load(&budget->tokens);
	int after;

	do {
		after = have + (tokens > 0 ? tokens : 1);
		if (after > RETRY_BUDGET)
			after = RETRY_BUDGET;
	} while (!atomic_compare_exchange_weak(&budget->tokens, &have, after));
}
