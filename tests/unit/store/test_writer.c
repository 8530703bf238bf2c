/*
 * The writer: what it keeps, deletes, finds again and refuses.
 */
#include "kit/kit.h"

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
test_deletes_wait(void **state)
{
	struct writer *writer = bench_take_over("one");
	struct error error;
	uint64_t step;

	(void)state;
	for (step = 1; step <= 3; step++)
		bench_commit(writer, step);
	bench_assert_steps("3 2");
	/* A sweep that finds nothing, and then nothing for 15 minutes. */
	assert_int_equal(writer_delete_due(writer, &error), 0);
	assert_int_equal(writer_next_delete(writer),
	    clock_monotonic() + BENCH_DELAY);
	clock_test_turn(BENCH_DELAY - 1);
	assert_int_equal(writer_delete_due(writer, &error), 0);
	assert_int_equal(bench_count_keys("/chunks/"), 7);
	clock_test_turn(1);
	/* Step 1: its manifest and two chunks; one is used by all. */
	assert_int_equal(writer_delete_due(writer, &error), 3);
	assert_int_equal(writer_next_delete(writer), CLOCK_NEVER);
	assert_int_equal(bench_count_keys("/chunks/"), 5);
	assert_int_equal(bench_count_keys("/checkpoints/"), 2);
	writer_free(writer);
}

static void
test_dropped_chunk_is_used_again(void **state)
{
	struct load load = bench_at_step(1);
	struct writer *writer = bench_take_over("one");
	struct error error;
	uint64_t step;
	size_t sent;

	(void)state;
	for (step = 1; step <= 3; step++)
		bench_commit(writer, step);
	/* Its DELETE is planned, but not sent: G2 allows it. */
	assert_ok(load_commit(bench_store, writer, &load, NULL, CLOCK_NEVER, &sent,
	    &error), error);
	assert_int_equal(sent, 0);
	bench_delete_all(writer);
	bench_assert_steps("1 3");
	assert_int_equal(bench_count_keys("/chunks/"), 5);
	/* Step 2 is gone for good: its chunks are sent under new keys. */
	load = bench_at_step(2);
	assert_ok(load_commit(bench_store, writer, &load, NULL, CLOCK_NEVER, &sent,
	    &error), error);
	assert_int_equal(sent, 2);
	writer_free(writer);
}

static void
test_upload_in_flight_holds_its_chunks(void **state)
{
	const struct load load = bench_at_step(1);
	struct writer *writer = bench_take_over("one");
	struct manifest *manifest;
	struct error error;
	uint64_t step, attempt;
	size_t sent;

	(void)state;
	for (step = 1; step <= 3; step++)
		bench_commit(writer, step);
	attempt = writer_begin(writer);
	assert_ok(load_send(bench_store, writer, attempt, &load, SIZE_MAX, &sent,
	    &error), error);
	assert_int_equal(sent, 0);
	clock_test_turn(2 * BENCH_DELAY);
	assert_int_equal(writer_delete_due(writer, &error), 1);
	assert_int_equal(bench_count_keys("/chunks/"), 7);
	manifest = load_manifest(writer, attempt, &load);
	assert_ok(writer_commit(writer, attempt, manifest,
	    &(struct writer_directory){ 0 }, CLOCK_NEVER, &error), error);
	bench_delete_all(writer);
	bench_assert_steps("1 3");
	writer_free(writer);
}

/* A manifest that was given up may be the truth until a later one is. */

/* A second upload on its way goes on after the takeover from ourselves. */

/* The answer to our own open.json was lost: that is not somebody newer. */

static void
test_newer_format_is_left_alone(void **state)
{
	const struct term newer = { .number = 1, .random = 1 };
	static const char open[] = "{\"format\":1,\"needs_reader\":[],"
	    "\"needs_writer\":[\"erasure\"],\"node\":0,\"nodes\":1,"
	    "\"term\":1,\"adopted\":[]}";
	struct error error;
	char key[KEY_SIZE];

	(void)state;
	delaying_set(bench_store, key_term_object(&newer, "open.json", key), open,
	    strlen(open));
	assert_null(load_take_over(bench_store, BENCH_KEEP, BENCH_DELAY, "old", &error));
	assert_int_equal(error.cause, CAUSE_FEATURE);
	assert_non_null(strstr(error.message, "\"erasure\""));
	assert_int_equal(delaying_count(bench_store), 1);
}

