#include <stdlib.h>
#include <string.h>

#include "kit/kit.h"
#include "scene.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define KEYS "GET /computeMetadata/v1/instance/"
#define PREEMPTED KEYS "preempted"
#define MAINTENANCE KEYS "maintenance-event"

#define FLAVOR "Metadata-Flavor: Google\r\n"

static void
set(const char *key, const char *body, const char *etag)
{
	mock_set(scene.mock, key, (struct mock_reply){ .body = body,
	    .etag = etag, .headers = FLAVOR });
}

/* Both keys were read, and both wait for a change now. */
static void
begin_waiting(void)
{
	set(PREEMPTED, "FALSE", "aa01");
	set(MAINTENANCE, "NONE\n", "bb01");
	scene_begin(NOTICE_CLOUD_GOOGLE);
	assert_string_equal(scene_expect(NOTICE_SEEING).source, "google");
	mock_wait(scene.mock, PREEMPTED, 2);
	mock_wait(scene.mock, MAINTENANCE, 2);
}

static void
reads_once_then_waits_on_two_connections(void **state)
{
	struct mock_seen first, second;

	(void)state;
	begin_waiting();
	first = mock_seen(scene.mock, PREEMPTED);
	second = mock_seen(scene.mock, MAINTENANCE);
	assert_string_equal(first.query,
	    "wait_for_change=true&last_etag=aa01&timeout_sec=60");
	assert_non_null(strstr(first.head, "\r\nMetadata-Flavor: Google\r\n"));
	assert_non_null(strstr(second.query, "last_etag=bb01"));
	assert_int_not_equal(first.connection, second.connection);
	assert_int_equal(mock_connections(scene.mock), 2);

	/* Nothing more is asked for as long as the server holds them. */
	scene_turn(59, 1);
	assert_int_equal(mock_total(scene.mock), 4);
}

/* Without the clock being turned at all. */
static void
tells_at_once(void **state)
{
	struct notice notice;

	(void)state;
	begin_waiting();
	set(PREEMPTED, "TRUE", "aa02");
	notice = scene_expect(NOTICE_DEADLINE);
	assert_string_equal(notice.source, "google preempted");
	assert_string_equal(notice.id, "google-preempted");
	assert_false(notice.stated);
	assert_int_equal(notice.deadline, scene_at(25));
	mock_wait(scene.mock, PREEMPTED, 3);
	assert_non_null(strstr(mock_seen(scene.mock, PREEMPTED).query,
	    "last_etag=aa02"));

	/* The same answer again, after the wait, is no other notice. */
	set(PREEMPTED, "TRUE", "aa02");
	mock_wait(scene.mock, PREEMPTED, 4);
	assert_false(notice_next(scene.watch, &notice));
	assert_int_equal(clock_monotonic(), scene_at(0));
}

static void
knows_the_longer_notice(void **state)
{
	(void)state;
	scene.options.google_notice = 120 * CLOCK_SECOND;
	begin_waiting();
	set(PREEMPTED, "TRUE", "aa02");
	assert_int_equal(scene_expect(NOTICE_DEADLINE).deadline,
	    scene_at(120));
}

static void
a_change_between_two_polls_is_not_missed(void **state)
{
	struct notice notice;

	(void)state;
	begin_waiting();

	/* The value is the same, its ETag is another: wait from that on. */
	for (int i = 0; i < 4; i++) {
		static const char *const etags[] = { "c1", "c2", "c3", "c4" };

		set(PREEMPTED, "FALSE", etags[i]);
		mock_wait(scene.mock, PREEMPTED, 3 + (size_t)i);
	}
	assert_non_null(strstr(mock_seen(scene.mock, PREEMPTED).query,
	    "last_etag=c4"));
	assert_false(notice_next(scene.watch, &notice));
	set(PREEMPTED, "TRUE", "c5");
	scene_expect(NOTICE_DEADLINE);
}

