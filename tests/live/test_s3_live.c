/* room: s3 */
/*
 * The S3 client against a real server: run inside the environment that
 * tests/servers/rgw writes.  Without one it is skipped (exit code 77).
 */
#include "kit/kit.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/buffer.h"
#include "base/rate.h"
#include "s3/client.h"

#define SKIPPED 77
#define TRANSFERS 64

static struct s3_client *client;
static char folder[64];		/* keys of this run begin with it */

static struct s3_config
config_usual(void)
{
	return (struct s3_config){ .bucket = getenv("CKPTSYNC_TEST_BUCKET"),
	    .connections = TRANSFERS, .threads = 2 };
}

static char *
key_make(const char *name)
{
	static char keys[16][1100];
	static unsigned next;
	char *key = keys[next++ % 16];

	snprintf(key, sizeof(keys[0]), "%s/%s", folder, name);
	return key;
}

/* Bytes that are collected by a sink. */
struct collected {
	struct buffer bytes;
	uint64_t fail_at;	/* refuse bytes from there on; 0: never */
};

static int
collect(void *context, const void *data, size_t length, struct error *error)
{
	struct collected *collected = context;

	if (collected->fail_at != 0 &&
	    collected->bytes.length >= collected->fail_at)
		return error_set(error, ERROR_FAILED, CAUSE_NO_SPACE, "sink",
		    "no more room");
	return buffer_append(&collected->bytes, data, length, error);
}

static void
put(const char *key, const void *data, size_t length)
{
	struct source_memory memory = { data, length };
	struct source body = source_from_memory(&memory);
	struct s3_request request = { .operation = S3_PUT, .key = key,
	    .body = &body, .length = length };

	sha256_of(data, length, request.sha256);
	assert_ok(s3_client_perform(client, &request), request.error);
}

static void
get(const char *key, uint64_t offset, uint64_t length,
    struct collected *collected, struct s3_request *request)
{
	*request = (struct s3_request){ .operation = S3_GET, .key = key,
	    .offset = offset, .length = length, .sink = collect,
	    .context = collected };
	buffer_init(&collected->bytes, 64 << 20);
	s3_client_perform(client, request);
}

static void
test_put_get_head_delete(void **state)
{
	static const size_t sizes[] = { 0, 1, 16384, 1000003, 9 << 20 };
	const char *key = key_make("object");
	struct collected collected = { .fail_at = 0 };
	struct s3_request request;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t size = sizes[i];
		char *data = malloc(size + 1);

		kit_random(data, size, i);
		put(key, data, size);
		get(key, 0, 0, &collected, &request);
		assert_ok(request.error.class, request.error);
		assert_int_equal(collected.bytes.length, size);
		assert_int_equal(request.size, size);
		if (size > 0)
			assert_memory_equal(collected.bytes.data, data, size);
		buffer_free(&collected.bytes);

		request = (struct s3_request){ .operation = S3_HEAD,
		    .key = key };
		assert_ok(s3_client_perform(client, &request), request.error);
		assert_int_equal(request.size, size);
		assert_int_equal(request.attempts, 1);
		assert_true(request.server_time.tv_sec > 0);
		free(data);
	}
	request = (struct s3_request){ .operation = S3_DELETE, .key = key };
	assert_ok(s3_client_perform(client, &request), request.error);
	/* Deleting what is not there is fine. */
	assert_ok(s3_client_perform(client, &request), request.error);
	get(key, 0, 0, &collected, &request);
	assert_int_equal(request.error.cause, CAUSE_NOT_FOUND);
	buffer_free(&collected.bytes);
}

static void
test_ranges(void **state)
{
	const char *key = key_make("range");
	struct collected collected = { .fail_at = 0 };
	struct s3_request request;
	char data[100000];

	(void)state;
	kit_random(data, sizeof(data), 7);
	put(key, data, sizeof(data));
	get(key, 10, 50000, &collected, &request);
	assert_ok(request.error.class, request.error);
	assert_int_equal(collected.bytes.length, 50000);
	assert_memory_equal(collected.bytes.data, data + 10, 50000);
	assert_int_equal(request.size, sizeof(data));
	buffer_free(&collected.bytes);

	get(key, 99999, 0, &collected, &request);
	assert_ok(request.error.class, request.error);
	assert_int_equal(collected.bytes.length, 1);
	buffer_free(&collected.bytes);

	get(key, 99990, 20, &collected, &request);
	assert_int_equal(request.error.class, ERROR_DAMAGED);
	assert_non_null(strstr(request.error.message, "ends at 100000"));
	buffer_free(&collected.bytes);

	get(key, 100000, 1, &collected, &request);
	assert_int_equal(request.error.class, ERROR_DAMAGED);
	assert_int_equal(request.status, 416);
	buffer_free(&collected.bytes);
}

