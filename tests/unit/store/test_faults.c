/*
 * The writer on a store that loses, delays and repeats requests, beside others
 * that start, die and take over.
 */
#include "kit/kit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/backend.h"
#include "store/truth.h"
#include "unit/store/bench.h"
#include "unit/store/delaying.h"
#include "unit/store/load.h"

static void
test_delete_that_fails_is_sent_again(void **state)
{
	struct writer *writer = bench_take_over("one");
	struct error error;
	uint64_t step;

	(void)state;
	for (step = 1; step <= 3; step++)
		bench_commit(writer, step);
	assert_int_equal(writer_delete_due(writer, &error), 0);
	clock_test_turn(BENCH_DELAY);
	bench_next(DELAYING_DELETE, "/chunks/", DELAYING_LATER, NULL);
	assert_int_equal(writer_delete_due(writer, &error), -1);
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	assert_int_equal(bench_count_keys("/chunks/"), 6);
	assert_int_equal(writer_next_delete(writer),
	    clock_monotonic() + 30 * CLOCK_SECOND);
	bench_delete_all(writer);
	assert_int_equal(bench_count_keys("/chunks/"), 5);
	delaying_release(bench_store, 0);
	assert_int_equal(bench_count_keys("/chunks/"), 5);
	bench_assert_steps("3 2");
	writer_free(writer);
}

static void
test_manifest_without_answer(void **state)
{
	const struct load load = bench_at_step(2);
	const struct writer_directory nothing = { 0 };
	struct writer *writer = bench_take_over("one");
	struct manifest *manifest;
	struct error error;
	uint64_t attempt;
	size_t sent;

	(void)state;
	bench_commit(writer, 1);
	attempt = writer_begin(writer);
	assert_ok(load_send(bench_store, writer, attempt, &load, SIZE_MAX, &sent,
	    &error), error);
	manifest = load_manifest(writer, attempt, &load);
	bench_next(DELAYING_PUT, "/checkpoints/", DELAYING_UNANSWERED, NULL);
	assert_int_equal(writer_commit(writer, attempt, manifest, &nothing,
	    CLOCK_NEVER, &error), -1);
	assert_int_equal(error.class, ERROR_NOT_DURABLE);
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	/* The same bytes once more, although the clock went on. */
	clock_test_turn(CLOCK_SECOND);
	bench_next(DELAYING_PUT, "/checkpoints/", DELAYING_LATER, NULL);
	assert_int_equal(writer_commit(writer, attempt, manifest, &nothing,
	    CLOCK_NEVER, &error), -1);
	assert_ok(writer_commit(writer, attempt, manifest, &nothing,
	    CLOCK_NEVER, &error), error);
	assert_int_equal(bench_count_keys("/checkpoints/"), 2);
	delaying_release(bench_store, 0);
	assert_int_equal(bench_count_keys("/checkpoints/"), 2);
	bench_assert_steps("2 1");
	writer_free(writer);
}

static void
test_given_up_manifest_stays_whole(void **state)
{
	struct writer *writer = bench_take_over("one");
	struct truth *truth;
	struct error error;
	uint64_t step;
	size_t i, length;

	(void)state;
	for (step = 1; step <= 3; step++)
		bench_commit(writer, step);
	/* Step 1 again: from chunks whose DELETE is planned. */
	bench_next(DELAYING_PUT, "/checkpoints/", DELAYING_UNANSWERED, NULL);
	assert_int_equal(bench_commit_step(writer, 1, CLOCK_NEVER, &error), -1);
	assert_int_equal(error.class, ERROR_NOT_DURABLE);
	clock_test_turn(2 * BENCH_DELAY);
	assert_int_equal(writer_delete_due(writer, &error), 1);
	truth = bench_read_truth();
	assert_int_equal(truth->valid[0]->step, 1);
	assert_int_equal(truth->count, 2);
	for (i = 0; i < 3; i++)
		assert_non_null(delaying_get(bench_store,
		    truth->valid[0]->chunks[i].key, &length));
	truth_free(truth);
	bench_commit(writer, 4);
	bench_delete_all(writer);
	bench_assert_steps("4 3");
	assert_int_equal(bench_count_keys("/checkpoints/"), 2);
	assert_int_equal(bench_count_keys("/chunks/"), 5);
	writer_free(writer);
}

