#include <stdlib.h>
#include <string.h>

#include "kit/kit.h"
#include "scene.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define DMI "/sys/class/dmi/id/"
#define TOKEN "PUT /latest/api/token"
#define META "GET /latest/meta-data/"
#define GOOGLE "GET /computeMetadata/v1/"
#define PREEMPTED GOOGLE "instance/preempted"
#define NAME "GET /metadata/instance/compute/name"
#define EVENTS "GET /metadata/scheduledevents"

static void
set(const char *key, const char *body)
{
	mock_set(scene.mock, key, (struct mock_reply){ .body = body });
}

static void
the_firmware_says_it(void **state)
{
	(void)state;
	scene_put(DMI "product_name", "Alibaba Cloud ECS\n");
	scene_begin(NOTICE_CLOUD_AUTO);
	assert_string_equal(scene_expect(NOTICE_SEEING).source, "alibaba");
	assert_int_equal(mock_count(scene.mock, TOKEN), 0);
	assert_int_equal(mock_count(scene.mock, GOOGLE), 0);
}

static void
a_cloud_that_says_nothing_is_named(void **state)
{
	struct notice notice;

	(void)state;
	scene_put(DMI "chassis_asset_tag", "OracleCloud.com\n");
	scene_begin(NOTICE_CLOUD_AUTO);
	notice = scene_expect(NOTICE_BLIND);
	assert_string_equal(notice.reason, "silent cloud");
	assert_non_null(strstr(notice.error.message, "\"oracle\""));
	scene_turn(5, 0.5);
	assert_int_equal(mock_total(scene.mock), 0);
}

static void
play_aws(void)
{
	set(TOKEN, "AQAEAtokentokentokentoken==");
}

static void
play_hop_limit(void)
{
	mock_set(scene.mock, TOKEN, (struct mock_reply){ .status = 500 });
	mock_set(scene.mock, META, (struct mock_reply){ .status = 401 });
}

static void
play_google(void)
{
	mock_set(scene.mock, GOOGLE, (struct mock_reply){ .status = 404,
	    .headers = "Metadata-Flavor: Google\r\n" });
	mock_set(scene.mock, PREEMPTED, (struct mock_reply){ .body = "FALSE",
	    .etag = "1", .headers = "Metadata-Flavor: Google\r\n" });
}

static void
play_azure(void)
{
	set(NAME, "vm1");
	set(EVENTS, "{\"DocumentIncarnation\":1,\"Events\":[]}");
}

static void
play_alibaba(void)
{
	set(META "instance-id", "i-bp13znx0m0me8cquu4na");
}

static void
play_tencent(void)
{
	set(META "instance-id", "ins-23jvvgo8");
}

static void
probes_tell_the_clouds_apart(void **state)
{
	static const struct {
		void (*play)(void);
		const char *source;
		enum notice_kind kind;
	} cases[] = {
		{ play_aws, "aws", NOTICE_SEEING },
		{ play_google, "google", NOTICE_SEEING },
		{ play_azure, "azure", NOTICE_SEEING },
		{ play_alibaba, "alibaba", NOTICE_SEEING },
		{ play_tencent, "tencent", NOTICE_SEEING },
		{ play_hop_limit, "aws", NOTICE_BLIND },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct notice notice;

		cases[i].play();
		scene_begin(NOTICE_CLOUD_AUTO);
		notice = scene_expect_within(cases[i].kind, 20);
		assert_string_equal(notice.source, cases[i].source);
		scene_tear_down(state);
		scene_set_up(state);
	}
}

/* Something answers everything: a captive portal is no cloud. */
static void
a_portal_is_no_cloud(void **state)
{
	static const char *const keys[] = { TOKEN, META, GOOGLE, NAME,
	    META "instance-id" };

	(void)state;
	for (size_t i = 0; i < COUNT(keys); i++)
		set(keys[i], "<html><body>Welcome</body></html>");
	scene_begin(NOTICE_CLOUD_AUTO);
	assert_string_equal(scene_expect(NOTICE_BLIND).reason, "no cloud");
}

