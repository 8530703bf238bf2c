#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "kit/kit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void
real_clocks_go_on(void **state)
{
	uint64_t monotonic = clock_monotonic(), boot = clock_boot();
	struct timespec wall = clock_wall();

	(void)state;
	clock_sleep(2 * CLOCK_MILLISECOND);
	clock_sleep(0);
	assert_true(clock_monotonic() >= monotonic + 2 * CLOCK_MILLISECOND);
	assert_true(clock_boot() > boot);
	assert_true(wall.tv_sec > 1600000000);
}

static void
writes_times(void **state)
{
	static const struct {
		struct timespec when;
		const char *text;
	} cases[] = {
		{ { 0, 0 }, "1970-01-01T00:00:00.000Z" },
		{ { 1796060760, 123999999 }, "2026-11-30T17:46:00.123Z" },
		{ { -1, 999000000 }, "1969-12-31T23:59:59.999Z" },
		{ { 951782400, 0 }, "2000-02-29T00:00:00.000Z" },
		{ { INT64_C(-62167219200), 0 }, "0000-01-01T00:00:00.000Z" },
		{ { INT64_C(253402300799), 0 }, "9999-12-31T23:59:59.000Z" },
		{ { INT64_MAX, 0 }, "9999-12-31T23:59:59.000Z" },
		{ { INT64_MIN, -5 }, "0000-01-01T00:00:00.000Z" },
		{ { 0, 1000000000 }, "1970-01-01T00:00:00.000Z" },
	};
	char text[CLOCK_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *written = clock_text(cases[i].when, text);

		assert_ptr_equal(written, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void
reads_times(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
		long nanoseconds;
	} cases[] = {
		{ "1970-01-01T00:00:00Z", 0, 0 },
		{ "2026-11-30T17:46:00.123Z", 1796060760, 123000000 },
		{ "2026-11-30T23:16:00+05:30", 1796060760, 0 },
		{ "2026-11-30T09:46:00-08:00", 1796060760, 0 },
		{ "2026-11-30t17:46:00z", 1796060760, 0 },
		{ "2026-11-30T17:46:00-00:00", 1796060760, 0 },
		{ "2026-11-30T17:46:00.1234567899Z", 1796060760, 123456789 },
		{ "2026-11-30T17:46:00.000000000000000000001Z", 1796060760,
		    0 },
		{ "2000-02-29T00:00:00Z", 951782400, 0 },
		{ "1969-12-31T23:59:59.5Z", -1, 500000000 },
		{ "0000-01-01T00:00:00Z", INT64_C(-62167219200), 0 },
		{ "9999-12-31T23:59:59Z", INT64_C(253402300799), 0 },
		{ "2016-12-31T23:59:60Z", 1483228800, 0 },
		{ "2016-12-31T15:59:60-08:00", 1483228800, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct timespec when = { 7, 7 };

		assert_int_equal(clock_parse(cases[i].text, &when), 0);
		assert_int_equal(when.tv_sec, cases[i].seconds);
		assert_int_equal(when.tv_nsec, cases[i].nanoseconds);
	}
}

static void
refuses_other_times(void **state)
{
	static const char *const cases[] = {
		"", "now", "2026", "2026-11-30", "2026-11-30T17:46:00",
		"2026-11-30 17:46:00Z", " 2026-11-30T17:46:00Z",
		"2026-11-30T17:46:00Z ", "2026-11-30T17:46:00ZZ",
		"2026-11-30T17:46Z", "2026-11-30T17:46:00.Z",
		"2026-11-30T17:46:00,5Z", "2026-13-01T00:00:00Z",
		"2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
		"2026-04-31T00:00:00Z", "2026-02-29T00:00:00Z",
		"1900-02-29T00:00:00Z", "2026-01-01T24:00:00Z",
		"2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z",
		"2026-01-01T00:00:60Z", "2026-01-01T23:59:60+01:00",
		"2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+01:60",
		"2026-01-01T00:00:00+0100", "2026-01-01T00:00:00+1",
		"2026-01-01T00:00:00+", "20260101T000000Z",
		"-026-01-01T00:00:00Z", "2026-1-01T00:00:00Z",
		"12026-01-01T00:00:00Z", "2026-01-01T00:00:-1Z",
		"2026-01-01T0 :00:00Z", "\xff", "2026-01-01T00:00:00.5",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct timespec when = { 7, 7 };

		assert_int_equal(clock_parse(cases[i], &when), -1);
		assert_int_equal(when.tv_sec, 7);
	}
}

static void
the_test_clock_stands_and_turns(void **state)
{
	struct timespec wall;

	(void)state;
	clock_test_start((struct timespec){ 1000, 999999999 });
	assert_true(clock_monotonic() == 1000 * CLOCK_SECOND);
	assert_true(clock_boot() == 1000 * CLOCK_SECOND);
	clock_test_turn(1);
	wall = clock_wall();
	assert_int_equal(wall.tv_sec, 1001);
	assert_int_equal(wall.tv_nsec, 0);
	clock_test_turn(90 * CLOCK_SECOND);
	assert_true(clock_monotonic() == 1090 * CLOCK_SECOND + 1);
	assert_int_equal(clock_wall().tv_sec, 1091);
	clock_sleep(0);
	clock_test_stop();
	assert_true(clock_wall().tv_sec > 1600000000);
}

struct sleeper {
	uint64_t long_enough;
	atomic_bool awake;
};

static void *
sleep_once(void *argument)
{
	struct sleeper *sleeper = argument;

	clock_sleep(sleeper->long_enough);
	atomic_store(&sleeper->awake, true);
	return NULL;
}

static void
turning_wakes_who_is_due(void **state)
{
	struct sleeper sleepers[] = {
		{ .long_enough = 3600 * CLOCK_SECOND },
		{ .long_enough = CLOCK_SECOND },
		{ .long_enough = CLOCK_NEVER },
	};
	pthread_t threads[3];
	struct timespec start = { 1, 0 };

	(void)state;
	clock_test_start(start);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, sleep_once,
		    &sleepers[i]), 0);

	/* Whenever the threads begin to sleep, their time comes. */
	while (!atomic_load(&sleepers[0].awake))
		clock_test_turn(CLOCK_SECOND);
	assert_true(clock_monotonic() >= 4600 * CLOCK_SECOND);
	while (!atomic_load(&sleepers[1].awake))
		clock_test_turn(CLOCK_SECOND);
	assert_false(atomic_load(&sleepers[2].awake));
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);

	/* Who still sleeps is woken when the test ends. */
	clock_test_turn(CLOCK_NEVER);
	clock_test_stop();
	pthread_join(threads[2], NULL);
}

