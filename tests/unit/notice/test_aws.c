#include <stdlib.h>
#include <string.h>

#include "kit/kit.h"
#include "scene.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define TOKEN "PUT /latest/api/token"
#define META "GET /latest/meta-data/"
#define SPOT META "spot/instance-action"
#define LIFECYCLE META "autoscaling/target-lifecycle-state"
#define REBALANCE META "events/recommendations/rebalance"
#define MAINTENANCE META "events/maintenance/scheduled"

#define SECRET "AQAEAtokentokentokentokentoken=="

static void
set(const char *key, const char *body)
{
	mock_set(scene.mock, key, (struct mock_reply){ .body = body,
	    .token = SECRET });
}

static void
set_nothing(const char *key)
{
	mock_set(scene.mock, key, (struct mock_reply){ .status = 404,
	    .body = "<html>404 - Not Found</html>", .token = SECRET });
}

static void
begin(void)
{
	mock_set(scene.mock, TOKEN, (struct mock_reply){ .body = SECRET });
	set_nothing(SPOT);
	set_nothing(LIFECYCLE);
	set_nothing(REBALANCE);
	set(MAINTENANCE, "[]");
	scene_begin(NOTICE_CLOUD_AWS);
	mock_wait_answered(scene.mock, MAINTENANCE, 1);
}

static void
begin_seeing(void)
{
	begin();
	assert_string_equal(scene_expect(NOTICE_SEEING).source, "aws");
}

static void
asks_for_ever_on_one_connection(void **state)
{
	struct mock_seen seen;
	uint64_t seconds;
	size_t count;

	(void)state;
	begin_seeing();
	for (int i = 0; i < 50; i++)
		scene_poll(SPOT);
	scene_expect_nothing(SPOT);
	assert_int_equal(mock_count(scene.mock, TOKEN), 1);
	assert_int_equal(mock_connections(scene.mock), 1);

	seen = mock_seen(scene.mock, TOKEN);
	assert_non_null(strstr(seen.head,
	    "X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n"));
	assert_null(strcasestr(seen.head, "X-Forwarded-For"));

	/* Once a second at most, give or take a tenth; others are rarer. */
	count = scene_count_in(SPOT, 20);
	assert_true(count <= 23);
	seconds = (clock_monotonic() - SCENE_MONOTONIC) / CLOCK_SECOND;
	assert_true(mock_count(scene.mock, LIFECYCLE) <= seconds / 4 + 1);
	assert_true(mock_count(scene.mock, MAINTENANCE) <= seconds / 25 + 1);
}

static void
tells_at_the_next_poll(void **state)
{
	struct notice notice;

	(void)state;
	begin_seeing();
	scene_poll(SPOT);
	set(SPOT, "{\"action\": \"terminate\", "
	    "\"time\": \"2026-11-30T12:02:30Z\"}");
	scene_poll(SPOT);
	notice = scene_expect(NOTICE_DEADLINE);
	assert_string_equal(notice.source, "aws spot");
	assert_string_equal(notice.id, "aws-spot-terminate");
	assert_string_equal(notice.reason, "terminate");
	assert_true(notice.stated);
	assert_false(notice.survives);
	assert_int_equal(notice.deadline, scene_at(150));
	scene_expect_nothing(SPOT);

	/* A later time is not told, an earlier one is. */
	set(SPOT, "{\n\t\"action\": \"terminate\",\n"
	    "\t\"time\": \"2026-11-30T12:03:00Z\"\n}");
	scene_expect_nothing(SPOT);
	set(SPOT, "{\"action\":\"terminate\","
	    "\"time\":\"2026-11-30T12:02:00Z\"}");
	scene_poll(SPOT);
	notice = scene_expect(NOTICE_DEADLINE);
	assert_string_equal(notice.id, "aws-spot-terminate");
	assert_int_equal(notice.deadline, scene_at(120));
	scene_expect_nothing(SPOT);
}