static void
test_sweep_leaves_what_is_not_ours(void **state)
{
	static const char *const others[] = {
		"node-0000/term-00000001-0000000000000001/claim",
		"node-0000/term-00000001-0000000000000001/notes.txt",
		"node-0000/term-00000001-0000000000000001/open.json",
		"node-0000/term-00000009-0000000000000001/claim",
		"node-0001/term-00000001-0000000000000001/claim",
		"readme.txt",
	};
	struct writer *writer;
	struct error error;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++)
		delaying_set(bench_store, others[i], "x", 1);
	writer = bench_take_over("one");
	bench_commit(writer, 1);
	for (i = 3; i < 6; i++)
		delaying_set(bench_store, others[i], "x", 1);
	bench_delete_all(writer);
	assert_int_equal(bench_count_keys("term-00000001-0000000000000001/claim"), 1);
	for (i = 1; i < 6; i++)
		assert_int_equal(bench_count_keys(others[i]), i != 2);
	/* A higher claim came meanwhile; no harm, but a commit has to wait. */
	assert_int_equal(bench_commit_step(writer, 2, clock_monotonic(), &error),
	    -1);
	writer_free(writer);
}

static void
test_sweep_waits_for_the_first_commit(void **state)
{
	struct writer *writer = bench_take_over("one");
	const struct load cut = bench_at_step(2);
	struct error error;
	size_t sent;

	(void)state;
	bench_commit(writer, 1);
	assert_ok(load_send(bench_store, writer, writer_begin(writer), &cut, 2,
	    &sent, &error), error);
	writer_free(writer);
	writer = bench_take_over("two");
	assert_int_equal(writer_next_delete(writer), CLOCK_NEVER);
	clock_test_turn(10 * BENCH_DELAY);
	assert_int_equal(writer_delete_due(writer, &error), 0);
	assert_int_equal(bench_count_keys("/chunks/"), 4);
	bench_commit(writer, 3);
	assert_true(writer_next_delete(writer) <= clock_monotonic());
	bench_delete_all(writer);
	assert_int_equal(bench_count_keys("/chunks/"), 5);
	bench_assert_steps("3 1");
	writer_free(writer);
}

static void
test_weak_store(void **state)
{
	struct writer *writer;
	uint64_t began = clock_monotonic(), step;
	struct error error;

	(void)state;
	bench_store->weak = true;
	bench_turn_start();
	writer = bench_take_over("one");
	bench_turn_stop();
	assert_true(clock_monotonic() >= began + 60 * CLOCK_SECOND);
	assert_true(writer_is_weak(writer));
	for (step = 1; step <= 5; step++)
		bench_commit(writer, step);
	bench_assert_steps("5 4");
	assert_int_equal(writer_next_delete(writer), CLOCK_NEVER);
	clock_test_turn(10 * BENCH_DELAY);
	assert_int_equal(writer_delete_due(writer, &error), 0);
	assert_int_equal(bench_count_keys("/checkpoints/"), 5);
	assert_int_equal(bench_plan.requests[DELAYING_DELETE], 0);
	writer_free(writer);
}

static void
test_known_content(void **state)
{
	struct load load = bench_at_step(1);
	struct writer *writer = bench_take_over("one");
	const struct manifest *known;
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
	known = writer_known(writer, manifest);
	assert_non_null(known);
	assert_int_equal(known->attempt, 1);
	manifest->entries[0].mode = 0600;
	assert_null(writer_known(writer, manifest));
	manifest_free(manifest);
	writer_end(writer, attempt);
	assert_int_equal(writer_target(writer), 8 << 20);
	writer_free(writer);
}

static void
test_chunk_that_is_not_stored(void **state)
{
	const struct load load = bench_at_step(1);
	const struct writer_directory nothing = { 0 };
	struct writer *writer = bench_take_over("one");
	struct manifest *manifest;
	struct error error;
	uint64_t attempt = writer_begin(writer);
	size_t sent;

	(void)state;
	assert_ok(load_send(bench_store, writer, attempt, &load, SIZE_MAX, &sent,
	    &error), error);
	manifest = load_manifest(writer, attempt, &load);
	manifest->chunks[1].key[80] ^= 1;
	assert_int_equal(writer_commit(writer, attempt, manifest, &nothing,
	    CLOCK_NEVER, &error), -1);
	assert_non_null(strstr(error.message, "not known to be stored"));
	assert_int_equal(bench_count_keys("/checkpoints/"), 0);
	assert_int_equal(writer_commit(writer, attempt + 1, manifest, &nothing,
	    CLOCK_NEVER, &error), -1);
	assert_non_null(strstr(error.message, "not in flight"));
	manifest_free(manifest);
	writer_free(writer);
}

