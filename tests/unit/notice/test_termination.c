#include <stdlib.h>
#include <string.h>

#include "kit/kit.h"
#include "scene.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define ALIBABA "GET /latest/meta-data/instance/spot/termination-time"
#define TENCENT "GET /latest/meta-data/spot/termination-time"
#define TOKEN "PUT /latest/api/token"

static const struct {
	enum notice_cloud cloud;
	const char *key, *time, *earlier, *source, *id;
} clouds[] = {
	{ NOTICE_CLOUD_ALIBABA, ALIBABA, "2026-11-30T12:05:00Z",
	    "2026-11-30T12:04:00Z\n", "alibaba spot", "alibaba-termination" },
	/* Beijing's time, without saying so. */
	{ NOTICE_CLOUD_TENCENT, TENCENT, "2026-11-30 20:05:00",
	    "2026-11-30 20:04:00\n", "tencent spot", "tencent-termination" },
};

static void
set(const char *key, const char *body)
{
	mock_set(scene.mock, key, (struct mock_reply){ .body = body });
}

static void
begin_seeing(size_t i)
{
	scene_begin(clouds[i].cloud);
	scene_expect(NOTICE_SEEING);
}

/* Each test once for each cloud. */
#define FOR_BOTH(state, i) \
	for (size_t i = 0; i < COUNT(clouds); i++, \
	    scene_tear_down(state), scene_set_up(state))

static void
tells_at_the_next_poll(void **state)
{
	FOR_BOTH(state, i) {
		struct notice notice;

		begin_seeing(i);
		for (int j = 0; j < 10; j++)
			scene_poll(clouds[i].key);
		scene_expect_nothing(clouds[i].key);
		assert_int_equal(mock_connections(scene.mock), 1);
		set(clouds[i].key, clouds[i].time);
		scene_poll(clouds[i].key);
		notice = scene_expect(NOTICE_DEADLINE);
		assert_string_equal(notice.source, clouds[i].source);
		assert_string_equal(notice.id, clouds[i].id);
		assert_true(notice.stated);
		assert_int_equal(notice.deadline, scene_at(300));
		scene_expect_nothing(clouds[i].key);
		set(clouds[i].key, clouds[i].earlier);
		scene_poll(clouds[i].key);
		notice = scene_expect(NOTICE_DEADLINE);
		assert_int_equal(notice.deadline, scene_at(240));
		scene_expect_nothing(clouds[i].key);
	}
}

static void
a_past_time_is_now(void **state)
{
	FOR_BOTH(state, i) {
		struct notice notice;

		begin_seeing(i);
		set(clouds[i].key, "2015-01-05T18:02:00Z");
		scene_poll(clouds[i].key);
		notice = scene_expect(NOTICE_DEADLINE);
		assert_true(notice.deadline <= clock_monotonic());
		scene_expect_nothing(clouds[i].key);
	}
}

static void
outlives_bad_answers(void **state)
{
	static const struct mock_reply replies[] = {
		{ .status = 429 }, { .status = 410 }, { .status = 500 },
		{ .status = 503, .body = "2026-11-30T12:05:00Z" },
		{ .status = 401, .body = "2026-11-30T12:05:00Z" },
		{ .status = 403 },
		{ .status = 302, .headers = "Location: /\r\n" },
		{ .kind = MOCK_RESET },
		{ .kind = MOCK_CUT, .body = "2026-11-30T12:05:00Z" },
		{ .body = "2026-11-30T12:0" },
		{ .body = "<html>2026-11-30T12:05:00Z</html>" },
		{ .body = "" },
		{ .body = "none" },
	};

	FOR_BOTH(state, i) {
		begin_seeing(i);
		for (size_t j = 0; j < COUNT(replies); j++) {
			mock_set(scene.mock, clouds[i].key, replies[j]);
			for (int k = 0; k < 3; k++)
				scene_poll(clouds[i].key);
			assert_true(scene_count_in(clouds[i].key, 5) <= 7);
			mock_set(scene.mock, clouds[i].key,
			    (struct mock_reply){ .status = 404 });
			scene_expect_nothing(clouds[i].key);
		}
		set(clouds[i].key, clouds[i].time);
		scene_poll(clouds[i].key);
		scene_expect(NOTICE_DEADLINE);
	}
}

static void
fetches_a_token_where_one_is_needed(void **state)
{
	struct mock_seen seen;

	(void)state;
	set(TOKEN, "firsttoken==");
	mock_set(scene.mock, ALIBABA, (struct mock_reply){
	    .body = "2026-11-30T12:05:00Z",
	    .token = "X-aliyun-ecs-metadata-token: firsttoken==" });
	scene_begin(NOTICE_CLOUD_ALIBABA);
	scene_expect(NOTICE_DEADLINE);
	scene_expect(NOTICE_SEEING);
	assert_int_equal(mock_count(scene.mock, TOKEN), 1);
	seen = mock_seen(scene.mock, TOKEN);
	assert_non_null(strstr(seen.head,
	    "X-aliyun-ecs-metadata-token-ttl-seconds: 21600\r\n"));

	/* It is kept, and renewed when it is refused. */
	scene_expect_nothing(ALIBABA);
	assert_int_equal(mock_count(scene.mock, TOKEN), 1);
	set(TOKEN, "secondtoken==");
	mock_set(scene.mock, ALIBABA, (struct mock_reply){
	    .body = "2026-11-30T12:04:00Z",
	    .token = "X-aliyun-ecs-metadata-token: secondtoken==" });
	scene_poll(ALIBABA);
	scene_expect(NOTICE_DEADLINE);
	assert_int_equal(mock_count(scene.mock, TOKEN), 2);
}

static void
a_token_that_does_not_help_is_no_loop(void **state)
{
	struct notice notice;

	(void)state;
	set(TOKEN, "sometoken");
	mock_set(scene.mock, ALIBABA, (struct mock_reply){ .status = 403 });
	scene_begin(NOTICE_CLOUD_ALIBABA);
	notice = scene_expect(NOTICE_BLIND);
	assert_string_equal(notice.source, "alibaba");
	assert_string_equal(notice.reason, "refused");
	assert_true(scene_count_in(TOKEN, 60) <= 20);
	assert_true(mock_count(scene.mock, ALIBABA) <= 40);
}

static void
begins_anew_after_a_freeze(void **state)
{
	FOR_BOTH(state, i) {
		begin_seeing(i);
		set(clouds[i].key, clouds[i].time);
		scene_poll(clouds[i].key);
		scene_expect(NOTICE_DEADLINE);
		mock_set(scene.mock, clouds[i].key, (struct mock_reply){
		    .status = 404 });
		scene_expect_nothing(clouds[i].key);
		notice_resumed(scene.watch);
		scene_expect(NOTICE_WITHDRAWN);
		assert_int_equal(mock_connections(scene.mock), 2);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, \
    scene_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tells_at_the_next_poll),
		TEST(a_past_time_is_now),
		TEST(outlives_bad_answers),
		TEST(fetches_a_token_where_one_is_needed),
		TEST(a_token_that_does_not_help_is_no_loop),
		TEST(begins_anew_after_a_freeze),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