static void
test_manifest_comes_late(void **state)
{
	struct writer *writer = bench_take_over("one");
	struct error error;

	(void)state;
	bench_commit(writer, 1);
	bench_next(DELAYING_PUT, "/checkpoints/", DELAYING_LATER, NULL);
	assert_int_equal(bench_commit_step(writer, 2, CLOCK_NEVER, &error), -1);
	bench_commit(writer, 3);
	bench_delete_all(writer);
	delaying_release(bench_store, 0);
	bench_assert_steps("3 1");
	writer_free(writer);
	/* The next term finds what came too late. */
	writer = bench_take_over("two");
	bench_commit(writer, 4);
	bench_delete_all(writer);
	bench_assert_steps("4 3");
	assert_int_equal(bench_count_keys("/checkpoints/"), 2);
	writer_free(writer);
}

static void
test_deadline_waits_and_does_not_claim(void **state)
{
	const struct term dead = { .number = 2, .random = 7 };
	struct writer *writer = bench_take_over("one");
	struct error error;
	char key[KEY_SIZE];
	uint64_t began;

	(void)state;
	delaying_set(bench_store, key_term_object(&dead, "claim", key), "{}", 2);
	began = clock_monotonic();
	bench_turn_start();
	assert_int_equal(bench_commit_step(writer, 1, began + 90 * CLOCK_SECOND,
	    &error), -1);
	bench_turn_stop();
	assert_true(clock_monotonic() >= began + 90 * CLOCK_SECOND);
	assert_int_equal(error.class, ERROR_NOT_DURABLE);
	assert_non_null(strstr(error.message, "takeover pending"));
	assert_int_equal(writer_term(writer).number, 1);
	assert_int_equal(bench_count_keys("/claim"), 2);
	writer_free(writer);
}

/* Sets the deadline once the commit has waited for a while. */
static void *
hurry_later(void *context)
{
	struct writer *writer = context;

	clock_sleep(10 * CLOCK_SECOND);
	writer_hurry(writer, clock_monotonic() + 100 * CLOCK_SECOND);
	return NULL;
}

static void
test_deadline_that_begins_while_a_commit_waits(void **state)
{
	const struct term dead = { .number = 2, .random = 7 };
	struct writer *writer = bench_take_over("one");
	struct error error;
	pthread_t thread;
	char key[KEY_SIZE];
	uint64_t began;

	(void)state;
	delaying_set(bench_store, key_term_object(&dead, "claim", key), "{}", 2);
	began = clock_monotonic();
	assert_int_equal(pthread_create(&thread, NULL, hurry_later, writer), 0);
	bench_turn_start();
	assert_int_equal(bench_commit_step(writer, 1, CLOCK_NEVER, &error), -1);
	bench_turn_stop();
	pthread_join(thread, NULL);
	/* Longer than a dead starter is waited for: nothing is claimed. */
	assert_true(clock_monotonic() >= began + 100 * CLOCK_SECOND);
	assert_int_equal(error.class, ERROR_NOT_DURABLE);
	assert_non_null(strstr(error.message, "takeover pending"));
	assert_int_equal(writer_term(writer).number, 1);
	/* A hurry that is over is over. */
	writer_hurry(writer, 0);
	bench_turn_start();
	assert_ok(bench_commit_step(writer, 2, CLOCK_NEVER, &error), error);
	bench_turn_stop();
	assert_int_equal(writer_term(writer).number, 3);
	writer_free(writer);
}

