/* room: store */
/*
 * The protocol on a real S3 server: run inside the environment that
 * tests/servers/rgw writes.  Without one it is skipped (exit code 77).
 */
#include "kit/kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/queue.h"
#include "base/random.h"
#include "base/rate.h"
#include "store/backend.h"
#include "store/remote.h"
#include "unit/store/suite.h"

#define SKIPPED 77

static uint64_t run;
static unsigned stores;

static struct backend *
open_s3(void)
{
	const struct remote_options options = { 0 };
	struct backend *backend;
	struct error error;
	char url[256];

	snprintf(url, sizeof(url), "s3://%s/store-%016" PRIx64 "/%u",
	    getenv("CKPTSYNC_TEST_BUCKET"), run, ++stores);
	backend = remote_open(url, &options, true, &error);
	if (backend == NULL)
		fail_msg("%s: %s", url, error.message);
	return backend;
}

static int
count_entry(void *context, const struct backend_entry *entry,
    struct error *error)
{
	(void)error;
	assert_string_equal(entry->key, "a/b");
	assert_int_equal(entry->size, 5);
	++*(unsigned *)context;
	return 0;
}

static void
test_objects(void **state)
{
	static const char *const keys[] = { "a/b", "a/none" };
	struct backend *backend = open_s3();
	struct buffer buffer;
	struct error error;
	unsigned count = 0;

	(void)state;
	buffer_init(&buffer, 100);
	assert_int_equal(backend_get(backend, "a/b", &buffer, 0, &error), -1);
	assert_int_equal(error.cause, CAUSE_NOT_FOUND);
	assert_ok(backend_put(backend, "a/b", "bytes", 5, 0, &error), error);
	assert_ok(backend_get(backend, "a/b", &buffer, 0, &error), error);
	assert_string_equal(buffer_text(&buffer), "bytes");
	assert_ok(backend_list(backend, "a", false, count_entry, &count,
	    &error), error);
	assert_int_equal(count, 1);
	assert_ok(backend_remove(backend, keys, 2, &error), error);
	assert_ok(backend_list(backend, "", false, count_entry, &count,
	    &error), error);
	assert_int_equal(count, 1);
	buffer_free(&buffer);
	backend_free(backend);
}

static void
signal_end(struct backend_request *request)
{
	queue_put(request->context, request);
}

/* Cancelled while it is on its way, and while it is ending. */
static void
test_cancel(void **state)
{
	enum { SIZE = 1 << 20, COUNT = 40 };
	struct backend *backend = open_s3();
	struct source_memory memory = { calloc(1, SIZE), SIZE };
	const struct source body = source_from_memory(&memory);
	struct backend_request requests[COUNT] = { 0 };
	struct error error;
	struct rate *slow = rate_new(1000, &error);
	struct queue *queue = queue_new(COUNT, &error);
	char keys[COUNT][8];
	unsigned i;

	(void)state;
	assert_non_null(memory.data);
	assert_non_null(slow);
	assert_non_null(queue);
	for (i = 0; i < COUNT; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%u", i);
		requests[i] = (struct backend_request){
			.operation = BACKEND_PUT, .key = keys[i],
			.body = &body, .length = i % 2 ? SIZE : 1,
			.rate = i % 2 ? slow : NULL, .done = signal_end,
			.context = queue };
		sha256_of(memory.data, requests[i].length,
		    requests[i].sha256);
		backend_submit(backend, &requests[i]);
	}
	for (i = 0; i < COUNT; i++)
		backend_cancel(backend, &requests[i]);
	for (i = 0; i < COUNT; i++)
		assert_non_null(queue_take(queue, CLOCK_NEVER));
	for (i = 1; i < COUNT; i += 2)
		assert_int_equal(requests[i].error.cause, CAUSE_CANCELLED);
	backend_free(backend);
	queue_free(queue);
	rate_free(slow);
	free((void *)memory.data);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_cancel),
	};
	int failed;

	if (getenv("AWS_ENDPOINT_URL") == NULL ||
	    getenv("CKPTSYNC_TEST_BUCKET") == NULL)
		return SKIPPED;
	run = random_bits();
	suite_open = open_s3;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	return failed + cmocka_run_group_tests_name("s3", suite_tests, NULL,
	    NULL);
}