static void
understands_every_action(void **state)
{
	static const struct {
		const char *body, *id;
		double least, most;	/* seconds from the poll */
		bool stated, survives;
	} cases[] = {
		{ "{\"action\":\"stop\",\"time\":\"2026-11-30T12:01:30Z\"}",
		    "aws-spot-stop", 0, 90, true, true },
		{ "{\"action\":\"hibernate\","
		    "\"time\":\"2026-11-30T12:01:30Z\"}",
		    "aws-spot-hibernate", 0, 0, false, true },
		{ "{\"action\":\"evaporate\","
		    "\"time\":\"2026-11-30T12:01:30Z\"}",
		    "aws-spot-evaporate", 0, 90, true, false },
		{ "{\"action\":\"terminate\"}", "aws-spot-terminate", 120,
		    120, false, false },
		{ "{\"action\":\"terminate\",\"time\":\"soon\"}",
		    "aws-spot-terminate", 120, 120, false, false },
		{ "{\"time\":\"2026-11-30T12:01:30Z\"}",
		    "aws-spot-unknown action", 0, 90, true, false },
		/* Past, and far away: bounded. */
		{ "{\"action\":\"terminate\",\"time\":\"2015-01-05T18:02:00Z\"}",
		    "aws-spot-terminate", 0, 0, true, false },
		{ "{\"action\":\"terminate\",\"time\":\"2999-01-05T18:02:00Z\"}",
		    "aws-spot-terminate", 900, 900, true, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct notice notice;
		uint64_t now;

		begin_seeing();
		set(SPOT, cases[i].body);
		scene_poll(SPOT);
		notice = scene_expect(NOTICE_DEADLINE);
		now = clock_monotonic();
		assert_string_equal(notice.id, cases[i].id);
		assert_int_equal(notice.stated, cases[i].stated);
		assert_int_equal(notice.survives, cases[i].survives);
		assert_true(notice.deadline <= now +
		    (uint64_t)cases[i].most * CLOCK_SECOND);
		assert_true(notice.deadline + CLOCK_SECOND >= now +
		    (uint64_t)cases[i].least * CLOCK_SECOND);
		scene_expect_nothing(SPOT);
		scene_tear_down(state);
		scene_set_up(state);
	}
}

/* Amazon's own mock says "in two minutes" at every request. */
static void
a_sliding_time_is_one_notice(void **state)
{
	(void)state;
	begin_seeing();
	set(SPOT, "{\"action\":\"terminate\","
	    "\"time\":\"2026-11-30T12:02:00Z\"}");
	scene_poll(SPOT);
	scene_expect(NOTICE_DEADLINE);
	set(SPOT, "{\"action\":\"terminate\","
	    "\"time\":\"2026-11-30T12:02:01Z\"}");
	scene_expect_nothing(SPOT);
	set(SPOT, "{\"action\":\"terminate\","
	    "\"time\":\"2026-11-30T12:02:02Z\"}");
	scene_expect_nothing(SPOT);
}

static void
a_notice_that_vanishes_holds_until_it_is_outlived(void **state)
{
	(void)state;
	begin_seeing();
	set(SPOT, "{\"action\":\"terminate\","
	    "\"time\":\"2026-11-30T12:10:00Z\"}");
	scene_poll(SPOT);
	scene_expect(NOTICE_DEADLINE);
	set_nothing(SPOT);
	scene_expect_nothing(SPOT);
	clock_test_turn(scene_at(630) - clock_monotonic());
	scene_expect_nothing(SPOT);
	clock_test_turn(scene_at(661) - clock_monotonic());
	scene_poll(SPOT);
	assert_string_equal(scene_expect(NOTICE_WITHDRAWN).id,
	    "aws-spot-terminate");
	scene_expect_nothing(SPOT);
}

/* What is no notice, and is no reason to stop asking either. */
static void
outlives_bad_answers(void **state)
{
	static const struct mock_reply replies[] = {
		{ .status = 429, .body = "Too many" },
		{ .status = 410 },
		{ .status = 503, .body = "<html>terminate</html>" },
		{ .status = 500 },
		{ .status = 302, .headers = "Location: /latest/x\r\n" },
		{ .kind = MOCK_RESET },
		{ .kind = MOCK_CUT, .body = "{\"action\":\"terminate\","
		    "\"time\":\"2026-11-30T12:02:00Z\"}" },
		{ .body = "{\"action\":\"termi" },
		{ .body = "<html><body>Please log in</body></html>" },
		{ .body = "" },
		{ .body = "[]" },
		{ .body = "{}" },
		{ .body = "{\"action\": 17, \"time\": null}" },
		{ .body = "null" },
	};

	(void)state;
	begin_seeing();
	for (size_t i = 0; i < COUNT(replies); i++) {
		mock_set(scene.mock, SPOT, replies[i]);
		for (int j = 0; j < 3; j++)
			scene_poll(SPOT);
		assert_true(scene_count_in(SPOT, 5) <= 7);
		set_nothing(SPOT);
		scene_expect_nothing(SPOT);
	}
	set(SPOT, "{\"action\":\"terminate\","
	    "\"time\":\"2026-12-30T12:02:00Z\"}");
	scene_poll(SPOT);
	scene_expect(NOTICE_DEADLINE);
}

static void
a_token_that_is_refused_is_renewed_at_once(void **state)
{
	struct mock_reply reply = { .body = "{\"action\":\"terminate\","
	    "\"time\":\"2026-11-30T12:02:00Z\"}",
	    .token = "anothertokenanothertoken" };
	struct mock_seen seen;

	(void)state;
	begin_seeing();
	mock_set(scene.mock, TOKEN, (struct mock_reply){
	    .body = "anothertokenanothertoken" });
	mock_set(scene.mock, SPOT, reply);
	scene_poll(SPOT);
	scene_expect(NOTICE_DEADLINE);
	assert_int_equal(mock_count(scene.mock, TOKEN), 2);
	seen = mock_seen(scene.mock, SPOT);
	assert_null(strstr(seen.head, SECRET));
}

static void
goes_on_without_tokens_where_there_are_none(void **state)
{
	static const int statuses[] = { 403, 404, 405 };

	(void)state;
	for (size_t i = 0; i < COUNT(statuses); i++) {
		mock_set(scene.mock, TOKEN, (struct mock_reply){
		    .status = statuses[i] });
		mock_set(scene.mock, SPOT, (struct mock_reply){
		    .body = "{\"action\":\"terminate\"}" });
		scene_begin(NOTICE_CLOUD_AWS);
		scene_expect(NOTICE_DEADLINE);
		scene_expect(NOTICE_SEEING);
		scene_tear_down(state);
		scene_set_up(state);
	}
}

/* Real time: the client that has the tokens gives up after two seconds. */
static void
names_the_hop_limit(void **state)
{
	struct notice notice;

	(void)state;
	mock_set(scene.mock, TOKEN, (struct mock_reply){ .kind = MOCK_HOLD });
	mock_set(scene.mock, META, (struct mock_reply){ .status = 401 });
	scene_begin(NOTICE_CLOUD_AWS);
	notice = scene_expect(NOTICE_BLIND);
	assert_string_equal(notice.source, "aws");
	assert_string_equal(notice.reason, "hop limit");
	assert_int_equal(notice.error.cause, CAUSE_UNREACHABLE);
	assert_non_null(strstr(notice.error.message, "plain request (401)"));
	assert_non_null(strstr(notice.error.cure,
	    "--http-put-response-hop-limit 2"));
	assert_int_equal(mock_count(scene.mock, SPOT), 0);

	/* Said once; when the way is free, notices are seen. */
	clock_test_turn(5 * CLOCK_SECOND);
	mock_wait_answered(scene.mock, META, 2);
	assert_false(notice_next(scene.watch, &notice));
	mock_set(scene.mock, TOKEN, (struct mock_reply){ .body = SECRET });
	set_nothing(SPOT);
	scene_poll(SPOT);
	scene_expect(NOTICE_SEEING);
}

static void
names_a_token_server_that_is_gone(void **state)
{
	struct notice notice;

	(void)state;
	mock_set(scene.mock, TOKEN, (struct mock_reply){ .kind = MOCK_HOLD });
	mock_set(scene.mock, META, (struct mock_reply){ .kind = MOCK_RESET });
	scene_begin(NOTICE_CLOUD_AWS);
	notice = scene_expect_within(NOTICE_BLIND, 60);
	assert_string_equal(notice.reason, "silent");
}

static void
says_that_it_is_switched_off(void **state)
{
	struct notice notice;

	(void)state;
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	scene.options.endpoint = NULL;
	scene_begin(NOTICE_CLOUD_AWS);
	notice = scene_expect(NOTICE_BLIND);
	assert_string_equal(notice.reason, "switched off");
	assert_non_null(strstr(notice.error.message,
	    "AWS_EC2_METADATA_DISABLED"));
	scene_turn(5, 0.5);
	assert_int_equal(mock_total(scene.mock), 0);
}

static void
says_that_a_variable_makes_no_sense(void **state)
{
	struct notice notice;

	(void)state;
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "ftp//nonsense", 1);
	scene.options.endpoint = NULL;
	scene_begin(NOTICE_CLOUD_AWS);
	notice = scene_expect(NOTICE_BLIND);
	assert_string_equal(notice.reason, "not started");
	assert_int_equal(notice.error.class, ERROR_USAGE);
}