static void
test_dead_starter(void **state)
{
	const struct term dead = { .number = 2, .random = 7 };
	struct writer *writer = bench_take_over("one");
	struct error error;
	char key[KEY_SIZE];
	uint64_t began;
	size_t i;

	(void)state;
	bench_commit(writer, 5);
	delaying_set(bench_store, key_term_object(&dead, "claim", key), "{}", 2);
	began = clock_monotonic();
	bench_turn_start();
	assert_ok(bench_commit_step(writer, 6, CLOCK_NEVER, &error), error);
	bench_turn_stop();
	assert_true(clock_monotonic() >= began + 60 * CLOCK_SECOND);
	assert_int_equal(writer_term(writer).number, 3);
	bench_assert_steps("6 5");
	/* Everything is known as before: only two chunks are new. */
	i = bench_plan.requests[DELAYING_PUT];
	bench_commit(writer, 7);
	assert_int_equal(bench_plan.requests[DELAYING_PUT], i + 3);
	bench_delete_all(writer);
	bench_assert_steps("7 6");
	/* The dead starter's claim is swept; term 1 holds step 6 and chunks. */
	assert_int_equal(bench_count_keys("/claim"), 2);
	writer_free(writer);
}

static void
test_dead_starter_beside_another_upload(void **state)
{
	const struct term dead = { .number = 2, .random = 7 };
	const struct load second = bench_at_step(8);
	struct writer *writer = bench_take_over("one");
	struct manifest *manifest;
	struct error error;
	char key[KEY_SIZE];
	uint64_t attempt;
	size_t sent;

	(void)state;
	bench_commit(writer, 5);
	attempt = writer_begin(writer);
	assert_ok(load_send(bench_store, writer, attempt, &second, 2, &sent, &error),
	    error);
	assert_int_equal(sent, 1);
	delaying_set(bench_store, key_term_object(&dead, "claim", key), "{}", 2);
	bench_turn_start();
	assert_ok(bench_commit_step(writer, 6, CLOCK_NEVER, &error), error);
	bench_turn_stop();
	bench_commit(writer, 7);
	bench_delete_all(writer);
	assert_ok(load_send(bench_store, writer, attempt, &second, 3, &sent, &error),
	    error);
	assert_int_equal(sent, 1);
	clock_test_turn(BENCH_DELAY);
	assert_int_equal(writer_delete_due(writer, &error), 0);
	manifest = load_manifest(writer, attempt, &second);
	assert_ok(writer_commit(writer, attempt, manifest,
	    &(struct writer_directory){ 0 }, CLOCK_NEVER, &error), error);
	bench_delete_all(writer);
	bench_assert_steps("8 7");
	assert_int_equal(bench_count_keys("/chunks/"), 5);
	writer_free(writer);
}

static void
test_own_open_comes_late(void **state)
{
	const struct term dead = { .number = 2, .random = 7 };
	struct writer *writer = bench_take_over("one");
	struct error error;
	char key[KEY_SIZE];

	(void)state;
	bench_commit(writer, 5);
	delaying_set(bench_store, key_term_object(&dead, "claim", key), "{}", 2);
	bench_next(DELAYING_PUT, "open.json", DELAYING_LATER, NULL);
	bench_turn_start();
	assert_int_equal(bench_commit_step(writer, 6, CLOCK_NEVER, &error), -1);
	bench_turn_stop();
	assert_int_equal(error.class, ERROR_NOT_DURABLE);
	delaying_release(bench_store, 0);
	assert_ok(writer_check(writer, &error), error);
	bench_turn_start();
	assert_ok(bench_commit_step(writer, 7, CLOCK_NEVER, &error), error);
	bench_turn_stop();
	assert_int_equal(writer_term(writer).number, 4);
	bench_assert_steps("7 6");
	bench_commit(writer, 8);
	bench_delete_all(writer);
	bench_assert_steps("8 7");
	writer_free(writer);
}

