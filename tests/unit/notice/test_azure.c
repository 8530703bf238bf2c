#include <stdlib.h>
#include <string.h>

#include "kit/kit.h"
#include "notice/azure.h"
#include "scene.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define EVENTS "GET /metadata/scheduledevents"
#define ACKNOWLEDGE "POST /metadata/scheduledevents"
#define NAME "GET /metadata/instance/compute/name"

#define ID "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
#define EVENT(type, status, resources, time) \
	"{\"EventId\":\"" ID "\",\"EventStatus\":\"" status "\"," \
	"\"EventType\":\"" type "\",\"ResourceType\":\"VirtualMachine\"," \
	"\"Resources\":[" resources "],\"NotBefore\":\"" time "\"," \
	"\"Description\":\"x\",\"EventSource\":\"Platform\"," \
	"\"DurationInSeconds\":-1}"
#define DOCUMENT(number, events) \
	"{\"DocumentIncarnation\":" number ",\"Events\":[" events "]}"
#define NOTHING DOCUMENT("1", "")

static void
set(const char *body)
{
	mock_set(scene.mock, EVENTS, (struct mock_reply){ .body = body });
}

static void
begin_seeing(void)
{
	set(NOTHING);
	mock_set(scene.mock, NAME, (struct mock_reply){ .body = "vmss_7" });
	scene_begin(NOTICE_CLOUD_AZURE);
	assert_string_equal(scene_expect(NOTICE_SEEING).source, "azure");
}

static void
asks_every_second(void **state)
{
	struct mock_seen seen;
	size_t count;

	(void)state;
	begin_seeing();
	seen = mock_seen(scene.mock, EVENTS);
	assert_string_equal(seen.query, "api-version=2020-07-01");
	assert_non_null(strstr(seen.head, "\r\nMetadata: true\r\n"));
	for (int i = 0; i < 50; i++)
		scene_poll(EVENTS);
	count = scene_count_in(EVENTS, 20);
	assert_true(count <= 23);
	assert_int_equal(mock_count(scene.mock, NAME), 1);
	assert_int_equal(mock_connections(scene.mock), 2);
	scene_expect_nothing(EVENTS);
}

static void
tells_at_the_next_poll(void **state)
{
	struct notice notice;

	(void)state;
	begin_seeing();
	set(DOCUMENT("2", EVENT("Preempt", "Scheduled", "\"VMSS_7\"",
	    "Mon, 30 Nov 2026 12:00:45 GMT")));
	scene_poll(EVENTS);
	notice = scene_expect(NOTICE_DEADLINE);
	assert_string_equal(notice.source, "azure Preempt");
	assert_string_equal(notice.id, "azure-" ID);
	assert_string_equal(notice.reason, "Preempt by Platform");
	assert_true(notice.stated);
	assert_int_equal(notice.deadline, scene_at(45));
	scene_expect_nothing(EVENTS);

	/* It has started: ten seconds from now are earlier. */
	set(DOCUMENT("3", EVENT("Preempt", "Started", "\"vmss_7\"", "")));
	scene_poll(EVENTS);
	notice = scene_expect(NOTICE_DEADLINE);
	assert_string_equal(notice.id, "azure-" ID);
	assert_false(notice.stated);
	assert_true(notice.deadline <= clock_monotonic() + 10 * CLOCK_SECOND);
	scene_expect_nothing(EVENTS);
}

static void
a_withdrawn_event_is_told(void **state)
{
	(void)state;
	begin_seeing();
	set(DOCUMENT("2", EVENT("Preempt", "Scheduled", "\"vmss_7\"",
	    "Mon, 30 Nov 2026 12:05:00 GMT")));
	scene_poll(EVENTS);
	scene_expect(NOTICE_DEADLINE);

	/* A spell of "not found" withdraws nothing. */
	mock_set(scene.mock, EVENTS, (struct mock_reply){ .status = 404 });
	scene_expect_nothing(EVENTS);
	set(DOCUMENT("3", ""));
	scene_poll(EVENTS);
	assert_string_equal(scene_expect(NOTICE_WITHDRAWN).id, "azure-" ID);
	scene_expect_nothing(EVENTS);
	set(DOCUMENT("4", EVENT("Preempt", "Scheduled", "\"vmss_7\"",
	    "Mon, 30 Nov 2026 12:05:00 GMT")));
	scene_poll(EVENTS);
	scene_expect(NOTICE_DEADLINE);
}

