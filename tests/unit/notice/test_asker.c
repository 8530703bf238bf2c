#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "kit/kit.h"
#include "mock.h"
#include "notice/asker.h"
#include "notice/notice.h"

static struct mock *mock;
static struct asker *asker;
static struct request request;

static int
set_up(void **state)
{
	struct error error = ERROR_INIT;

	(void)state;
	setenv("http_proxy", "http://127.0.0.1:9", 1);
	mock = mock_start();
	asker = asker_new(&error);
	assert_non_null(asker);
	request_init(&request);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	asker_cancel(asker, &request);
	asker_free(asker);
	mock_stop(mock);
	return 0;
}

static void
start(const char *path)
{
	snprintf(request.url, sizeof(request.url), "%s%s", mock_url(mock),
	    path);
	request.timeout = 10 * CLOCK_SECOND;
	asker_start(asker, &request);
}

static void
finish(void)
{
	while (request.state == REQUEST_RUNNING)
		asker_wait(asker, CLOCK_NEVER);
	assert_int_equal(request.state, REQUEST_DONE);
	request.state = REQUEST_IDLE;
}

static void
reads_what_it_needs_of_a_head(void **state)
{
	(void)state;
	mock_set(mock, "GET /a", (struct mock_reply){ .body = "x",
	    .headers = "etag:  abc \r\nmetadata-flavor: Google\r\n" });
	start("/a");
	finish();
	assert_int_equal(request.status, 200);
	assert_string_equal(request.etag, "abc");
	assert_true(request.google);
	assert_string_equal(buffer_text(&request.answer), "x");

	/* Nothing of it stays for the next one. */
	mock_set(mock, "GET /b", (struct mock_reply){ .status = 404,
	    .headers = "X-ETag: no\r\nETagged: no\r\nMetadata-Flavor: Googles"
	    "\r\n" });
	start("/b");
	finish();
	assert_int_equal(request.status, 404);
	assert_string_equal(request.etag, "");
	assert_false(request.google);
	assert_int_equal(request.answer.length, 0);
	assert_int_equal(mock_connections(mock), 1);
}

static void
a_large_answer_is_refused(void **state)
{
	static char body[300 * 1024];

	(void)state;
	memset(body, 'x', sizeof(body) - 1);
	mock_set(mock, "GET /a", (struct mock_reply){ .body = body });
	start("/a");
	finish();
	assert_int_equal(request.status, 0);
	assert_int_equal(request.error.cause, CAUSE_LIMIT);
	assert_true(request.answer.length <= 256 * 1024);
}

static void
a_refused_connection_says_so(void **state)
{
	(void)state;
	snprintf(request.url, sizeof(request.url), "http://127.0.0.1:1/");
	request.timeout = 10 * CLOCK_SECOND;
	asker_start(asker, &request);
	finish();
	assert_int_equal(request.status, 0);
	assert_int_equal(request.system_error, ECONNREFUSED);
	assert_false(request.timed_out);
}

static void
only_http_is_spoken(void **state)
{
	(void)state;
	snprintf(request.url, sizeof(request.url), "file:///etc/passwd");
	asker_start(asker, &request);
	finish();
	assert_int_equal(request.status, 0);
	assert_int_equal(request.answer.length, 0);
}

static void
a_late_answer_is_given_up(void **state)
{
	(void)state;
	mock_set(mock, "GET /a", (struct mock_reply){ .kind = MOCK_HOLD });
	start("/a");
	request.timeout = 50 * CLOCK_MILLISECOND;
	finish();
	assert_true(request.timed_out);
	assert_int_equal(request.status, 0);
	assert_int_equal(request.error.cause, CAUSE_UNREACHABLE);
}

static void *
wake_twice(void *context)
{
	(void)context;
	asker_wake(asker);
	asker_wake(asker);
	return NULL;
}

static void
is_woken_from_another_thread(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, wake_twice, NULL), 0);
	asker_wait(asker, CLOCK_NEVER);
	assert_int_equal(pthread_join(thread, NULL), 0);

	/* It would wait for ever if a wake were forgotten. */
	asker_wake(asker);
	asker_wait(asker, CLOCK_NEVER);
}

static uint64_t
real_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CLOCK_SECOND + (uint64_t)now.tv_nsec;
}

/* Whatever a watcher is doing, it ends within a second. */
static void
a_watcher_ends_at_once(void **state)
{
	static const enum notice_cloud clouds[] = { NOTICE_CLOUD_AUTO,
	    NOTICE_CLOUD_AWS, NOTICE_CLOUD_GOOGLE, NOTICE_CLOUD_AZURE,
	    NOTICE_CLOUD_ALIBABA, NOTICE_CLOUD_TENCENT };
	static const char *const keys[] = { "PUT /latest/api/token",
	    "GET /computeMetadata/v1/instance/preempted",
	    "GET /metadata/scheduledevents",
	    "GET /latest/meta-data/instance/spot/termination-time",
	    "GET /latest/meta-data/spot/termination-time" };
	struct notice_options options = { .endpoint = mock_url(mock) };
	struct error error = ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		mock_set(mock, keys[i],
		    (struct mock_reply){ .kind = MOCK_HOLD });
	for (size_t i = 0; i < sizeof(clouds) / sizeof(clouds[0]); i++) {
		size_t before = mock_total(mock);
		struct notice_watch *watch;
		uint64_t asked;

		options.cloud = clouds[i];
		watch = notice_start(&options, &error);
		assert_non_null(watch);
		while (mock_total(mock) == before)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 },
			    NULL);
		asked = real_now();
		notice_free(watch);
		/* A second is promised; the rest is the machine's. */
		assert_true(real_now() - asked < 5 * CLOCK_SECOND);
	}
	notice_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_what_it_needs_of_a_head),
		TEST(a_large_answer_is_refused),
		TEST(a_refused_connection_says_so),
		TEST(only_http_is_spoken),
		TEST(a_late_answer_is_given_up),
		TEST(is_woken_from_another_thread),
		TEST(a_watcher_ends_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
