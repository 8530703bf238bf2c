#include <string.h>

#include "base/clock.h"
#include "kit/kit.h"
#include "notice/wall_time.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int64_t
seconds_of(const char *rfc3339)
{
	struct timespec when;

	assert_int_equal(clock_parse(rfc3339, &when), 0);
	return when.tv_sec;
}

static void
reads_every_spelling(void **state)
{
	static const struct {
		const char *text, *same;
		int zone;
	} cases[] = {
		{ "2017-09-18T08:22:00Z", "2017-09-18T08:22:00Z", 0 },
		{ " 2017-09-18T10:22:00+02:00\n", "2017-09-18T08:22:00Z", 0 },
		{ "2018-08-18 12:05:33", "2018-08-18T04:05:33Z", 28800 },
		{ "2018-08-18 02:05:33\r\n", "2018-08-17T18:05:33Z", 28800 },
		{ "2018-08-18 12:05:33", "2018-08-18T12:05:33Z", 0 },
		/* A zone that is said counts, whatever is usual. */
		{ "2017-09-18T08:22:00Z", "2017-09-18T08:22:00Z", 28800 },
		{ "21 Jan 2019 09:00:43 GMT", "2019-01-21T09:00:43Z", 0 },
		{ "2 Jan 2006 15:04:05 GMT", "2006-01-02T15:04:05Z", 28800 },
		{ "02 feb 2006 15:04:05 UTC", "2006-02-02T15:04:05Z", 0 },
		{ "Mon, 11 Apr 2026 22:26:58 GMT", "2026-04-11T22:26:58Z", 0 },
		{ "Fri, 31 Dec 9999 23:59:59 GMT", "9999-12-31T23:59:59Z", 0 },
	};
	struct timespec when;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(wall_time_parse(cases[i].text, cases[i].zone,
		    &when), 0);
		assert_int_equal(when.tv_sec, seconds_of(cases[i].same));
		assert_int_equal(when.tv_nsec, 0);
	}
}

static void
refuses_what_is_no_time(void **state)
{
	static const char *const cases[] = {
		"", " ", "\n", "none", "now", "1", "2017-09-18",
		"2017-09-18T08:22:00", "2017-09-18T25:22:00Z",
		"2018-02-30 12:05:33", "2018-08-18 12:05", "2018-08-18  2:05:33",
		"2018-08-18 12:05:33 CST", "30 Feb 2019 09:00:43 GMT",
		"21 Foo 2019 09:00:43 GMT", "21 Jan 2019 9:00:43 GMT",
		"21 Jan 19 09:00:43 GMT", "21 Jan 2019 09:00:43 PST",
		"21 Jan 2019 09:00:43", "21 Jan 2019 09:00:43 GMT x",
		"0 Jan 2019 09:00:43 GMT", "Mon, ", "Mon, Mon, x", ",",
		"<html>2017-09-18T08:22:00Z</html>", "-1 Jan 2019 00:00:00 GMT",
		"21 Jan 2019 ::::::::  GMT", "99999999999999999999",
		"2017-09-18T08:22:00Z 2017-09-18T08:22:00Z 2017-09-18T08:22:00Z",
	};
	struct timespec when;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (wall_time_parse(cases[i], 0, &when) == 0)
			fail_msg("\"%s\" was read as a time", cases[i]);
}

static void
a_countdown_is_bounded(void **state)
{
	struct timespec start = { .tv_sec = 1796040000, .tv_nsec = 500000000 };
	struct timespec when = start;
	uint64_t now;

	(void)state;
	clock_test_start(start);
	now = clock_monotonic();
	assert_int_equal(wall_time_left(when), 0);
	assert_int_equal(wall_time_deadline(when), now);
	when.tv_sec += 100;
	when.tv_nsec = 0;
	assert_int_equal(wall_time_left(when), INT64_C(99500000000));
	assert_int_equal(wall_time_deadline(when), now + 99500000000);
	when.tv_sec += 800;
	when.tv_nsec = 600000000;
	assert_int_equal(wall_time_deadline(when), now + 900 * CLOCK_SECOND);
	when.tv_sec = start.tv_sec - 1;
	assert_true(wall_time_left(when) < 0);
	assert_int_equal(wall_time_deadline(when), now);

	/* Nothing overflows, whatever the clock says. */
	when = (struct timespec){ .tv_sec = INT64_C(253402300799) };
	assert_int_equal(wall_time_deadline(when), now + 900 * CLOCK_SECOND);
	assert_true(wall_time_left(when) > 0);
	when = (struct timespec){ .tv_sec = INT64_C(-62167219200) };
	assert_int_equal(wall_time_deadline(when), now);
	assert_true(wall_time_left(when) < 0);
	clock_test_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_spelling),
		cmocka_unit_test(refuses_what_is_no_time),
		cmocka_unit_test(a_countdown_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