static void
takes_the_address_from_the_environment(void **state)
{
	(void)state;
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", mock_url(scene.mock), 1);
	scene.options.endpoint = NULL;
	begin_seeing();
}

/* The others are told, and a spell of failures before an hour is over is not
 * taken for blindness at once. */
static void
a_spell_is_no_blindness(void **state)
{
	struct notice notice;

	(void)state;
	begin_seeing();
	mock_set(scene.mock, SPOT, (struct mock_reply){ .status = 503 });
	scene_turn(50, 0.5);
	assert_false(notice_next(scene.watch, &notice));
	scene_turn(20, 0.5);
	scene_poll(SPOT);
	notice = scene_expect(NOTICE_BLIND);
	assert_string_equal(notice.reason, "unwell");
	set_nothing(SPOT);
	scene_poll(SPOT);
	scene_expect(NOTICE_SEEING);

	/* The same cause within ten minutes is not told again. */
	mock_set(scene.mock, SPOT, (struct mock_reply){ .status = 503 });
	scene_turn(70, 0.5);
	assert_false(notice_next(scene.watch, &notice));
}

static void
a_rebalance_is_a_hint(void **state)
{
	struct notice notice;

	(void)state;
	begin_seeing();
	set(REBALANCE, "{\"noticeTime\": \"2026-11-30T11:59:00Z\"}");
	scene_poll(REBALANCE);
	notice = scene_expect(NOTICE_HINT);
	assert_string_equal(notice.source, "aws rebalance");
	scene_expect_nothing(REBALANCE);
	set_nothing(REBALANCE);
	scene_poll(REBALANCE);
	scene_expect(NOTICE_WITHDRAWN);
}