static void
slices_waits_only_under_a_test(void **state)
{
	(void)state;
	assert_int_equal(clock_slice(CLOCK_NEVER, true), CLOCK_NEVER);
	clock_test_start((struct timespec){ 0, 0 });
	assert_true(clock_slice(CLOCK_NEVER, false) <= 5 * CLOCK_MILLISECOND);
	assert_true(clock_slice(CLOCK_NEVER, true) <= 50 * CLOCK_MILLISECOND);
	assert_int_equal(clock_slice(1, true), 1);
	clock_test_stop();
	assert_int_equal(clock_slice(CLOCK_SECOND, false), CLOCK_SECOND);
}

struct slicer {
	atomic_bool stop;
	atomic_int rounds;
};

static void *
slice(void *context)
{
	struct slicer *slicer = context;

	while (!atomic_load(&slicer->stop)) {
		clock_slice(CLOCK_NEVER, false);
		atomic_fetch_add(&slicer->rounds, 1);
	}
	return NULL;
}

static void
settles_when_the_waiter_has_looked_again(void **state)
{
	struct slicer slicer = { .stop = false };
	pthread_t thread;

	(void)state;
	clock_test_start((struct timespec){ 0, 0 });
	assert_int_equal(pthread_create(&thread, NULL, slice, &slicer), 0);
	for (int i = 0; i < 100; i++) {
		int before = atomic_load(&slicer.rounds);

		assert_true(clock_test_settle());
		assert_true(atomic_load(&slicer.rounds) > before);
	}
	atomic_store(&slicer.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	clock_test_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_clocks_go_on),
		cmocka_unit_test(writes_times),
		cmocka_unit_test(reads_times),
		cmocka_unit_test(refuses_other_times),
		cmocka_unit_test(the_test_clock_stands_and_turns),
		cmocka_unit_test(turning_wakes_who_is_due),
		cmocka_unit_test(slices_waits_only_under_a_test),
		cmocka_unit_test(settles_when_the_waiter_has_looked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
