#include "kit/kit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/backend.h"
#include "store/mount.h"
#include "store/remote.h"
#include "store/strength.h"
#include "unit/store/delaying.h"

static void
test_urls(void **state)
{
	static const char *const wrong[] = { "gs://b/x", "file://x/y",
		"file://", "s3://", "s3:///x", "s3://b/a//b", "s3://b/../c",
		"s3://b/a/./c", "http://x" };
	const struct remote_options options = { 0 };
	struct error error;
	size_t i;

	(void)state;
	assert_true(remote_is_url("s3://x"));
	assert_false(remote_is_url("./checkpoints"));
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_null(remote_open(wrong[i], &options, false, &error));
		if (error.class != ERROR_USAGE)
			fail_msg("%s: %s", wrong[i], error.message);
	}
}

static void
test_file_url(void **state)
{
	struct remote_options options = { 0 };
	char *folder = kit_scratch(), url[1024];
	struct backend *backend;
	struct error error;

	(void)state;
	snprintf(url, sizeof(url), "file://%s/run 1%%20/", folder);
	assert_null(remote_open(url, &options, false, &error));
	assert_int_equal(error.class, ERROR_NOTHING);
	assert_int_equal(error.cause, CAUSE_NOT_FOUND);
	backend = remote_open(url, &options, true, &error);
	assert_non_null(backend);
	assert_false(backend->weak);
	assert_non_null(strstr(backend->name, "/run 1%20"));
	backend_free(backend);
	options.strength = REMOTE_WEAK;
	backend = remote_open(url, &options, false, &error);
	assert_non_null(backend);
	assert_true(backend->weak);
	backend_free(backend);
	kit_scratch_remove(folder);
	free(folder);
}

static void
test_s3_url(void **state)
{
	const struct remote_options options = { .region = "us-east-1",
		.endpoint_url = "https://s3.pub1.infomaniak.cloud" };
	struct backend *backend;
	struct error error;

	(void)state;
	setenv("AWS_ACCESS_KEY_ID", "x", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "y", 1);
	backend = remote_open("s3://bucket/run/1//", &options, true, &error);
	if (backend == NULL)
		fail_msg("%s", error.message);
	assert_string_equal(backend->name, "s3://bucket/run/1");
	assert_true(backend->weak);
	assert_false(backend->local);
	backend_free(backend);
	backend = remote_open("s3://bucket", &options, true, &error);
	assert_non_null(backend);
	assert_string_equal(backend->name, "s3://bucket/");
	backend_free(backend);
}

static void
test_mark(void **state)
{
	struct backend *store = delaying_new(NULL, NULL);
	struct error error;
	size_t length;

	(void)state;
	assert_ok(remote_check(store, &error), error);
	assert_int_equal(delaying_count(store), 0);
	assert_ok(remote_mark(store, &error), error);
	assert_string_equal(delaying_get(store, "ckptsync.json", &length),
	    "{\"format\":1}\n");
	assert_ok(remote_mark(store, &error), error);
	assert_ok(remote_check(store, &error), error);
	backend_free(store);
}

static void
test_mark_of_others(void **state)
{
	static const struct {
		const char *text;
		enum error_class class;
		enum error_cause cause;
		bool reader_too;
	} marks[] = {
		{ "{\"format\":2}", ERROR_FAILED, CAUSE_FEATURE, true },
		{ "{\"format\":1,\"needs_reader\":[\"x\"]}", ERROR_FAILED,
		    CAUSE_FEATURE, true },
		{ "{\"format\":1,\"needs_writer\":[\"x\"]}", ERROR_FAILED,
		    CAUSE_FEATURE, false },
		{ "{}", ERROR_DAMAGED, CAUSE_OTHER, true },
		{ "not json", ERROR_DAMAGED, CAUSE_OTHER, true },
	};
	struct backend *store = delaying_new(NULL, NULL);
	struct error error;
	char *large = malloc(10000);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		delaying_set(store, "ckptsync.json", marks[i].text,
		    strlen(marks[i].text));
		assert_int_equal(remote_mark(store, &error), -1);
		assert_int_equal(error.class, marks[i].class);
		assert_int_equal(error.cause, marks[i].cause);
		assert_int_equal(remote_check(store, &error),
		    marks[i].reader_too ? -1 : 0);
	}
	assert_non_null(large);
	memset(large, ' ', 10000);
	delaying_set(store, "ckptsync.json", large, 10000);
	assert_int_equal(remote_check(store, &error), -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	free(large);
	backend_free(store);
}

static void
test_strength(void **state)
{
	(void)state;
	assert_false(strength_is_weak(NULL));
	assert_false(strength_is_weak(""));
	assert_false(strength_is_weak("https://s3.eu-west-1.amazonaws.com"));
	assert_true(strength_is_weak("https://s3.GRA.cloud.ovh.net:443/"));
	assert_false(strength_is_weak("https://s3.gra.io.cloud.ovh.net"));
	assert_true(strength_is_weak("https://fly.storage.tigris.dev"));
	assert_false(strength_is_weak("https://nottigris.dev"));
	assert_false(strength_is_weak("http://localhost:8080"));
}

static const char mountinfo[] =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "30 22 0:40 / /mnt/a rw - fuse.s3fs s3fs rw,user_id=0\n"
    "31 22 0:41 / /mnt/b rw shared:5 master:3 - fuse mountpoint-s3 rw\n"
    "32 22 0:42 / /mnt/c rw - fuse.sshfs host:/x rw\n"
    "33 22 0:43 / /mnt/d rw - nfs4 host:/x rw,vers=4.2,hard\n"
    "34 22 0:44 / /mnt/e rw - nfs4 host:/x rw,acregmax=3,acdirmax=3\n"
    "35 22 0:45 / /mnt/f rw - nfs host:/x rw,noac,vers=3\n"
    "36 22 0:46 / /mnt/g rw - nfs host:/x rw,noac,nocto,vers=3\n"
    "37 22 0:47 / /mnt/h rw - nfs4 host:/x rw,acregmax=3,acdirmax=30\n"
    "38 22 0:48 / /mnt/i rw\n"
    "39 22 0:49 / /mnt/j rw - fuse other rw";

static void
test_mounts(void **state)
{
	static const struct {
		uint64_t id;
		int result;
		bool objects, weak;
	} mounts[] = {
		{ 22, 0, false, false }, { 30, 0, true, false },
		{ 31, 0, true, false }, { 32, 0, false, false },
		{ 33, 0, false, true }, { 34, 0, false, false },
		{ 35, 0, false, false }, { 36, 0, false, true },
		{ 37, 0, false, true }, { 38, 0, false, false },
		{ 39, 0, false, false }, { 40, -1, false, false },
	};
	struct mount mount;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		if (mount_find(mountinfo, mounts[i].id, &mount) !=
		    mounts[i].result || mount.objects != mounts[i].objects ||
		    mount.weak != mounts[i].weak)
			fail_msg("mount %u (%s)", (unsigned)mounts[i].id,
			    mount.type);
	}
	assert_int_equal(mount_find("", 1, &mount), -1);
	assert_int_equal(mount_find("garbage\n- -\n", 1, &mount), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_file_url),
		cmocka_unit_test(test_s3_url),
		cmocka_unit_test(test_mark),
		cmocka_unit_test(test_mark_of_others),
		cmocka_unit_test(test_strength),
		cmocka_unit_test(test_mounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