static void
auto_scaling_ends_a_machine(void **state)
{
	struct notice notice;

	(void)state;
	begin_seeing();
	set(LIFECYCLE, "InService");
	scene_expect_nothing(LIFECYCLE);
	set(LIFECYCLE, "<html>Terminated</html>");
	scene_expect_nothing(LIFECYCLE);
	set(LIFECYCLE, "Terminated\n");
	scene_poll(LIFECYCLE);
	notice = scene_expect(NOTICE_DEADLINE);
	assert_string_equal(notice.id, "aws-lifecycle");
	assert_false(notice.stated);
	assert_true(notice.deadline <= clock_monotonic() + 120 * CLOCK_SECOND);
	assert_true(notice.deadline > clock_monotonic() + 110 * CLOCK_SECOND);
	scene_expect_nothing(LIFECYCLE);
}

#define EVENT(time, code, state) "[{\"NotBefore\":\"" time "\",\"Code\":\"" \
    code "\",\"Description\":\"scheduled reboot\",\"EventId\":\"instance-" \
    "event-0d59937288b749b32\",\"NotAfter\":\"30 Nov 2026 15:00:00 GMT\"," \
    "\"State\":\"" state "\"}]"

static void
maintenance_comes_nearer(void **state)
{
	struct notice notice;

	(void)state;
	begin_seeing();
	set(MAINTENANCE, EVENT("30 Nov 2026 12:14:00 GMT", "instance-stop",
	    "active"));
	scene_poll(MAINTENANCE);
	notice = scene_expect(NOTICE_HINT);
	assert_string_equal(notice.id,
	    "aws-instance-event-0d59937288b749b32");
	clock_test_turn(scene_at(241) - clock_monotonic());
	scene_poll(MAINTENANCE);
	notice = scene_expect(NOTICE_DEADLINE);
	assert_int_equal(notice.deadline, scene_at(14 * 60));
	assert_true(notice.stated);
	assert_true(notice.survives);
	scene_expect_nothing(MAINTENANCE);

	/* Amazon takes it back. */
	set(MAINTENANCE, EVENT("30 Nov 2026 12:14:00 GMT", "instance-stop",
	    "canceled"));
	scene_poll(MAINTENANCE);
	scene_expect(NOTICE_WITHDRAWN);
}