static void
test_superseded_but_adopted(void **state)
{
	struct writer *writer = bench_take_over("one");
	struct error error;

	(void)state;
	/* While we ask whether we still count, another one takes over. */
	bench_commit(writer, 1);
	bench_next(DELAYING_LIST, "node-0000/", DELAYING_ANSWERED, bench_take_over_other);
	assert_int_equal(bench_commit_step(writer, 2, CLOCK_NEVER, &error), -1);
	assert_int_equal(error.class, ERROR_SUPERSEDED);
	assert_non_null(strstr(error.message, "last.pt is durable, but"));
	assert_non_null(strstr(error.message, "other, 2026-11-30T"));
	bench_assert_steps("2 1");
	assert_int_equal(bench_commit_step(writer, 3, CLOCK_NEVER, &error), -1);
	assert_int_equal(error.class, ERROR_SUPERSEDED);
	writer_free(writer);
	bench_commit(bench_other, 3);
	bench_delete_all(bench_other);
	bench_assert_steps("3 2");
}

static void
open_late(void)
{
	delaying_release(bench_store, 0);
}

static void
test_claim_is_opened_while_we_wait(void **state)
{
	struct writer *writer = bench_take_over("one");
	struct error error;

	(void)state;
	bench_commit(writer, 1);
	bench_next(DELAYING_PUT, "open.json", DELAYING_LATER, NULL);
	assert_null(load_take_over(bench_store, BENCH_KEEP, BENCH_DELAY, "slow", &error));
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	bench_next(DELAYING_LIST, "node-0000/", DELAYING_ANSWERED, open_late);
	bench_plan.skip = 3;
	bench_turn_start();
	assert_int_equal(bench_commit_step(writer, 2, CLOCK_NEVER, &error), -1);
	bench_turn_stop();
	assert_int_equal(error.class, ERROR_SUPERSEDED);
	assert_non_null(strstr(error.message, "last.pt is not durable"));
	assert_non_null(strstr(error.message, "slow, "));
	bench_assert_steps("1");
	writer_free(writer);
}

static void
test_takeover_unreachable_comes_back(void **state)
{
	static const char *const parts[] = { "claim", "open.json" };
	struct writer *writer;
	struct error error;
	size_t i;

	(void)state;
	bench_next(DELAYING_LIST, "", DELAYING_NEVER, NULL);
	assert_null(load_take_over(bench_store, BENCH_KEEP, BENCH_DELAY, "one", &error));
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	assert_int_equal(delaying_count(bench_store), 0);
	for (i = 0; i < 2; i++) {
		bench_next(DELAYING_PUT, parts[i], DELAYING_TWICE, NULL);
		bench_plan.fate = i == 0 ? DELAYING_UNANSWERED : DELAYING_NEVER;
		assert_null(load_take_over(bench_store, BENCH_KEEP, BENCH_DELAY, "one", &error));
		assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	}
	writer = bench_take_over("one");
	assert_int_equal(writer_term(writer).number, 3);
	bench_commit(writer, 1);
	bench_delete_all(writer);
	assert_int_equal(bench_count_keys("/claim"), 1);
	writer_free(writer);
}

static void
claim_the_same(void)
{
	const struct term same = { .number = 1, .random = 9 };
	char key[KEY_SIZE];

	delaying_set(bench_store, key_term_object(&same, "claim", key), "{}", 2);
}

static void
test_two_start_at_once(void **state)
{
	struct writer *writer;

	(void)state;
	bench_next(DELAYING_PUT, "claim", DELAYING_ANSWERED, claim_the_same);
	bench_turn_start();
	writer = bench_take_over("one");
	bench_turn_stop();
	assert_int_equal(writer_term(writer).number, 2);
	writer_free(writer);
}

/* Steps 1 and 2 are valid; the key of the manifest of one of them. */
static void
commit_two(size_t index, char key[KEY_SIZE])
{
	struct writer *writer = bench_take_over("one");
	struct truth *truth;

	bench_commit(writer, 1);
	bench_commit(writer, 2);
	truth = bench_read_truth();
	snprintf(key, KEY_SIZE, "%s", truth->valid[index]->key);
	truth_free(truth);
	writer_free(writer);
}