/* Such a server does not know how to wait: ask once a second, no more. */
static void
a_server_that_does_not_wait_is_not_flooded(void **state)
{
	(void)state;
	mock_set(scene.mock, PREEMPTED, (struct mock_reply){ .body = "FALSE",
	    .headers = FLAVOR "ETag: aa01\r\n" });
	set(MAINTENANCE, "NONE", "bb01");
	scene_begin(NOTICE_CLOUD_GOOGLE);
	scene_expect(NOTICE_SEEING);
	assert_true(scene_count_in(PREEMPTED, 20) <= 30);
	mock_set(scene.mock, PREEMPTED, (struct mock_reply){ .body = "TRUE",
	    .headers = FLAVOR "ETag: aa02\r\n" });
	scene_poll(PREEMPTED);
	scene_expect(NOTICE_DEADLINE);
}

/* Nor is one that gives no ETag, or one that would break the address. */
static void
an_etag_that_is_none_is_not_sent(void **state)
{
	static const char *const headers[] = { FLAVOR,
	    FLAVOR "ETag: a&b=\"c d\"\r\n",
	    FLAVOR "ETag: 0000000000000000000000000000000000000000000000000000"
	    "0000000000000000000000000000000000000000000000000000000000000000"
	    "000000000000000000\r\n" };

	(void)state;
	for (size_t i = 0; i < COUNT(headers); i++) {
		mock_set(scene.mock, PREEMPTED, (struct mock_reply){
		    .body = "FALSE", .headers = headers[i] });
		scene_begin(NOTICE_CLOUD_GOOGLE);
		scene_expect(NOTICE_SEEING);
		for (int j = 0; j < 3; j++)
			scene_poll(PREEMPTED);
		assert_string_equal(mock_seen(scene.mock, PREEMPTED).query,
		    "");
		assert_true(scene_count_in(PREEMPTED, 10) <= 13);
		scene_tear_down(state);
		scene_set_up(state);
	}
}

static void
outlives_bad_answers(void **state)
{
	static const struct mock_reply replies[] = {
		{ .status = 429 },
		{ .status = 410 },
		{ .status = 503, .body = "TRUE" },
		{ .status = 403, .body = "TRUE" },
		{ .status = 301, .headers = "Location: /\r\n", .body = "TRUE" },
		{ .kind = MOCK_RESET },
		{ .kind = MOCK_CUT, .body = "TRUE", .headers = FLAVOR },
		{ .body = "TRUE" },	/* somebody else: no flavor */
		{ .body = "<html>TRUE</html>", .headers = FLAVOR },
		{ .body = "", .headers = FLAVOR },
		{ .body = "TR", .headers = FLAVOR },
		{ .body = "TRUE TRUE TRUE TRUE TRUE TRUE TRUE TRUE TRUE TRUE "
		    "TRUE TRUE TRUE TRUE TRUE TRUE", .headers = FLAVOR },
	};

	(void)state;
	begin_waiting();
	for (size_t i = 0; i < COUNT(replies); i++) {
		mock_set(scene.mock, PREEMPTED, replies[i]);
		scene_poll(PREEMPTED);
		scene_poll(PREEMPTED);
		assert_true(scene_count_in(PREEMPTED, 3) <= 12);
		set(PREEMPTED, "FALSE", "aa01");
		scene_poll(PREEMPTED);
	}
	set(PREEMPTED, "TRUE", "aa02");
	scene_expect_within(NOTICE_DEADLINE, 2);
}

/* Out of a window of 25 s an error may take a tenth of a second. */
static void
an_error_costs_no_time(void **state)
{
	size_t before;

	(void)state;
	begin_waiting();
	before = mock_answered(scene.mock, PREEMPTED);
	mock_set(scene.mock, PREEMPTED, (struct mock_reply){
	    .kind = MOCK_RESET });
	mock_wait_answered(scene.mock, PREEMPTED, before + 1);
	set(PREEMPTED, "TRUE", "aa02");
	scene_expect_within(NOTICE_DEADLINE, 5);
	assert_true(clock_monotonic() <= scene_at(2));
}