static void
an_event_of_another_machine_is_none(void **state)
{
	static const char *const bodies[] = {
		DOCUMENT("2", EVENT("Preempt", "Scheduled", "\"vmss_70\"",
		    "Mon, 30 Nov 2026 12:00:45 GMT")),
		DOCUMENT("3", EVENT("Preempt", "Scheduled",
		    "\"vmss_1\",\"vmss\",\"ss_7\"", "")),
		DOCUMENT("4", EVENT("Preempt", "Scheduled", "", "")),
		DOCUMENT("5", "{\"EventType\":\"Preempt\"}"),
		DOCUMENT("6", "{\"EventType\":\"Preempt\","
		    "\"Resources\":\"vmss_7\"}"),
		DOCUMENT("7", "17, null, \"vmss_7\", []"),
		DOCUMENT("8", EVENT("Preempt", "Canceled", "\"vmss_7\"", "")),
	};

	(void)state;
	begin_seeing();
	for (size_t i = 0; i < COUNT(bodies); i++) {
		set(bodies[i]);
		scene_expect_nothing(EVENTS);
	}
	set(DOCUMENT("9", EVENT("Preempt", "Scheduled",
	    "\"vmss_1\",\"vmss_7\"", "")));
	scene_poll(EVENTS);
	scene_expect(NOTICE_DEADLINE);
}