static void
test_attempts_out_of_order(void **state)
{
	const struct load load = bench_at_step(1);
	struct writer *writer = bench_take_over("one");
	struct manifest *manifest;
	struct error error;
	uint64_t attempt = writer_begin(writer);
	size_t sent;

	(void)state;
	assert_ok(load_send(bench_store, writer, attempt, &load, SIZE_MAX, &sent,
	    &error), error);
	bench_commit(writer, 2);
	manifest = load_manifest(writer, attempt, &load);
	assert_ok(writer_commit(writer, attempt, manifest,
	    &(struct writer_directory){ 0 }, CLOCK_NEVER, &error), error);
	assert_int_equal(manifest->attempt, 3);
	bench_delete_all(writer);
	bench_assert_steps("1 2");
	writer_free(writer);
}

static int
count_visits(void *context, const struct manifest *manifest, bool adopted,
    bool resume)
{
	unsigned *counts = context;

	(void)manifest;
	counts[0]++;
	counts[1] += adopted;
	counts[2] += resume;
	return counts[0] == counts[3] ? -1 : 0;
}

static void
test_visit_valid(void **state)
{
	struct writer *writer = bench_take_over("one");
	unsigned counts[4] = { 0 };

	(void)state;
	bench_commit(writer, 1);
	writer_free(writer);
	writer = bench_take_over("two");
	bench_commit(writer, 2);
	writer_valid(writer, count_visits, counts);
	assert_int_equal(counts[0], 2);
	assert_int_equal(counts[1], 1);
	assert_int_equal(counts[2], 1);
	counts[0] = 0;
	counts[3] = 1;
	writer_valid(writer, count_visits, counts);
	assert_int_equal(counts[0], 1);
	writer_free(writer);
}

static void
test_directory_keeps_and_points(void **state)
{
	static const char *const present[] = { "epoch-1", "epoch-2" };
	static const char *const pointed[] = { "epoch-1" };
	const struct writer_directory directory = { present, 2, pointed, 1 };
	static const char *const names[] = { "epoch-1", "epoch-2", "epoch-3",
		"epoch-4", "epoch-5" };
	struct writer *writer = bench_take_over("one");
	struct truth *truth;
	struct error error;
	size_t i;

	(void)state;
	for (i = 0; i < 5; i++) {
		const struct load load = { .name = names[i], .series = "epoch-*",
			.has_step = true, .step = i, .seed = i, .chunks = 1 };

		assert_ok(load_commit(bench_store, writer, &load, &directory,
		    CLOCK_NEVER, NULL, &error), error);
	}
	truth = bench_read_truth();
	assert_int_equal(truth->count, 4);
	assert_int_equal(truth->resume, 3);
	assert_string_equal(truth->valid[3]->name, "epoch-1");
	truth_free(truth);
	writer_free(writer);
}

static void
test_close(void **state)
{
	struct writer *writer = bench_take_over("one");
	json_t *facts = json_pack("{s:s, s:i}", "outcome", "finished",
	    "format", 7);
	struct error error;
	const char *text;
	size_t length;
	char key[KEY_SIZE];
	struct term term = writer_term(writer);

	(void)state;
	assert_ok(writer_close(writer, facts, CLOCK_NEVER, &error), error);
	text = delaying_get(bench_store, key_term_object(&term, "close.json", key),
	    &length);
	assert_non_null(strstr(text, "\"outcome\":\"finished\""));
	assert_non_null(strstr(text, "\"format\":1"));
	json_decref(facts);
	writer_free(writer);
}

#define WRITER_TEST(name) \
	cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WRITER_TEST(test_deletes_wait),
		WRITER_TEST(test_dropped_chunk_is_used_again),
		WRITER_TEST(test_upload_in_flight_holds_its_chunks),
		WRITER_TEST(test_newer_format_is_left_alone),
		WRITER_TEST(test_sweep_leaves_what_is_not_ours),
		WRITER_TEST(test_sweep_waits_for_the_first_commit),
		WRITER_TEST(test_weak_store),
		WRITER_TEST(test_known_content),
		WRITER_TEST(test_chunk_that_is_not_stored),
		WRITER_TEST(test_attempts_out_of_order),
		WRITER_TEST(test_visit_valid),
		WRITER_TEST(test_directory_keeps_and_points),
		WRITER_TEST(test_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
