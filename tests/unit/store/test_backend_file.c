#include "kit/kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/rate.h"
#include "store/backend.h"
#include "store/backend_file.h"
#include "store/key.h"

#define TERM "node-0000/term-00000001-00000000000000aa/"
#define HEX "ab0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static char *folder;
static struct backend *store;

static int
set_up(void **state)
{
	struct error error;

	(void)state;
	folder = kit_scratch();
	store = backend_file_open(folder, false, &error);
	assert_non_null(store);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	backend_free(store);
	kit_scratch_remove(folder);
	free(folder);
	return 0;
}

static char *
path_of(const char *name)
{
	static char path[1024];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void
put(const char *key, const char *text)
{
	struct error error;

	assert_ok(backend_put(store, key, text, strlen(text), 0, &error),
	    error);
}

static void
assert_object(const char *key, const char *text)
{
	struct buffer buffer;
	struct error error;

	buffer_init(&buffer, 1 << 20);
	assert_ok(backend_get(store, key, &buffer, CLOCK_NEVER, &error),
	    error);
	assert_string_equal(buffer_text(&buffer), text);
	buffer_free(&buffer);
}

static void
assert_absent(const char *key)
{
	struct buffer buffer;
	struct error error;

	buffer_init(&buffer, 16);
	assert_int_equal(backend_get(store, key, &buffer, 0, &error), -1);
	assert_int_equal(error.cause, CAUSE_NOT_FOUND);
	buffer_free(&buffer);
}

static int
add_line(void *context, const struct backend_entry *entry, struct error *error)
{
	return buffer_format(context, error, "%s%s:%u\n", entry->key,
	    entry->is_prefix ? "*" : "", (unsigned)entry->size);
}

static void
assert_list(const char *prefix, bool fold, const char *expected)
{
	struct buffer buffer;
	struct error error;

	buffer_init(&buffer, 1 << 20);
	assert_ok(backend_list(store, prefix, fold, add_line, &buffer, &error),
	    error);
	assert_string_equal(buffer_text(&buffer), expected);
	buffer_free(&buffer);
}

/* How many half-written objects lie around. */
static void
assert_no_temporary(void)
{
	/* rmdir works on an empty folder only. */
	assert_int_equal(rmdir(path_of(".temporary")), 0);
}

static void
test_objects(void **state)
{
	(void)state;
	assert_absent("ckptsync.json");
	put("ckptsync.json", "{}");
	put(TERM "claim", "");
	put(TERM "open.json", "open");
	assert_object("ckptsync.json", "{}");
	assert_object(TERM "claim", "");
	assert_absent(TERM "close.json");
	assert_absent(TERM "claim/x");
	assert_absent("node-0007/x");
	assert_no_temporary();
	assert_true(store->local);
	assert_false(store->weak);
}

static void
test_chunks_are_spread(void **state)
{
	struct stat status;

	(void)state;
	put(TERM "chunks/0000000001/" HEX, "bytes");
	assert_int_equal(stat(path_of(TERM "chunks/0000000001/ab/" HEX),
	    &status), 0);
	assert_int_equal(status.st_size, 5);
	assert_object(TERM "chunks/0000000001/" HEX, "bytes");
	assert_list(TERM "chunks/", false, TERM "chunks/0000000001/" HEX
	    ":5\n");
	assert_list(TERM "chunks/0000000001/ab01", false,
	    TERM "chunks/0000000001/" HEX ":5\n");
	assert_list(TERM "chunks/0000000001/ac", false, "");
}

static void
test_lists_are_in_order(void **state)
{
	(void)state;
	put("a/x", "1");
	put("a-b", "12");
	put("a/y/z", "123");
	put("a0", "");
	put("b", "1");
	/* '-' sorts before '/', and '/' before '0'. */
	assert_list("", false, "a-b:2\na/x:1\na/y/z:3\na0:0\nb:1\n");
	assert_list("", true, "a-b:2\na/*:0\na0:0\nb:1\n");
	assert_list("a/", true, "a/x:1\na/y/*:0\n");
	assert_list("a", false, "a-b:2\na/x:1\na/y/z:3\na0:0\n");
	assert_list("a", true, "a-b:2\na/*:0\na0:0\n");
	assert_list("c/", true, "");
	assert_list("b/", false, "");
}

static void
test_what_is_no_object_is_not_listed(void **state)
{
	(void)state;
	put("a/x", "1");
	assert_int_equal(mkdir(path_of("empty"), 0777), 0);
	assert_int_equal(mkdir(path_of("empty/more"), 0777), 0);
	kit_write_file(path_of(".temporary/1234"), "half", 4);
	assert_int_equal(symlink("x", path_of("a/link")), 0);
	assert_list("", false, "a/x:1\n");
	assert_list("", true, "a/*:0\n");
}

static int
stop(void *context, const struct backend_entry *entry, struct error *error)
{
	unsigned *visits = context;

	++*visits;
	return error_set(error, ERROR_FAILED, CAUSE_LIMIT, entry->key, "stop");
}

static void
test_visit_stops(void **state)
{
	unsigned visits = 0;
	struct error error;

	(void)state;
	put("a", "1");
	put("b", "1");
	assert_int_equal(backend_list(store, "", false, stop, &visits, &error),
	    -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	assert_int_equal(visits, 1);
}

static void
test_written_once(void **state)
{
	struct error error;

	(void)state;
	put("a", "one");
	put("a", "one");
	assert_int_equal(backend_put(store, "a", "two", 3, 0, &error), -1);
	assert_int_equal(error.cause, CAUSE_EXISTS);
	assert_int_equal(backend_put(store, "a", "longer", 6, 0, &error), -1);
	assert_int_equal(error.cause, CAUSE_EXISTS);
	assert_object("a", "one");
	put("b/c", "1");
	assert_int_equal(backend_put(store, "b", "x", 1, 0, &error), -1);
	assert_int_equal(error.cause, CAUSE_EXISTS);
	assert_no_temporary();
}

/* A request that a test waits for. */
struct call {
	struct backend_request request;
	struct source_memory memory;
	struct source body;
	struct buffer buffer;
	pthread_mutex_t mutex;
	pthread_cond_t ended;
	unsigned done;
	int (*hook)(struct call *call);	/* in body and sink */
};

static void
on_done(struct backend_request *request)
{
	struct call *call = request->context;

	pthread_mutex_lock(&call->mutex);
	call->done++;
	pthread_cond_signal(&call->ended);
	pthread_mutex_unlock(&call->mutex);
}

static int
on_sink(void *context, const void *data, size_t length, struct error *error)
{
	struct call *call = context;

	if (call->hook != NULL && call->hook(call) != 0)
		return error_set(error, ERROR_FAILED, CAUSE_NO_SPACE, NULL,
		    "no more");
	return buffer_append(&call->buffer, data, length, error);
}

static int
on_read(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	struct call *call = context;

	if (call->hook != NULL && call->hook(call) != 0)
		return error_set(error, ERROR_FAILED, CAUSE_CHANGED, NULL,
		    "became shorter");
	memcpy(data, (const char *)call->memory.data + offset, length);
	return 0;
}

static void
call_init(struct call *call, enum backend_operation operation,
    const char *key, const void *data, size_t length)
{
	memset(call, 0, sizeof(*call));
	pthread_mutex_init(&call->mutex, NULL);
	pthread_cond_init(&call->ended, NULL);
	buffer_init(&call->buffer, 64 << 20);
	call->memory = (struct source_memory){ data, length };
	call->body = (struct source){ .size = length, .read_at = on_read,
		.context = call, .name = "memory" };
	call->request = (struct backend_request){ .operation = operation,
		.key = key, .body = &call->body, .length = length,
		.sink = on_sink, .done = on_done, .context = call };
	if (data != NULL)
		sha256_of(data, length, call->request.sha256);
}

static void
call_wait(struct call *call)
{
	pthread_mutex_lock(&call->mutex);
	while (call->done == 0)
		pthread_cond_wait(&call->ended, &call->mutex);
	pthread_mutex_unlock(&call->mutex);
}

static void
call_free(struct call *call)
{
	assert_int_equal(call->done, 1);
	buffer_free(&call->buffer);
	pthread_cond_destroy(&call->ended);
	pthread_mutex_destroy(&call->mutex);
}

static void
test_wrong_hash_stores_nothing(void **state)
{
	struct call call;

	(void)state;
	call_init(&call, BACKEND_PUT, "a/b", "bytes", 5);
	call.request.sha256[7] ^= 1;
	backend_submit(store, &call.request);
	call_wait(&call);
	assert_int_equal(call.request.error.cause, CAUSE_REFUSED);
	assert_absent("a/b");
	assert_list("", false, "");
	assert_no_temporary();
	call_free(&call);
}

static int
fail_at_second(struct call *call)
{
	return call->request.attempts++ > 1 ? -1 : 0;
}

static void
test_body_and_sink_that_fail(void **state)
{
	size_t length = 3 << 20;
	char *data = malloc(length);
	struct call call;

	(void)state;
	assert_non_null(data);
	kit_random(data, length, 1);
	call_init(&call, BACKEND_PUT, "a", data, length);
	call.hook = fail_at_second;
	backend_submit(store, &call.request);
	call_wait(&call);
	assert_int_equal(call.request.error.cause, CAUSE_CHANGED);
	assert_no_temporary();
	call_free(&call);
	call_init(&call, BACKEND_PUT, "a", data, length);
	backend_submit(store, &call.request);
	call_wait(&call);
	assert_int_equal(call.request.error.class, ERROR_NONE);
	call_free(&call);
	call_init(&call, BACKEND_GET, "a", NULL, 0);
	call.hook = fail_at_second;
	backend_submit(store, &call.request);
	call_wait(&call);
	assert_int_equal(call.request.error.cause, CAUSE_NO_SPACE);
	call_free(&call);
	free(data);
}

static void
test_ranges(void **state)
{
	size_t length = (1 << 20) + 17;
	char *data = malloc(length);
	struct call call;

	(void)state;
	assert_non_null(data);
	kit_random(data, length, 2);
	call_init(&call, BACKEND_PUT, "a", data, length);
	backend_submit(store, &call.request);
	call_wait(&call);
	call_free(&call);
	call_init(&call, BACKEND_GET, "a", NULL, 0);
	call.request.offset = 1000;
	call.request.length = 700000;
	backend_submit(store, &call.request);
	call_wait(&call);
	assert_int_equal(call.request.error.class, ERROR_NONE);
	assert_int_equal(call.request.size, length);
	assert_int_equal(call.buffer.length, 700000);
	assert_memory_equal(call.buffer.data, data + 1000, 700000);
	call_free(&call);
	call_init(&call, BACKEND_GET, "a", NULL, 0);
	call.request.offset = length - 3;
	backend_submit(store, &call.request);
	call_wait(&call);
	assert_int_equal(call.buffer.length, 3);
	call_free(&call);
	call_init(&call, BACKEND_GET, "a", NULL, 0);
	call.request.offset = length - 3;
	call.request.length = 4;
	backend_submit(store, &call.request);
	call_wait(&call);
	assert_int_equal(call.request.error.class, ERROR_DAMAGED);
	call_free(&call);
	free(data);
}

static void
test_deletes(void **state)
{
	static const char *const keys[] = { "a/b/c", "a/b/d", "a/none",
		"../evil", "e" };
	struct call call;
	struct error error;
	struct stat status;

	(void)state;
	put("a/b/c", "1");
	put("a/b/d", "1");
	put("e", "1");
	call_init(&call, BACKEND_DELETE, "a/b/x", NULL, 0);
	backend_submit(store, &call.request);
	call_wait(&call);
	assert_int_equal(call.request.error.class, ERROR_NONE);
	call_free(&call);
	/* One that cannot be a key fails, the others are deleted. */
	assert_int_equal(backend_remove(store, keys, 5, &error), -1);
	assert_string_equal(error.object, "../evil");
	assert_list("", false, "");
	/* No empty folders stay. */
	assert_int_equal(stat(path_of("a"), &status), -1);
	put("a/b/c", "again");
	assert_object("a/b/c", "again");
	assert_ok(backend_remove(store, keys, 3, &error), error);
}

static void
test_keys_that_cannot_be_files(void **state)
{
	static const char *const keys[] = { "", "/a", "a/", "a//b", "../a",
		"a/../b", ".temporary/x", "a/.b", "A", "a b", "a\nb", "a_b" };
	struct error error;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		assert_int_equal(backend_put(store, keys[i], "x", 1, 0,
		    &error), -1);
		assert_int_equal(error.class, ERROR_FAILED);
		assert_non_null(strstr(error.message, "not a key"));
	}
	assert_list("", false, "");
}

static void
test_many_at_once(void **state)
{
	enum { COUNT = 300, SIZE = 5000 };
	struct call *calls = calloc(COUNT, sizeof(*calls));
	char (*keys)[KEY_SIZE] = calloc(COUNT, KEY_SIZE);
	char *data = malloc(COUNT * SIZE);
	const struct term term = { 0, 1, 2 };
	uint8_t digest[SHA256_SIZE];
	struct buffer listing;
	struct error error;
	unsigned i, lines = 0;

	(void)state;
	assert_non_null(calls);
	assert_non_null(keys);
	assert_non_null(data);
	for (i = 0; i < COUNT; i++) {
		kit_random(data + i * SIZE, SIZE, i);
		sha256_of(data + i * SIZE, SIZE, digest);
		call_init(&calls[i], BACKEND_PUT, key_chunk(&term, 1 + i / 100,
		    digest, keys[i]), data + i * SIZE, SIZE);
		backend_submit(store, &calls[i].request);
	}
	for (i = 0; i < COUNT; i++) {
		call_wait(&calls[i]);
		assert_int_equal(calls[i].request.error.class, ERROR_NONE);
		call_free(&calls[i]);
	}
	buffer_init(&listing, 1 << 20);
	assert_ok(backend_list(store, "", false, add_line, &listing, &error),
	    error);
	for (i = 0; i < listing.length; i++)
		lines += listing.data[i] == '\n';
	assert_int_equal(lines, COUNT);
	buffer_free(&listing);
	assert_no_temporary();
	free(data);
	free(keys);
	free(calls);
}

static void
test_deadline_and_rate(void **state)
{
	size_t length = 2 << 20;
	char *data = calloc(1, length);
	struct error error;
	struct rate *rate = rate_new(1000, &error);
	struct call call;

	(void)state;
	assert_non_null(data);
	assert_non_null(rate);
	call_init(&call, BACKEND_PUT, "a", data, length);
	call.request.deadline = clock_monotonic() + 100 * CLOCK_MILLISECOND;
	call.request.rate = rate;
	backend_submit(store, &call.request);
	call_wait(&call);
	assert_int_equal(call.request.error.cause, CAUSE_UNREACHABLE);
	call_free(&call);
	/* Cancelled while it waits for the rate. */
	call_init(&call, BACKEND_PUT, "a", data, length);
	call.request.rate = rate;
	backend_submit(store, &call.request);
	backend_cancel(store, &call.request);
	call_wait(&call);
	assert_int_equal(call.request.error.cause, CAUSE_CANCELLED);
	call_free(&call);
	assert_absent("a");
	assert_no_temporary();
	rate_free(rate);
	free(data);
}

static void
test_free_cancels(void **state)
{
	enum { COUNT = 20 };
	size_t length = 2 << 20;
	char *data = calloc(1, length), names[COUNT][8];
	struct error error;
	struct rate *rate = rate_new(1, &error);
	struct call calls[COUNT];
	unsigned i;

	(void)state;
	assert_non_null(data);
	assert_non_null(rate);
	for (i = 0; i < COUNT; i++) {
		snprintf(names[i], sizeof(names[i]), "k%u", i);
		call_init(&calls[i], BACKEND_PUT, names[i], data, length);
		calls[i].request.rate = rate;
		backend_submit(store, &calls[i].request);
	}
	backend_cancel(store, &calls[COUNT - 1].request);
	call_wait(&calls[COUNT - 1]);
	backend_free(store);
	for (i = 0; i < COUNT; i++) {
		assert_int_equal(calls[i].request.error.cause,
		    CAUSE_CANCELLED);
		call_free(&calls[i]);
	}
	store = backend_file_open(folder, false, &error);
	assert_non_null(store);
	assert_list("", false, "");
	rate_free(rate);
	free(data);
}

static void
test_old_leftovers_are_swept(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1000 },
		{ .tv_sec = 1000 } };
	struct stat status;
	int held;

	(void)state;
	kit_write_file(path_of(".temporary/old"), "x", 1);
	kit_write_file(path_of(".temporary/new"), "x", 1);
	kit_write_file(path_of(".temporary/held"), "x", 1);
	assert_int_equal(utimensat(AT_FDCWD, path_of(".temporary/old"), old,
	    0), 0);
	assert_int_equal(utimensat(AT_FDCWD, path_of(".temporary/held"), old,
	    0), 0);
	held = open(path_of(".temporary/held"), O_RDWR);
	assert_true(held >= 0);
	assert_int_equal(flock(held, LOCK_EX), 0);
	put("a", "1");
	put("b", "1");
	assert_int_equal(stat(path_of(".temporary/old"), &status), -1);
	assert_int_equal(stat(path_of(".temporary/new"), &status), 0);
	assert_int_equal(stat(path_of(".temporary/held"), &status), 0);
	close(held);
}

