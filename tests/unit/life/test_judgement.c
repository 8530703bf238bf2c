#include "kit/kit.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "life/finding.h"
#include "life/judgement.h"
#include "s3/client.h"

#define S CLOCK_SECOND
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void
assert_says(const struct finding *finding, const char *text)
{
	if (strstr(finding->message, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", finding->message, text);
}

static void
assert_cures(const struct finding *finding, const char *text)
{
	if (strstr(finding->cure, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", finding->cure, text);
}

static double
fact(const struct finding *finding, const char *name)
{
	json_t *value = json_object_get(finding->facts, name);

	assert_true(json_is_number(value));
	return json_number_value(value);
}

static void
speed_is_held_against_the_window(void **state)
{
	static const struct {
		uint64_t bytes, speed, window;
		const char *source;
		enum finding_state expected;
	} cases[] = {
		{ 100 * MIB, 100 * MIB, 25 * S, NULL, FINDING_OK },
		{ 20 * MIB, MIB, 25 * S, NULL, FINDING_OK },
		{ 21 * MIB, MIB, 25 * S, NULL, FINDING_HINT },
		{ 25 * MIB, MIB, 25 * S, NULL, FINDING_HINT },
		{ 26 * MIB, MIB, 25 * S, NULL, FINDING_WRONG },
		{ 96 * MIB, MIB, 30 * S, "google", FINDING_WRONG },
		{ 96 * MIB, MIB, 120 * S, "aws", FINDING_OK },
		{ 97 * MIB, MIB, 120 * S, "aws", FINDING_HINT },
		{ UINT64_MAX, 1, 120 * S, "aws", FINDING_WRONG },
		{ 1, UINT64_MAX, 120 * S, "aws", FINDING_OK },
	};
	struct finding finding = FINDING_INIT;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		judgement_fit(&finding, cases[i].bytes, cases[i].speed,
		    cases[i].window, cases[i].source);
		assert_int_equal(finding.state, cases[i].expected);
		assert_string_equal(finding.check, "fit");
		assert_true(fact(&finding, "window_s") ==
		    (double)(cases[i].window / S));
	}
	judgement_fit(&finding, 12 * GIB, 128 * MIB, 30 * S, "google");
	assert_says(&finding, "a checkpoint of 12.00 GiB takes 1m36s");
	assert_says(&finding, "Google Cloud gives 30 s");
	assert_cures(&finding, "--gcp-notice 120s");
	assert_true(fact(&finding, "needed_s") == 96.0);
	judgement_fit(&finding, 12 * GIB, 128 * MIB, 25 * S, NULL);
	assert_says(&finding, "--grace");
	assert_null(strstr(finding.cure, "gcp"));
	finding_free(&finding);
}

static void
clocks_may_differ_by_little(void **state)
{
	static const struct {
		long long offset;
		enum finding_state expected;
		const char *text;
	} cases[] = {
		{ 0, FINDING_OK, "agrees" }, { 2, FINDING_OK, "agrees" },
		{ -2, FINDING_OK, "agrees" },
		{ 3, FINDING_HINT, "3.0 s behind" },
		{ -10, FINDING_HINT, "10 s ahead of" },
		{ 11, FINDING_WRONG, "11 s behind" },
		{ 3600, FINDING_WRONG, "1h00m behind" },
		{ -3600, FINDING_WRONG, "1h00m ahead of" },
		{ INT64_MIN, FINDING_WRONG, "ahead of" },
		{ INT64_MAX, FINDING_WRONG, "behind" },
	};
	struct finding finding = FINDING_INIT;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		judgement_clock(&finding, cases[i].offset);
		assert_int_equal(finding.state, cases[i].expected);
		assert_says(&finding, cases[i].text);
		if (cases[i].expected != FINDING_OK)
			assert_cures(&finding, "chrony");
	}
	finding_free(&finding);
}

static void
keys_last_or_are_renewed(void **state)
{
	struct s3_facts facts = { .source = "the environment",
	    .keys_known = true };
	struct finding finding = FINDING_INIT;
	const time_t now = 1000000;

	(void)state;
	judgement_credentials(&finding, &facts, now);
	assert_int_equal(finding.state, FINDING_OK);
	assert_says(&finding, "keys from the environment, without an end");

	facts.temporary = true;
	judgement_credentials(&finding, &facts, now);
	assert_int_equal(finding.state, FINDING_HINT);
	assert_says(&finding, "end is not known");
	assert_cures(&finding, "renews itself");

	facts.expires = now + 12 * 3600;
	judgement_credentials(&finding, &facts, now);
	assert_int_equal(finding.state, FINDING_HINT);
	assert_says(&finding, "for 12h00m, and they cannot be renewed");
	assert_true(fact(&finding, "left_s") == 43200.0);

	facts.expires = now + 3600;
	judgement_credentials(&finding, &facts, now);
	assert_int_equal(finding.state, FINDING_WRONG);

	facts.expires = now - 5;
	judgement_credentials(&finding, &facts, now);
	assert_int_equal(finding.state, FINDING_WRONG);
	assert_says(&finding, "over");

	facts.renewable = true;
	facts.expires = now + 3000;
	judgement_credentials(&finding, &facts, now);
	assert_int_equal(finding.state, FINDING_OK);
	assert_says(&finding, "for 50m00s, renewed by itself");
	finding_free(&finding);
}

static void
watches_are_limited(void **state)
{
	const struct judgement_limits limits = {
	    .watches_name = "fs.inotify.max_user_watches", .watches = 100,
	    .instances_name = "user.max_inotify_instances", .instances = 128 };
	const struct judgement_limits unknown = { .watches_name = "w",
	    .watches = UINT64_MAX, .instances_name = "i",
	    .instances = UINT64_MAX };
	struct finding finding = FINDING_INIT;

	(void)state;
	judgement_watches(&finding, 1, &limits, 0);
	assert_int_equal(finding.state, FINDING_OK);
	assert_says(&finding, "1 directory watched, 100 are allowed");
	judgement_watches(&finding, 50, &limits, 0);
	assert_int_equal(finding.state, FINDING_OK);
	judgement_watches(&finding, 51, &limits, 0);
	assert_int_equal(finding.state, FINDING_HINT);
	assert_cures(&finding, "sysctl fs.inotify.max_user_watches=65536");
	judgement_watches(&finding, 100000, &limits, ENOSPC);
	assert_int_equal(finding.state, FINDING_WRONG);
	assert_says(&finding, "not all of the 100000 directories");
	assert_says(&finding, "every 2 s instead");
	assert_cures(&finding, "sysctl fs.inotify.max_user_watches=400000");
	assert_true(fact(&finding, "directories") == 100000.0);
	judgement_watches(&finding, 5, &limits, JUDGEMENT_NO_INSTANCE);
	assert_int_equal(finding.state, FINDING_WRONG);
	assert_cures(&finding, "sysctl user.max_inotify_instances=1024");
	judgement_watches(&finding, 5, &unknown, 0);
	assert_int_equal(finding.state, FINDING_OK);
	assert_null(json_object_get(finding.facts, "max_watches"));
	judgement_watches(&finding, 5, &limits, ENOMEM);
	assert_int_equal(finding.state, FINDING_WRONG);
	assert_says(&finding, strerror(ENOMEM));
	finding_free(&finding);
}

static void
space_is_needed_twice(void **state)
{
	struct finding finding = FINDING_INIT;

	(void)state;
	judgement_space(&finding, GIB, 2 * GIB);
	assert_int_equal(finding.state, FINDING_OK);
	judgement_space(&finding, GIB, 2 * GIB - 2);
	assert_int_equal(finding.state, FINDING_HINT);
	assert_says(&finding, "only once");
	judgement_space(&finding, GIB, GIB - 1);
	assert_int_equal(finding.state, FINDING_WRONG);
	assert_cures(&finding, "make room");
	judgement_space(&finding, UINT64_MAX, 0);
	assert_int_equal(finding.state, FINDING_WRONG);
	finding_free(&finding);
}

static void
a_unit_must_wait_for_the_flush(void **state)
{
	struct finding finding = FINDING_INIT;

	(void)state;
	judgement_stop(&finding, "train.service", 90 * S, 25 * S, 0, NULL);
	assert_int_equal(finding.state, FINDING_OK);
	assert_says(&finding, "systemd gives train.service 1m30s to stop");
	judgement_stop(&finding, "train.service", 90 * S, 25 * S, 30 * S,
	    "google");
	assert_int_equal(finding.state, FINDING_HINT);
	assert_says(&finding, "Google Cloud ends the machine 30 s after");
	assert_cures(&finding, "TimeoutStopSec=30");
	judgement_stop(&finding, "train.service", 90 * S, 25 * S, 120 * S,
	    "aws");
	assert_int_equal(finding.state, FINDING_OK);
	judgement_stop(&finding, "train.service", 10 * S, 25 * S, 120 * S,
	    "aws");
	assert_int_equal(finding.state, FINDING_WRONG);
	assert_says(&finding, "killed before the flush is over");
	assert_cures(&finding, "TimeoutStopSec=30");
	judgement_stop(&finding, "train.service", CLOCK_NEVER, 25 * S, 0,
	    NULL);
	assert_int_equal(finding.state, FINDING_OK);
	assert_says(&finding, "all the time");
	finding_free(&finding);
}

static void
time_spans_read_as_systemd_writes_them(void **state)
{
	static const struct { const char *text; uint64_t expected; } good[] = {
		{ "1min 30s", 90 * S }, { "25s", 25 * S }, { "0", 0 },
		{ "infinity", CLOCK_NEVER }, { "500ms", S / 2 },
		{ "1h 1min 1s 1ms", 3661 * S + S / 1000 },
		{ "2d", 172800 * S }, { "1.5s", 3 * S / 2 },
		{ "100us", S / 10000 },
	};
	static const char *const bad[] = { "", " ", "25", "s", "25 s", "-1s",
	    "1min  30s", "1parsec", "nan", "999999999999999999999y", "1s x" };
	uint64_t time;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(judgement_timespan(good[i].text, &time), 0);
		assert_int_equal(time, good[i].expected);
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(judgement_timespan(bad[i], &time), -1);
}

static void
findings_take_foreign_text(void **state)
{
	struct finding finding = FINDING_INIT;
	struct error error = ERROR_INIT;
	char large[2000];

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	finding_set(&finding, FINDING_OK, "check", "a\nb\033[31m%s", large);
	assert_null(strchr(finding.message, '\n'));
	assert_null(strchr(finding.message, '\033'));
	assert_int_equal(strlen(finding.message), sizeof(finding.message) - 1);
	finding_add(&finding, "more");
	finding_cure(&finding, "%s\a", large);
	assert_int_equal(strlen(finding.cure), sizeof(finding.cure) - 1);
	finding_fact(&finding, "bytes", json_integer(1));
	error_set(&error, ERROR_FAILED, CAUSE_OTHER, "key", "is broken");
	error_cure(&error, "mend it");
	finding_fail(&finding, FINDING_WRONG, "other", &error);
	assert_string_equal(finding.message, "key: is broken");
	assert_string_equal(finding.cure, "mend it");
	assert_null(finding.facts);
	assert_string_equal(finding_state_text(finding.state), "wrong");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(speed_is_held_against_the_window),
		cmocka_unit_test(clocks_may_differ_by_little),
		cmocka_unit_test(keys_last_or_are_renewed),
		cmocka_unit_test(watches_are_limited),
		cmocka_unit_test(space_is_needed_twice),
		cmocka_unit_test(a_unit_must_wait_for_the_flush),
		cmocka_unit_test(time_spans_read_as_systemd_writes_them),
		cmocka_unit_test(findings_take_foreign_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