static void
no_answer_is_no_lasting_no(void **state)
{
	struct notice notice;
	size_t count;

	(void)state;
	mock_set(scene.mock, TOKEN, (struct mock_reply){ .kind = MOCK_HOLD });
	mock_set(scene.mock, NAME, (struct mock_reply){ .kind = MOCK_HOLD });
	mock_set(scene.mock, META, (struct mock_reply){ .kind = MOCK_RESET });
	scene_begin(NOTICE_CLOUD_AUTO);
	mock_wait(scene.mock, TOKEN, 1);
	assert_false(notice_next(scene.watch, &notice));
	notice = scene_expect_within(NOTICE_BLIND, 2.5);
	assert_string_equal(notice.reason, "no cloud");
	assert_non_null(strstr(notice.error.cure, "--cloud"));

	/* Half a minute later, then ever more rarely. */
	count = mock_total(scene.mock);
	scene_turn(25, 0.5);
	assert_int_equal(mock_total(scene.mock), count);
	scene_poll(GOOGLE);
	scene_turn(2.5, 0.1);
	assert_false(notice_next(scene.watch, &notice));
	count = mock_total(scene.mock);
	scene_turn(40, 0.5);
	assert_int_equal(mock_total(scene.mock), count);
	play_azure();
	scene_poll(NAME);
	scene_turn(2.5, 0.1);
	scene_poll(EVENTS);
	assert_string_equal(scene_expect(NOTICE_SEEING).source, "azure");
}

static void
none_asks_nobody(void **state)
{
	struct notice notice;

	(void)state;
	scene_begin(NOTICE_CLOUD_NONE);
	clock_test_turn(60 * CLOCK_SECOND);
	assert_false(notice_next(scene.watch, &notice));
	assert_int_equal(mock_total(scene.mock), 0);
	notice_acknowledge(scene.watch, "x");
	notice_resumed(scene.watch);
}

/* A proxy that is switched off for AWS is not asked for tokens. */
static void
what_is_switched_off_is_not_probed(void **state)
{
	(void)state;
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", mock_url(scene.mock), 1);
	setenv("GCE_METADATA_HOST", mock_url(scene.mock) + strlen("http://"),
	    1);
	scene.options.endpoint = NULL;
	play_aws();
	play_google();
	scene_begin(NOTICE_CLOUD_AUTO);
	assert_string_equal(scene_expect(NOTICE_SEEING).source, "google");
	assert_int_equal(mock_count(scene.mock, TOKEN), 0);
}

static void
reads_names_of_clouds(void **state)
{
	static const char *const names[] = { "auto", "none", "aws", "google",
	    "azure", "alibaba", "tencent" };
	struct notice_options options = { .google_notice = 0 };
	enum notice_cloud cloud;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_int_equal(notice_cloud_parse(names[i], &cloud), 0);
		assert_int_equal(cloud, NOTICE_CLOUD_AUTO + (int)i);
	}
	assert_int_equal(notice_cloud_parse("gcp", &cloud), 0);
	assert_int_equal(cloud, NOTICE_CLOUD_GOOGLE);
	assert_int_equal(notice_cloud_parse("AWS", &cloud), -1);
	assert_int_equal(notice_cloud_parse("", &cloud), -1);

	assert_int_equal(notice_window(&options, "aws"), 120 * CLOCK_SECOND);
	assert_int_equal(notice_window(&options, "google"),
	    30 * CLOCK_SECOND);
	options.google_notice = 120 * CLOCK_SECOND;
	assert_int_equal(notice_window(&options, "google"),
	    120 * CLOCK_SECOND);
	assert_int_equal(notice_window(&options, "nowhere"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, \
    scene_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_firmware_says_it),
		TEST(a_cloud_that_says_nothing_is_named),
		TEST(probes_tell_the_clouds_apart),
		TEST(a_portal_is_no_cloud),
		TEST(no_answer_is_no_lasting_no),
		TEST(none_asks_nobody),
		TEST(what_is_switched_off_is_not_probed),
		cmocka_unit_test(reads_names_of_clouds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