static void
test_open(void **state)
{
	struct backend *other;
	struct error error;
	char path[1024];

	(void)state;
	snprintf(path, sizeof(path), "%s", path_of("x/y/z"));
	assert_null(backend_file_open(path, false, &error));
	assert_int_equal(error.class, ERROR_NOTHING);
	assert_int_equal(error.cause, CAUSE_NOT_FOUND);
	other = backend_file_open(path, true, &error);
	assert_non_null(other);
	assert_non_null(strstr(other->name, "file:///"));
	backend_free(other);
	backend_free(NULL);
	kit_write_file(path_of("file"), "x", 1);
	assert_null(backend_file_open(path_of("file"), true, &error));
	assert_int_equal(error.class, ERROR_FAILED);
}

static void
test_folder_that_goes_away(void **state)
{
	struct error error;
	struct backend *other;
	struct buffer buffer;
	char path[1024];

	(void)state;
	snprintf(path, sizeof(path), "%s", path_of("gone"));
	other = backend_file_open(path, true, &error);
	assert_non_null(other);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(backend_put(other, "a", "x", 1, 0, &error), -1);
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	/* That is no answer to whether something is there. */
	assert_int_equal(backend_list(other, "node-0000/", true, stop, NULL,
	    &error), -1);
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	buffer_init(&buffer, 16);
	assert_int_equal(backend_get(other, "a", &buffer, 0, &error), -1);
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	buffer_free(&buffer);
	backend_free(other);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(test_objects),
		FILE_TEST(test_chunks_are_spread),
		FILE_TEST(test_lists_are_in_order),
		FILE_TEST(test_what_is_no_object_is_not_listed),
		FILE_TEST(test_visit_stops),
		FILE_TEST(test_written_once),
		FILE_TEST(test_wrong_hash_stores_nothing),
		FILE_TEST(test_body_and_sink_that_fail),
		FILE_TEST(test_ranges),
		FILE_TEST(test_deletes),
		FILE_TEST(test_keys_that_cannot_be_files),
		FILE_TEST(test_many_at_once),
		FILE_TEST(test_deadline_and_rate),
		FILE_TEST(test_free_cancels),
		FILE_TEST(test_old_leftovers_are_swept),
		FILE_TEST(test_open),
		FILE_TEST(test_folder_that_goes_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
