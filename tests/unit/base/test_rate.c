#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/rate.h"
#include "kit/kit.h"

static const struct timespec some_day = { 1796060760, 0 };

static void
no_limit_lets_all_pass(void **state)
{
	struct error error = ERROR_INIT;
	struct rate *rate = rate_new(0, &error);

	(void)state;
	assert_non_null(rate);
	assert_true(rate_allow(rate, UINT64_MAX) == UINT64_MAX);
	assert_int_equal(rate_allow(rate, 0), 0);
	assert_int_equal(rate_wait(rate), 0);
	rate_free(rate);
	rate_free(NULL);
}

static void
the_bucket_holds_a_fifth_of_a_second(void **state)
{
	struct error error = ERROR_INIT;
	struct rate *rate;

	(void)state;
	clock_test_start(some_day);
	rate = rate_new(1000, &error);
	assert_non_null(rate);
	assert_int_equal(rate_wait(rate), 0);
	assert_int_equal(rate_allow(rate, 150), 150);
	assert_int_equal(rate_wait(rate), 0);
	assert_int_equal(rate_allow(rate, 150), 50);
	assert_int_equal(rate_allow(rate, 150), 0);
	assert_int_equal(rate_passed(rate), 200);

	/* Some may pass exactly when it said. */
	assert_true(rate_wait(rate) > 0);
	assert_true(rate_wait(rate) <= CLOCK_SECOND / 5);
	clock_test_turn(rate_wait(rate));
	assert_int_equal(rate_wait(rate), 0);
	assert_true(rate_allow(rate, 150) > 0);

	/* Idle time is not saved up. */
	clock_test_turn(3600 * CLOCK_SECOND);
	assert_int_equal(rate_allow(rate, 100000), 200);
	rate_free(rate);
	clock_test_stop();
}

static void
small_steps_lose_no_bytes(void **state)
{
	static const uint64_t limits[] = { 1, 3, 7, 1000, 999983,
	    UINT64_C(12500000000) };

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct error error = ERROR_INIT;
		struct rate *rate;
		uint64_t passed = 0, first;

		clock_test_start(some_day);
		rate = rate_new(limits[i], &error);
		assert_non_null(rate);
		first = rate_allow(rate, UINT64_MAX);
		assert_true(first <= limits[i] / 5 + 1);
		for (int step = 0; step < 10000; step++) {
			clock_test_turn(CLOCK_MILLISECOND);
			passed += rate_allow(rate, UINT64_MAX);
		}
		assert_true(passed <= 10 * limits[i]);
		assert_true(passed >= 10 * limits[i] - 1);
		rate_free(rate);
		clock_test_stop();
	}
}

static void
waiting_makes_progress_at_any_limit(void **state)
{
	static const uint64_t limits[] = { 1, 4, 5, 1023, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct error error = ERROR_INIT;
		struct rate *rate;

		clock_test_start(some_day);
		rate = rate_new(limits[i], &error);
		assert_non_null(rate);
		for (int round = 0; round < 100; round++) {
			while (rate_allow(rate, UINT64_MAX) != 0)
				;
			clock_test_turn(rate_wait(rate));
			assert_true(rate_allow(rate, 1) == 1);
		}
		rate_free(rate);
		clock_test_stop();
	}
}

static void
the_limit_can_change(void **state)
{
	struct error error = ERROR_INIT;
	struct rate *rate;

	(void)state;
	clock_test_start(some_day);
	rate = rate_new(1000, &error);
	assert_non_null(rate);
	rate_allow(rate, 200);

	/* Lifted: all passes at once. */
	rate_set(rate, 0);
	assert_int_equal(rate_wait(rate), 0);
	assert_int_equal(rate_allow(rate, 1000000), 1000000);

	/* Set again: from a full, but small bucket. */
	rate_set(rate, 100);
	assert_int_equal(rate_allow(rate, 1000000), 20);

	/* Lowered: what is in the bucket must fit the new one. */
	rate_set(rate, 10000);
	clock_test_turn(CLOCK_SECOND);
	rate_set(rate, 50);
	assert_int_equal(rate_allow(rate, 1000000), 10);
	clock_test_turn(CLOCK_SECOND / 10);
	rate_set(rate, 1000000);
	assert_int_equal(rate_allow(rate, 1000000), 5);
	rate_free(rate);
	clock_test_stop();
}

struct crowd {
	struct rate *rate;
	atomic_bool stop;
	atomic_ullong passed;
};

static void *
pass(void *argument)
{
	struct crowd *crowd = argument;

	while (!atomic_load(&crowd->stop)) {
		atomic_fetch_add(&crowd->passed, rate_allow(crowd->rate, 17));
		(void)rate_wait(crowd->rate);
	}
	return NULL;
}

static void
threads_share_one_limit(void **state)
{
	struct crowd crowd = { .stop = false };
	struct error error = ERROR_INIT;
	pthread_t threads[4];

	(void)state;
	clock_test_start(some_day);
	crowd.rate = rate_new(10000, &error);
	assert_non_null(crowd.rate);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, pass, &crowd);

	/* Whoever takes them: nothing but the bucket and what came after. */
	for (unsigned step = 0; step < 20; step++) {
		while (atomic_load(&crowd.passed) < 2000 + step * 1000)
			sched_yield();
		assert_true(atomic_load(&crowd.passed) <= 2000 + step * 1000);
		clock_test_turn(CLOCK_SECOND / 10);
	}
	atomic_store(&crowd.stop, true);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	rate_free(crowd.rate);
	clock_test_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_limit_lets_all_pass),
		cmocka_unit_test(the_bucket_holds_a_fifth_of_a_second),
		cmocka_unit_test(small_steps_lose_no_bytes),
		cmocka_unit_test(waiting_makes_progress_at_any_limit),
		cmocka_unit_test(the_limit_can_change),
		cmocka_unit_test(threads_share_one_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