static void
test_sink_that_refuses(void **state)
{
	const char *key = key_make("sink");
	struct collected collected = { .fail_at = 100000 };
	struct s3_request request;
	char *data = malloc(1 << 20);

	(void)state;
	kit_random(data, 1 << 20, 8);
	put(key, data, 1 << 20);
	get(key, 0, 0, &collected, &request);
	assert_int_equal(request.error.cause, CAUSE_NO_SPACE);
	assert_string_equal(request.error.message, "no more room");
	assert_int_equal(request.attempts, 1);
	buffer_free(&collected.bytes);
	free(data);
}

static void
test_odd_keys(void **state)
{
	static const char *const names[] = { "a b+c=d~@,(x)", "%41",
	    "double//slash/../dots/./x", "\xc3\xa9\xe6\xbc\xa2",
	    "plus+amp&?#x", "trailing/" };
	struct collected collected = { .fail_at = 0 };
	struct s3_request request;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *key = key_make(names[i]);

		put(key, names[i], strlen(names[i]));
		get(key, 0, 0, &collected, &request);
		assert_ok(request.error.class, request.error);
		assert_memory_equal(collected.bytes.data, names[i],
		    strlen(names[i]));
		buffer_free(&collected.bytes);
	}
}

static void
test_if_absent(void **state)
{
	struct source_memory memory = { "once", 4 };
	struct source body = source_from_memory(&memory);
	struct s3_request request = { .operation = S3_PUT,
	    .key = key_make("once"), .body = &body, .length = 4,
	    .if_absent = true };

	(void)state;
	sha256_of("once", 4, request.sha256);
	assert_ok(s3_client_perform(client, &request), request.error);
	assert_int_equal(s3_client_perform(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_EXISTS);
	assert_int_equal(request.status, 412);
}

static void
test_wrong_hash_is_refused(void **state)
{
	struct source_memory memory = { "body", 4 };
	struct source body = source_from_memory(&memory);
	struct s3_request request = { .operation = S3_PUT,
	    .key = key_make("wrong"), .body = &body, .length = 4 };
	struct collected collected = { .fail_at = 0 };

	(void)state;
	sha256_of("another body", 12, request.sha256);
	assert_int_equal(s3_client_perform(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_REFUSED);
	assert_int_equal(request.attempts, 2);
	assert_non_null(strstr(request.error.message,
	    "XAmzContentSHA256Mismatch"));
	get(key_make("wrong"), 0, 0, &collected, &request);
	assert_int_equal(request.error.cause, CAUSE_NOT_FOUND);
	buffer_free(&collected.bytes);
}

static void
test_missing_key(void **state)
{
	const char *key = key_make("missing");
	struct collected collected = { .fail_at = 0 };
	struct s3_request request;

	(void)state;
	get(key, 0, 0, &collected, &request);
	assert_int_equal(request.error.cause, CAUSE_NOT_FOUND);
	assert_string_equal(request.error.object, key);
	assert_non_null(strstr(request.error.message, "404 NoSuchKey"));
	assert_non_null(strstr(request.error.message, "request id "));
	buffer_free(&collected.bytes);
	request = (struct s3_request){ .operation = S3_HEAD, .key = key };
	assert_int_equal(s3_client_perform(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_NOT_FOUND);
	assert_non_null(strstr(request.error.message, "NoSuchKey"));
}

static int
visit_nothing(void *context, const struct s3_entry *entry,
    struct error *error)
{
	(void)entry;
	(void)error;
	++*(size_t *)context;
	return 0;
}

static void
test_missing_bucket(void **state)
{
	struct s3_config config = config_usual();
	struct s3_request request = { .operation = S3_HEAD, .key = "x" };
	struct error error = ERROR_INIT;
	struct s3_client *other;
	size_t count = 0;

	(void)state;
	config.bucket = "ckptsync-no-such-bucket";
	other = s3_client_new(&config, &error);
	assert_non_null(other);
	assert_int_equal(s3_client_perform(other, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_DENIED);
	assert_non_null(strstr(request.error.message, "NoSuchBucket"));
	assert_int_equal(s3_client_list(other, "", NULL, visit_nothing,
	    &count, &error), -1);
	assert_int_equal(error.cause, CAUSE_DENIED);
	assert_non_null(strstr(error.message,
	    "listing bucket ckptsync-no-such-bucket"));
	s3_client_free(other);
}

static void
test_wrong_secret(void **state)
{
	struct s3_config config = config_usual();
	struct s3_request request = { .operation = S3_HEAD, .key = "x" };
	struct error error = ERROR_INIT;
	char *right = strdup(getenv("AWS_SECRET_ACCESS_KEY"));
	struct s3_client *other;

	(void)state;
	setenv("AWS_SECRET_ACCESS_KEY", "wrong", 1);
	other = s3_client_new(&config, &error);
	setenv("AWS_SECRET_ACCESS_KEY", right, 1);
	free(right);
	assert_non_null(other);
	assert_int_equal(s3_client_perform(other, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_DENIED);
	assert_non_null(strstr(request.error.message,
	    "403 SignatureDoesNotMatch"));
	s3_client_free(other);
}

/* A listing that must come in order. */
struct listed {
	size_t keys;
	size_t prefixes;
	char last[1100];
	char first_prefix[1100];
};

static int
visit(void *context, const struct s3_entry *entry, struct error *error)
{
	struct listed *listed = context;

	(void)error;
	assert_true(strcmp(listed->last, entry->key) < 0);
	snprintf(listed->last, sizeof(listed->last), "%s", entry->key);
	if (entry->is_prefix) {
		if (listed->prefixes++ == 0)
			memcpy(listed->first_prefix, listed->last,
			    sizeof(listed->last));
	} else {
		assert_int_equal(entry->size, 5);
		listed->keys++;
	}
	return 0;
}

/* Many requests at once, and how many are under way. */
struct crowd {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t running;
	size_t failed;
};

static struct crowd crowd = { .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER };

static void
on_done(struct s3_request *request)
{
	pthread_mutex_lock(&crowd.lock);
	crowd.running--;
	if (request->error.class != ERROR_NONE) {
		char text[ERROR_TEXT_SIZE];

		crowd.failed++;
		print_message("%s\n", error_text(&request->error, text));
	}
	pthread_cond_signal(&crowd.changed);
	pthread_mutex_unlock(&crowd.lock);
}

static void
crowd_submit(struct s3_request *request)
{
	pthread_mutex_lock(&crowd.lock);
	crowd.running++;
	pthread_mutex_unlock(&crowd.lock);
	s3_client_submit(client, request);
}

static size_t
crowd_wait(void)
{
	size_t result;

	pthread_mutex_lock(&crowd.lock);
	while (crowd.running > 0)
		pthread_cond_wait(&crowd.changed, &crowd.lock);
	result = crowd.failed;
	crowd.failed = 0;
	pthread_mutex_unlock(&crowd.lock);
	return result;
}

#define MANY 2305

static void
test_list_and_delete_many(void **state)
{
	struct source_memory memory = { "small", 5 };
	struct source body = source_from_memory(&memory);
	struct s3_request *requests = calloc(MANY, sizeof(*requests));
	char (*keys)[128] = calloc(MANY + 1, sizeof(*keys));
	const char **list = calloc(MANY + 1, sizeof(*list));
	struct listed listed = { .keys = 0 };
	struct error error = ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		snprintf(keys[i], sizeof(keys[i]), "%s/many/%02zu/%04zu<&>'",
		    folder, i % 7, i);
		list[i] = keys[i];
		requests[i] = (struct s3_request){ .operation = S3_PUT,
		    .key = keys[i], .body = &body, .length = 5,
		    .done = on_done };
		sha256_of("small", 5, requests[i].sha256);
		crowd_submit(&requests[i]);
	}
	assert_int_equal(crowd_wait(), 0);

	assert_ok(s3_client_list(client, key_make("many/"), NULL, visit,
	    &listed, &error), error);
	assert_int_equal(listed.keys, MANY);
	memset(&listed, 0, sizeof(listed));
	assert_ok(s3_client_list(client, key_make("many/"), "/", visit,
	    &listed, &error), error);
	assert_int_equal(listed.keys, 0);
	assert_int_equal(listed.prefixes, 7);
	assert_string_equal(listed.first_prefix, key_make("many/00/"));

	/* The last one does not exist. */
	snprintf(keys[MANY], sizeof(keys[MANY]), "%s/many/none", folder);
	list[MANY] = keys[MANY];
	assert_ok(s3_client_delete_many(client, list, MANY + 1, &error),
	    error);
	memset(&listed, 0, sizeof(listed));
	assert_ok(s3_client_list(client, key_make("many/"), NULL, visit,
	    &listed, &error), error);
	assert_int_equal(listed.keys, 0);
	free(requests);
	free(keys);
	free(list);
}

#define BIG (3u << 20)

/* 64 objects up and down again at once; with `between` called while they are
 * on their way. */
static void
run_crowd(const char *name, void (*between)(void))
{
	struct s3_request *requests = calloc(TRANSFERS, sizeof(*requests));
	struct collected *collected = calloc(TRANSFERS, sizeof(*collected));
	char (*keys)[128] = calloc(TRANSFERS, sizeof(*keys));
	char *data = malloc(BIG + TRANSFERS);
	struct source_memory memory = { data, BIG + TRANSFERS };
	struct source body = source_from_memory(&memory);

	kit_random(data, BIG + TRANSFERS, 99);
	for (size_t i = 0; i < TRANSFERS; i++) {
		snprintf(keys[i], sizeof(keys[i]), "%s/%s/%zu", folder, name,
		    i);
		requests[i] = (struct s3_request){ .operation = S3_PUT,
		    .key = keys[i], .body = &body, .offset = i,
		    .length = BIG, .done = on_done };
		sha256_of(data + i, BIG, requests[i].sha256);
		crowd_submit(&requests[i]);
	}
	if (between != NULL)
		between();
	assert_int_equal(crowd_wait(), 0);
	for (size_t i = 0; i < TRANSFERS; i++) {
		buffer_init(&collected[i].bytes, BIG);
		requests[i] = (struct s3_request){ .operation = S3_GET,
		    .key = keys[i], .sink = collect, .context = &collected[i],
		    .done = on_done };
		crowd_submit(&requests[i]);
	}
	if (between != NULL)
		between();
	assert_int_equal(crowd_wait(), 0);
	for (size_t i = 0; i < TRANSFERS; i++) {
		assert_int_equal(collected[i].bytes.length, BIG);
		assert_memory_equal(collected[i].bytes.data, data + i, BIG);
		buffer_free(&collected[i].bytes);
	}
	free(requests);
	free(collected);
	free(keys);
	free(data);
}

static void
test_many_at_once(void **state)
{
	(void)state;
	run_crowd("crowd", NULL);
}

static void
server_command(const char *command)
{
	char *argv[] = { getenv("CKPTSYNC_TEST_SERVER"), (char *)command,
	    getenv("CKPTSYNC_TEST_SERVER_FOLDER"), NULL };
	struct buffer output;
	struct error error = ERROR_INIT;

	buffer_init(&output, 4096);
	assert_ok(process_output(argv, 180 * CLOCK_SECOND, &output, &error),
	    error);
	buffer_free(&output);
}

static void
kill_and_revive(void)
{
	server_command("kill");
	server_command("revive");
}

static void
test_server_that_comes_back(void **state)
{
	(void)state;
	if (getenv("CKPTSYNC_TEST_SERVER") == NULL)
		skip();
	run_crowd("comeback", kill_and_revive);
}

static void
test_unreachable(void **state)
{
	struct s3_config config = config_usual();
	struct s3_request request = { .operation = S3_HEAD, .key = "x" };
	struct error error = ERROR_INIT;
	struct s3_client *other;

	(void)state;
	config.endpoint_url = "http://127.0.0.1:1";
	config.give_up_after = CLOCK_SECOND;
	other = s3_client_new(&config, &error);
	assert_non_null(other);
	assert_int_equal(s3_client_perform(other, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_UNREACHABLE);
	assert_true(request.attempts > 1);
	s3_client_free(other);
}

/* The outcome of requests that are cut off. */
static struct error cut_error;

static void
on_cut(struct s3_request *request)
{
	pthread_mutex_lock(&crowd.lock);
	crowd.running--;
	cut_error = request->error;
	pthread_cond_signal(&crowd.changed);
	pthread_mutex_unlock(&crowd.lock);
}

static void
test_cancel(void **state)
{
	static char data[BIG];
	struct source_memory memory = { data, BIG };
	struct source body = source_from_memory(&memory);
	struct error error = ERROR_INIT;
	struct rate *rate = rate_new(1000, &error);
	struct s3_request request = { .operation = S3_PUT,
	    .key = key_make("cancelled"), .body = &body, .length = BIG,
	    .done = on_cut, .rate = rate };

	(void)state;
	sha256_of(data, BIG, request.sha256);
	crowd_submit(&request);
	s3_client_cancel(client, &request);
	crowd_wait();
	assert_int_equal(cut_error.cause, CAUSE_CANCELLED);

	request.deadline = clock_monotonic() + CLOCK_SECOND / 4;
	crowd_submit(&request);
	crowd_wait();
	assert_int_equal(cut_error.cause, CAUSE_UNREACHABLE);
	assert_non_null(strstr(cut_error.message, "deadline"));
	rate_free(rate);
}

static void
test_virtual_addressing(void **state)
{
	struct s3_config config = config_usual();
	struct s3_client *path = client;
	struct error error = ERROR_INIT;
	const char *port = strrchr(getenv("AWS_ENDPOINT_URL"), ':');
	char address[64];
	struct collected collected = { .fail_at = 0 };
	struct s3_request request;
	struct listed listed = { .keys = 0 };

	(void)state;
	snprintf(address, sizeof(address), "http://localhost%s", port);
	config.endpoint_url = address;
	config.addressing = S3_ADDRESSING_VIRTUAL;
	client = s3_client_new(&config, &error);
	assert_non_null(client);
	put(key_make("virtual/one"), "host!", 5);
	get(key_make("virtual/one"), 0, 0, &collected, &request);
	assert_ok(request.error.class, request.error);
	assert_memory_equal(collected.bytes.data, "host!", 5);
	buffer_free(&collected.bytes);
	assert_ok(s3_client_list(client, key_make("virtual/"), NULL, visit,
	    &listed, &error), error);
	assert_int_equal(listed.keys, 1);
	s3_client_free(client);

	/* It is the same bucket. */
	client = path;
	get(key_make("virtual/one"), 0, 0, &collected, &request);
	assert_ok(request.error.class, request.error);
	buffer_free(&collected.bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_get_head_delete),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_sink_that_refuses),
		cmocka_unit_test(test_odd_keys),
		cmocka_unit_test(test_if_absent),
		cmocka_unit_test(test_wrong_hash_is_refused),
		cmocka_unit_test(test_missing_key),
		cmocka_unit_test(test_missing_bucket),
		cmocka_unit_test(test_wrong_secret),
		cmocka_unit_test(test_list_and_delete_many),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_server_that_comes_back),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_virtual_addressing),
	};
	struct s3_config config = config_usual();
	struct error error = ERROR_INIT;
	char text[ERROR_TEXT_SIZE];
	int result;

	if (config.bucket == NULL || getenv("AWS_ENDPOINT_URL") == NULL) {
		fprintf(stderr, "no S3 server in the environment: skipped\n");
		return SKIPPED;
	}
	snprintf(folder, sizeof(folder), "live-%ld", (long)getpid());
	config.trace = getenv("CKPTSYNC_TEST_TRACE") != NULL;
	client = s3_client_new(&config, &error);
	if (client == NULL) {
		fprintf(stderr, "%s\n", error_text(&error, text));
		return 1;
	}
	result = cmocka_run_group_tests(tests, NULL, NULL);
	s3_client_free(client);
	return result;
}