/* An old checkpoint is lost: the others go on, and nothing old is deleted. */
static void
take_over_without(const char *key, const void *data, size_t length)
{
	struct writer *writer;
	struct error error;
	size_t chunks, left;

	chunks = bench_count_keys("term-00000001");
	delaying_set(bench_store, key, data, length);
	left = chunks - (data == NULL);
	bench_turn_start();
	writer = load_take_over(bench_store, BENCH_KEEP, BENCH_DELAY, "two", &error);
	bench_turn_stop();
	assert_non_null(writer);
	bench_assert_steps("2");
	bench_commit(writer, 3);
	bench_commit(writer, 4);
	bench_delete_all(writer);
	bench_assert_steps("4 3");
	assert_int_equal(bench_count_keys("term-00000001"), left);
	bench_commit(writer, 5);
	bench_delete_all(writer);
	assert_int_equal(bench_count_keys("term-00000001"), left);
	/* Its own are deleted as ever. */
	assert_int_equal(bench_count_keys("/checkpoints/"), 4 - (data == NULL));
	writer_free(writer);
	/* The next agent names nothing that is lost, and sweeps. */
	writer = bench_take_over("three");
	bench_commit(writer, 6);
	bench_delete_all(writer);
	assert_true(bench_count_keys("term-00000001") < left);
	writer_free(writer);
}

static void
test_named_manifest_is_gone(void **state)
{
	char key[KEY_SIZE];

	(void)state;
	commit_two(1, key);
	take_over_without(key, NULL, 0);
}

static void
test_named_manifest_is_damaged(void **state)
{
	char key[KEY_SIZE];

	(void)state;
	commit_two(1, key);
	take_over_without(key, "{}", 2);
}

/* Nobody knows what is valid: nothing is claimed, and it is said what to do. */
static void
refuse_without(const char *key)
{
	struct writer *writer;
	struct error error;

	delaying_set(bench_store, key, "{}", 2);
	bench_turn_start();
	writer = load_take_over(bench_store, BENCH_KEEP, BENCH_DELAY, "two", &error);
	bench_turn_stop();
	assert_null(writer);
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_string_equal(error.object, key);
	assert_non_null(strstr(error.cure, "restore --fallback"));
	assert_non_null(strstr(error.cure, "new remote"));
	assert_int_equal(bench_count_keys("/claim"), 1);
}

static void
test_open_is_damaged(void **state)
{
	char key[KEY_SIZE];
	struct term term;
	struct writer *writer = bench_take_over("one");

	(void)state;
	bench_commit(writer, 1);
	term = writer_term(writer);
	writer_free(writer);
	refuse_without(key_term_object(&term, "open.json", key));
}

static void
test_newest_manifest_is_damaged(void **state)
{
	char key[KEY_SIZE];

	(void)state;
	commit_two(0, key);
	refuse_without(key);
}
#define WRITER_TEST(name) \
	cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WRITER_TEST(test_delete_that_fails_is_sent_again),
		WRITER_TEST(test_manifest_without_answer),
		WRITER_TEST(test_given_up_manifest_stays_whole),
		WRITER_TEST(test_manifest_comes_late),
		WRITER_TEST(test_deadline_waits_and_does_not_claim),
		WRITER_TEST(test_deadline_that_begins_while_a_commit_waits),
		WRITER_TEST(test_dead_starter),
		WRITER_TEST(test_dead_starter_beside_another_upload),
		WRITER_TEST(test_own_open_comes_late),
		WRITER_TEST(test_superseded_but_adopted),
		WRITER_TEST(test_claim_is_opened_while_we_wait),
		WRITER_TEST(test_takeover_unreachable_comes_back),
		WRITER_TEST(test_two_start_at_once),
		WRITER_TEST(test_named_manifest_is_gone),
		WRITER_TEST(test_named_manifest_is_damaged),
		WRITER_TEST(test_open_is_damaged),
		WRITER_TEST(test_newest_manifest_is_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
