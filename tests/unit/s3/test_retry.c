#include "kit/kit.h"

#include <stdint.h>

#include "s3/retry.h"

#define SECOND UINT64_C(1000000000)

static void
test_kinds(void **state)
{
	static const int passing[] = { 408, 429, 499, 500, 502, 503, 504, 509,
	    520 };
	static const int lasting[] = { 200, 301, 307, 400, 401, 403, 404, 405,
	    409, 411, 412, 416, 501, 505 };

	(void)state;
	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		assert_int_not_equal(retry_kind_of(passing[i], ""),
		    RETRY_NEVER);
	for (size_t i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++)
		assert_int_equal(retry_kind_of(lasting[i], ""), RETRY_NEVER);
	assert_int_equal(retry_kind_of(503, "SlowDown"), RETRY_THROTTLE);
	assert_int_equal(retry_kind_of(400, "RequestTimeout"), RETRY_FAULT);
	assert_int_equal(retry_kind_of(400, "RequestRateLimitExceeded"),
	    RETRY_THROTTLE);
	assert_int_equal(retry_kind_of(409, "OperationAborted"), RETRY_FAULT);
	assert_int_equal(retry_kind_of(501, "NotImplemented"), RETRY_NEVER);
	assert_int_equal(retry_kind_of(403, "AccessDenied"), RETRY_NEVER);
}

static void
test_delays(void **state)
{
	(void)state;
	/* The largest random number that still counts gives the end. */
	assert_true(retry_delay(RETRY_FAULT, 1, 0, SECOND / 10) ==
	    SECOND / 10);
	assert_true(retry_delay(RETRY_FAULT, 3, 0, 4 * SECOND / 10) ==
	    4 * SECOND / 10);
	assert_true(retry_delay(RETRY_THROTTLE, 1, 0, SECOND) == SECOND);
	assert_true(retry_delay(RETRY_THROTTLE, 2, 0, 2 * SECOND) ==
	    2 * SECOND);
	assert_true(retry_delay(RETRY_FAULT, 4000000000u, 0, RETRY_CAP) ==
	    RETRY_CAP);
	for (unsigned attempt = 1; attempt < 70; attempt++)
		assert_true(retry_delay(RETRY_FAULT, attempt, 0,
		    UINT64_MAX - attempt) <= RETRY_CAP);
	assert_true(retry_delay(RETRY_FAULT, 1, 0, 0) == 0);
	assert_true(retry_delay(RETRY_FAULT, 1, 3 * SECOND, 0) == 3 * SECOND);
	assert_true(retry_delay(RETRY_FAULT, 1, 3600 * SECOND, 0) ==
	    RETRY_CAP);
}

static void
test_budget(void **state)
{
	struct retry_budget budget;
	unsigned taken = 0;

	(void)state;
	retry_budget_init(&budget);
	while (retry_budget_take(&budget, RETRY_FAULT) == 5)
		taken++;
	assert_int_equal(taken, 100);
	assert_int_equal(retry_budget_take(&budget, RETRY_TIMEOUT), -1);
	/* What never reached the server is no load. */
	assert_int_equal(retry_budget_take(&budget, RETRY_CONNECTION), 0);
	for (unsigned i = 0; i < 4; i++)
		retry_budget_return(&budget, 0);
	assert_int_equal(retry_budget_take(&budget, RETRY_THROTTLE), -1);
	retry_budget_return(&budget, 0);
	assert_int_equal(retry_budget_take(&budget, RETRY_THROTTLE), 5);
	retry_budget_return(&budget, 10);
	assert_int_equal(retry_budget_take(&budget, RETRY_TIMEOUT), 10);
	for (unsigned i = 0; i < 1000; i++)
		retry_budget_return(&budget, 5);
	for (taken = 0; retry_budget_take(&budget, RETRY_TIMEOUT) == 10;)
		taken++;
	assert_int_equal(taken, 50);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_delays),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
