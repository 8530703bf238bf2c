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
#include "base/random.h"
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects),
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