static void
maintenance_that_stops_nothing_is_a_hint(void **state)
{
	(void)state;
	begin_seeing();
	set(MAINTENANCE, EVENT("30 Nov 2026 12:05:00 GMT",
	    "system-maintenance", "active"));
	scene_poll(MAINTENANCE);
	scene_expect(NOTICE_HINT);

	/* Nor does a window that is open for hours end a new training. */
	set(MAINTENANCE, EVENT("1 Nov 2026 12:05:00 GMT", "instance-reboot",
	    "active"));
	scene_expect_nothing(MAINTENANCE);
	set(MAINTENANCE, "[1, \"x\", null, {}, {\"Code\": []}]");
	scene_poll(MAINTENANCE);
	scene_expect(NOTICE_WITHDRAWN);
	scene_expect_nothing(MAINTENANCE);
}

/* After hibernation: a new token on a new connection, and what was is over. */
static void
begins_anew_after_a_freeze(void **state)
{
	(void)state;
	begin_seeing();
	set(SPOT, "{\"action\":\"hibernate\","
	    "\"time\":\"2026-11-30T12:01:00Z\"}");
	scene_poll(SPOT);
	scene_expect(NOTICE_DEADLINE);
	set_nothing(SPOT);
	notice_resumed(scene.watch);
	assert_string_equal(scene_expect(NOTICE_WITHDRAWN).id,
	    "aws-spot-hibernate");
	assert_int_equal(mock_count(scene.mock, TOKEN), 2);
	assert_int_equal(mock_connections(scene.mock), 2);
	set(SPOT, "{\"action\":\"hibernate\","
	    "\"time\":\"2026-11-30T14:01:00Z\"}");
	scene_poll(SPOT);
	scene_expect(NOTICE_DEADLINE);
}

static void
a_slow_drip_is_read_or_given_up(void **state)
{
	(void)state;
	begin_seeing();
	mock_set(scene.mock, SPOT, (struct mock_reply){ .kind = MOCK_DRIP,
	    .token = SECRET, .body = "{\"action\":\"terminate\","
	    "\"time\":\"2026-11-30T12:02:00Z\"}" });
	scene_poll(SPOT);
	scene_expect(NOTICE_DEADLINE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, \
    scene_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(asks_for_ever_on_one_connection),
		TEST(tells_at_the_next_poll),
		TEST(understands_every_action),
		TEST(a_sliding_time_is_one_notice),
		TEST(a_notice_that_vanishes_holds_until_it_is_outlived),
		TEST(outlives_bad_answers),
		TEST(a_token_that_is_refused_is_renewed_at_once),
		TEST(goes_on_without_tokens_where_there_are_none),
		TEST(names_the_hop_limit),
		TEST(names_a_token_server_that_is_gone),
		TEST(says_that_it_is_switched_off),
		TEST(says_that_a_variable_makes_no_sense),
		TEST(takes_the_address_from_the_environment),
		TEST(a_spell_is_no_blindness),
		TEST(a_rebalance_is_a_hint),
		TEST(auto_scaling_ends_a_machine),
		TEST(maintenance_comes_nearer),
		TEST(maintenance_that_stops_nothing_is_a_hint),
		TEST(begins_anew_after_a_freeze),
		TEST(a_slow_drip_is_read_or_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