static void
understands_every_type(void **state)
{
	static const struct {
		const char *body;
		enum notice_kind kind;
		bool survives;
	} cases[] = {
		{ DOCUMENT("2", EVENT("Terminate", "Scheduled", "\"vmss_7\"",
		    "Mon, 30 Nov 2026 12:05:00 GMT")), NOTICE_DEADLINE, false },
		{ DOCUMENT("2", EVENT("Redeploy", "Scheduled", "\"vmss_7\"",
		    "Mon, 30 Nov 2026 12:09:00 GMT")), NOTICE_DEADLINE, false },
		{ DOCUMENT("2", EVENT("Reboot", "Started", "\"vmss_7\"", "")),
		    NOTICE_DEADLINE, true },
		{ DOCUMENT("2", EVENT("Reboot", "Scheduled", "\"vmss_7\"",
		    "Mon, 30 Nov 2026 12:30:00 GMT")), NOTICE_HINT, true },
		{ DOCUMENT("2", EVENT("Freeze", "Scheduled", "\"vmss_7\"",
		    "Mon, 30 Nov 2026 12:01:00 GMT")), NOTICE_HINT, true },
		{ DOCUMENT("2", EVENT("SpotRebalanceRecommendation",
		    "Scheduled", "\"vmss_7\"", "")), NOTICE_HINT, false },
		{ DOCUMENT("2", EVENT("Vanish", "Scheduled", "\"vmss_7\"",
		    "nonsense")), NOTICE_DEADLINE, false },
		{ DOCUMENT("\"two\"", "{\"Resources\":[\"vmss_7\"]}"),
		    NOTICE_DEADLINE, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		begin_seeing();
		set(cases[i].body);
		scene_poll(EVENTS);
		assert_int_equal(scene_expect(cases[i].kind).survives,
		    cases[i].survives);
		scene_expect_nothing(EVENTS);
		scene_tear_down(state);
		scene_set_up(state);
	}
}

static void
a_hint_becomes_a_deadline(void **state)
{
	struct notice notice;

	(void)state;
	begin_seeing();
	set(DOCUMENT("2", EVENT("Reboot", "Scheduled", "\"vmss_7\"",
	    "Mon, 30 Nov 2026 12:15:00 GMT")));
	scene_poll(EVENTS);
	scene_expect(NOTICE_HINT);
	scene_expect_nothing(EVENTS);
	clock_test_turn(scene_at(301) - clock_monotonic());
	scene_poll(EVENTS);
	notice = scene_expect(NOTICE_DEADLINE);
	assert_int_equal(notice.deadline, scene_at(900));

	/* It moves away again. */
	set(DOCUMENT("3", EVENT("Reboot", "Scheduled", "\"vmss_7\"",
	    "Mon, 30 Nov 2026 18:00:00 GMT")));
	scene_poll(EVENTS);
	scene_expect(NOTICE_WITHDRAWN);
	scene_expect(NOTICE_HINT);
}

static void
waits_two_minutes_for_the_first_answer(void **state)
{
	struct notice notice;

	(void)state;
	mock_set(scene.mock, EVENTS, (struct mock_reply){ .kind = MOCK_HOLD });
	mock_set(scene.mock, NAME, (struct mock_reply){ .body = "vmss_7" });
	scene_begin(NOTICE_CLOUD_AZURE);
	mock_wait(scene.mock, EVENTS, 1);
	scene_turn(120, 1);
	assert_false(notice_next(scene.watch, &notice));
	assert_int_equal(mock_count(scene.mock, EVENTS), 2);
	set(DOCUMENT("2", EVENT("Preempt", "Scheduled", "\"vmss_7\"",
	    "Mon, 30 Nov 2026 12:05:00 GMT")));
	scene_turn(1, 0.1);
	scene_poll(EVENTS);
	notice = scene_expect(NOTICE_DEADLINE);
	assert_int_equal(notice.deadline, scene_at(300));
	scene_expect(NOTICE_SEEING);
}

/* One slow answer must not hide a notice: a second request goes beside it. */
static void
overlaps_a_request_that_hangs(void **state)
{
	size_t count;

	(void)state;
	begin_seeing();
	scene_poll(EVENTS);
	count = mock_count(scene.mock, EVENTS);
	mock_set(scene.mock, EVENTS, (struct mock_reply){ .kind = MOCK_HOLD });
	while (mock_count(scene.mock, EVENTS) == count)
		scene_turn(0.1, 0.1);
	while (mock_count(scene.mock, EVENTS) == count + 1)
		scene_turn(0.1, 0.1);

	/* Two at a time, five seconds each. */
	assert_true(scene_count_in(EVENTS, 20) <= 9);
	set(DOCUMENT("2", EVENT("Preempt", "Scheduled", "\"vmss_7\"", "")));
	scene_expect_within(NOTICE_DEADLINE, 10);
}

static void
outlives_bad_answers(void **state)
{
	static const struct mock_reply replies[] = {
		{ .status = 404 }, { .status = 410 }, { .status = 429 },
		{ .status = 500, .body = NOTHING }, { .status = 503 },
		{ .status = 400 },
		{ .status = 307, .headers = "Location: /elsewhere\r\n" },
		{ .kind = MOCK_RESET },
		{ .kind = MOCK_CUT, .body = DOCUMENT("2", EVENT("Preempt",
		    "Scheduled", "\"vmss_7\"", "")) },
		{ .body = "{\"DocumentIncarnation\":2,\"Events\":[{\"EventId\"" },
		{ .body = "<html><body>vmss_7 Preempt</body></html>" },
		{ .body = "" },
		{ .body = "{}" },
		{ .body = "{\"Events\": {}}" },
		{ .body = "[]" },
	};

	(void)state;
	begin_seeing();
	for (size_t i = 0; i < COUNT(replies); i++) {
		mock_set(scene.mock, EVENTS, replies[i]);
		for (int j = 0; j < 3; j++)
			scene_poll(EVENTS);
		assert_true(scene_count_in(EVENTS, 5) <= 7);
		set(NOTHING);
		scene_expect_nothing(EVENTS);
	}
	set(DOCUMENT("2", EVENT("Preempt", "Scheduled", "\"vmss_7\"", "")));
	scene_poll(EVENTS);
	scene_expect(NOTICE_DEADLINE);
}

/* Its own name is not known yet: nothing can be told apart. */
static void
asks_for_its_name_until_it_knows_it(void **state)
{
	struct notice notice;

	(void)state;
	set(DOCUMENT("2", EVENT("Preempt", "Scheduled", "\"vmss_7\"",
	    "Mon, 30 Nov 2026 12:09:00 GMT")));
	mock_set(scene.mock, NAME, (struct mock_reply){
	    .body = "<html>vmss_7</html>" });
	scene_begin(NOTICE_CLOUD_AZURE);
	notice = scene_expect_within(NOTICE_BLIND, 20);
	assert_string_equal(notice.reason, "garbled");
	mock_set(scene.mock, NAME, (struct mock_reply){ .body = "vmss_7\n" });
	scene_poll(NAME);
	scene_poll(EVENTS);
	assert_int_equal(scene_expect(NOTICE_DEADLINE).deadline,
	    scene_at(540));
	scene_expect(NOTICE_SEEING);
}

static void
names_a_wrong_request(void **state)
{
	struct notice notice;

	(void)state;
	mock_set(scene.mock, EVENTS, (struct mock_reply){ .status = 400 });
	mock_set(scene.mock, NAME, (struct mock_reply){ .body = "vmss_7" });
	scene_begin(NOTICE_CLOUD_AZURE);
	notice = scene_expect(NOTICE_BLIND);
	assert_string_equal(notice.reason, "refused");
	assert_non_null(strstr(notice.error.message, "400"));
}

static void
acknowledges_only_when_asked(void **state)
{
	(void)state;
	begin_seeing();
	set(DOCUMENT("2", EVENT("Preempt", "Scheduled", "\"vmss_7\"", "")));
	scene_poll(EVENTS);
	scene_expect(NOTICE_DEADLINE);
	notice_acknowledge(scene.watch, "azure-" ID);
	scene_expect_nothing(EVENTS);
	assert_int_equal(mock_count(scene.mock, ACKNOWLEDGE), 0);
}

static void
acknowledges_its_own_event(void **state)
{
	struct mock_seen seen;

	(void)state;
	scene.options.azure_acknowledge = true;
	mock_set(scene.mock, ACKNOWLEDGE, (struct mock_reply){
	    .status = 503 });
	begin_seeing();
	set(DOCUMENT("2", EVENT("Preempt", "Scheduled", "\"vmss_7\"", "")));
	scene_poll(EVENTS);
	scene_expect(NOTICE_DEADLINE);
	scene_expect_nothing(EVENTS);
	assert_int_equal(mock_count(scene.mock, ACKNOWLEDGE), 0);

	notice_acknowledge(scene.watch, "azure-unknown");
	scene_expect_nothing(EVENTS);
	assert_int_equal(mock_count(scene.mock, ACKNOWLEDGE), 0);

	notice_acknowledge(scene.watch, "azure-" ID);
	mock_wait_answered(scene.mock, ACKNOWLEDGE, 1);
	mock_set(scene.mock, ACKNOWLEDGE, (struct mock_reply){ .body = "" });
	scene_poll(ACKNOWLEDGE);
	seen = mock_seen(scene.mock, ACKNOWLEDGE);
	assert_string_equal(seen.query, "api-version=2020-07-01");
	assert_non_null(strstr(seen.head, "\r\nMetadata: true\r\n"));
	assert_string_equal(seen.body,
	    "{\"StartRequests\":[{\"EventId\":\"" ID "\"}]}");
	scene_expect_nothing(EVENTS);
	assert_int_equal(mock_count(scene.mock, ACKNOWLEDGE), 2);
}

static void
acknowledges_for_nobody_else(void **state)
{
	(void)state;
	scene.options.azure_acknowledge = true;
	begin_seeing();
	set(DOCUMENT("2", EVENT("Preempt", "Scheduled",
	    "\"vmss_7\",\"vmss_8\"", "")));
	scene_poll(EVENTS);
	scene_expect(NOTICE_DEADLINE);
	notice_acknowledge(scene.watch, "azure-" ID);
	scene_expect_nothing(EVENTS);
	assert_int_equal(mock_count(scene.mock, ACKNOWLEDGE), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, \
    scene_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(asks_every_second),
		TEST(tells_at_the_next_poll),
		TEST(a_withdrawn_event_is_told),
		TEST(an_event_of_another_machine_is_none),
		TEST(understands_every_type),
		TEST(a_hint_becomes_a_deadline),
		TEST(waits_two_minutes_for_the_first_answer),
		TEST(overlaps_a_request_that_hangs),
		TEST(outlives_bad_answers),
		TEST(asks_for_its_name_until_it_knows_it),
		TEST(names_a_wrong_request),
		TEST(acknowledges_only_when_asked),
		TEST(acknowledges_its_own_event),
		TEST(acknowledges_for_nobody_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