static void
names_what_gke_hides(void **state)
{
	struct notice notice;

	(void)state;
	mock_set(scene.mock, PREEMPTED, (struct mock_reply){ .status = 404,
	    .headers = FLAVOR });
	mock_set(scene.mock, MAINTENANCE, (struct mock_reply){ .status = 404,
	    .headers = FLAVOR });
	scene_begin(NOTICE_CLOUD_GOOGLE);
	notice = scene_expect(NOTICE_BLIND);
	assert_string_equal(notice.reason, "hidden");
	assert_int_equal(notice.error.cause, CAUSE_NOT_FOUND);
	assert_non_null(strstr(notice.error.message, "GKE"));
	assert_non_null(strstr(notice.error.cure, "hostNetwork: true"));
	assert_true(scene_count_in(PREEMPTED, 50) <= 1);
	scene_expect_nothing(PREEMPTED);
	set(PREEMPTED, "FALSE", "aa01");
	scene_poll(PREEMPTED);
	scene_expect(NOTICE_SEEING);
}

static void
names_a_server_that_is_gone(void **state)
{
	struct notice notice;

	(void)state;
	scene.options.endpoint = "http://127.0.0.1:1";
	scene_begin(NOTICE_CLOUD_GOOGLE);
	notice = scene_expect_within(NOTICE_BLIND, 20);
	assert_string_equal(notice.reason, "silent");
	assert_non_null(strstr(notice.error.message, "Connection refused"));
}

static void
a_wait_that_never_ends_is_given_up(void **state)
{
	size_t count;

	(void)state;
	begin_waiting();
	count = mock_count(scene.mock, PREEMPTED);
	scene_turn(71, 1);
	mock_wait(scene.mock, PREEMPTED, count + 1);
	set(PREEMPTED, "TRUE", "aa02");
	scene_expect_within(NOTICE_DEADLINE, 5);
}

static void
maintenance_ends_or_moves_a_machine(void **state)
{
	struct notice notice;

	(void)state;
	begin_waiting();
	set(MAINTENANCE, "MIGRATE_ON_HOST_MAINTENANCE", "bb02");
	assert_true(scene_expect(NOTICE_HINT).survives);
	set(MAINTENANCE, "NONE", "bb03");
	scene_expect(NOTICE_WITHDRAWN);
	set(MAINTENANCE, "TERMINATE_ON_HOST_MAINTENANCE", "bb04");
	notice = scene_expect(NOTICE_DEADLINE);
	assert_string_equal(notice.reason, "TERMINATE_ON_HOST_MAINTENANCE");
	assert_int_equal(notice.deadline, scene_at(60));
	set(MAINTENANCE, "NONE", "bb05");
	scene_expect(NOTICE_WITHDRAWN);

	/* With a GPU the warning comes about an hour before. */
	scene_put("/proc/driver/nvidia/version", "NVRM version: 550\n");
	set(MAINTENANCE, "TERMINATE_ON_HOST_MAINTENANCE", "bb06");
	scene_expect(NOTICE_HINT);
}

static void
takes_the_host_from_the_environment(void **state)
{
	(void)state;
	setenv("GCE_METADATA_HOST", mock_url(scene.mock) + strlen("http://"),
	    1);
	scene.options.endpoint = NULL;
	begin_waiting();
}

static void
begins_anew_after_a_freeze(void **state)
{
	(void)state;
	begin_waiting();
	notice_resumed(scene.watch);
	mock_wait(scene.mock, PREEMPTED, 4);
	mock_wait(scene.mock, MAINTENANCE, 4);
	assert_int_equal(mock_connections(scene.mock), 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, \
    scene_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_once_then_waits_on_two_connections),
		TEST(tells_at_once),
		TEST(knows_the_longer_notice),
		TEST(a_change_between_two_polls_is_not_missed),
		TEST(a_server_that_does_not_wait_is_not_flooded),
		TEST(an_etag_that_is_none_is_not_sent),
		TEST(outlives_bad_answers),
		TEST(an_error_costs_no_time),
		TEST(names_what_gke_hides),
		TEST(names_a_server_that_is_gone),
		TEST(a_wait_that_never_ends_is_given_up),
		TEST(maintenance_ends_or_moves_a_machine),
		TEST(takes_the_host_from_the_environment),
		TEST(begins_anew_after_a_freeze),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
