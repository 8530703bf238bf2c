/*
 * The writer on a store that loses, delays and repeats requests, with a clock
 * that the test turns.
 */
#include "kit/kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/backend.h"
#include "store/truth.h"
#include "unit/store/delaying.h"
#include "unit/store/load.h"

#define KEEP 2
#define DELAY (15 * 60 * CLOCK_SECOND)

/* What to do with the next request of a kind, and what happens meanwhile. */
static struct {
	enum delaying_operation operation;
	const char *part;	/* of the key; NULL: nothing is planned */
	unsigned skip;		/* so many of them first */
	enum delaying_fate fate;
	void (*meanwhile)(void);
	unsigned requests[4];	/* of each operation, ever */
} plan;

static struct backend *store;
static struct writer *other;

static enum delaying_fate
decide(void *context, enum delaying_operation operation, const char *key)
{
	void (*meanwhile)(void);

	(void)context;
	plan.requests[operation]++;
	if (plan.part == NULL || operation != plan.operation ||
	    strstr(key, plan.part) == NULL || plan.skip-- > 0)
		return DELAYING_ANSWERED;
	plan.part = NULL;
	meanwhile = plan.meanwhile;
	plan.meanwhile = NULL;
	if (meanwhile != NULL)
		meanwhile();
	return plan.fate;
}

static void
next(enum delaying_operation operation, const char *part,
    enum delaying_fate fate, void (*meanwhile)(void))
{
	plan.operation = operation;
	plan.part = part;
	plan.skip = 0;
	plan.fate = fate;
	plan.meanwhile = meanwhile;
}

/* Turns the clock while the writer sleeps, a second at a time. */
static atomic_bool turning;
static pthread_t turner;

static void *
turn(void *context)
{
	(void)context;
	while (atomic_load(&turning)) {
		clock_test_turn(CLOCK_SECOND);
		usleep(100);
	}
	return NULL;
}

static void
turn_start(void)
{
	atomic_store(&turning, true);
	assert_int_equal(pthread_create(&turner, NULL, turn, NULL), 0);
}

static void
turn_stop(void)
{
	atomic_store(&turning, false);
	pthread_join(turner, NULL);
}

static int
set_up(void **state)
{
	(void)state;
	clock_test_start((struct timespec){ .tv_sec = 1796060000 });
	memset(&plan, 0, sizeof(plan));
	store = delaying_new(decide, NULL);
	other = NULL;
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	writer_free(other);
	backend_free(store);
	clock_test_stop();
	return 0;
}

static struct writer *
take_over(const char *host)
{
	struct error error;
	struct writer *writer = load_take_over(store, KEEP, DELAY, host,
	    &error);

	if (writer == NULL)
		fail_msg("%s: %s", host, error.message);
	return writer;
}

static void
take_over_other(void)
{
	other = take_over("other");
}

/* last.pt at ${step}: one chunk that never changes and two that do. */
static struct load
at_step(uint64_t step)
{
	return (struct load){ .name = "last.pt", .has_step = true,
		.step = step, .seed = 1, .chunks = 3, .new_chunks = 2,
		.completed = (time_t)step };
}

static int
commit_step(struct writer *writer, uint64_t step, uint64_t deadline,
    struct error *error)
{
	const struct load load = at_step(step);

	return load_commit(store, writer, &load, NULL, deadline, NULL, error);
}

static void
commit(struct writer *writer, uint64_t step)
{
	struct error error;

	assert_ok(commit_step(writer, step, CLOCK_NEVER, &error), error);
}

static struct truth *
read_truth(void)
{
	struct error error;
	struct truth *truth = truth_read(store, 0, &error);

	if (truth == NULL)
		fail_msg("truth: %s", error.message);
	return truth;
}

/* The steps of the valid checkpoints, newest first: "7 6". */
static void
assert_steps(const char *expected)
{
	struct truth *truth = read_truth();
	char text[256] = "";
	size_t i;

	for (i = 0; i < truth->count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
		    "%s%u", i > 0 ? " " : "", (unsigned)truth->valid[i]->step);
	truth_free(truth);
	assert_string_equal(text, expected);
}

static size_t
count_keys(const char *part)
{
	size_t i, count = 0;

	for (i = 0; i < delaying_count(store); i++)
		count += strstr(delaying_key(store, i), part) != NULL;
	return count;
}

static void
delete_all(struct writer *writer)
{
	struct error error;

	while (writer_next_delete(writer) != CLOCK_NEVER) {
		uint64_t due = writer_next_delete(writer);

		if (due > clock_monotonic())
			clock_test_turn(due - clock_monotonic());
		if (writer_delete_due(writer, &error) < 0)
			fail_msg("delete: %s", error.message);
	}
}

static void
test_deletes_wait(void **state)
{
	struct writer *writer = take_over("one");
	struct error error;
	uint64_t step;

	(void)state;
	for (step = 1; step <= 3; step++)
		commit(writer, step);
	assert_steps("3 2");
	/* A sweep that finds nothing, and then nothing for 15 minutes. */
	assert_int_equal(writer_delete_due(writer, &error), 0);
	assert_int_equal(writer_next_delete(writer),
	    clock_monotonic() + DELAY);
	clock_test_turn(DELAY - 1);
	assert_int_equal(writer_delete_due(writer, &error), 0);
	assert_int_equal(count_keys("/chunks/"), 7);
	clock_test_turn(1);
	/* Step 1: its manifest and two chunks; one is used by all. */
	assert_int_equal(writer_delete_due(writer, &error), 3);
	assert_int_equal(writer_next_delete(writer), CLOCK_NEVER);
	assert_int_equal(count_keys("/chunks/"), 5);
	assert_int_equal(count_keys("/checkpoints/"), 2);
	writer_free(writer);
}

static void
test_delete_that_fails_is_sent_again(void **state)
{
	struct writer *writer = take_over("one");
	struct error error;
	uint64_t step;

	(void)state;
	for (step = 1; step <= 3; step++)
		commit(writer, step);
	assert_int_equal(writer_delete_due(writer, &error), 0);
	clock_test_turn(DELAY);
	next(DELAYING_DELETE, "/chunks/", DELAYING_LATER, NULL);
	assert_int_equal(writer_delete_due(writer, &error), -1);
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	assert_int_equal(count_keys("/chunks/"), 6);
	assert_int_equal(writer_next_delete(writer),
	    clock_monotonic() + 30 * CLOCK_SECOND);
	delete_all(writer);
	assert_int_equal(count_keys("/chunks/"), 5);
	delaying_release(store, 0);
	assert_int_equal(count_keys("/chunks/"), 5);
	assert_steps("3 2");
	writer_free(writer);
}

static void
test_dropped_chunk_is_used_again(void **state)
{
	struct load load = at_step(1);
	struct writer *writer = take_over("one");
	struct error error;
	uint64_t step;
	size_t sent;

	(void)state;
	for (step = 1; step <= 3; step++)
		commit(writer, step);
	/* Its DELETE is planned, but not sent: G2 allows it. */
	assert_ok(load_commit(store, writer, &load, NULL, CLOCK_NEVER, &sent,
	    &error), error);
	assert_int_equal(sent, 0);
	delete_all(writer);
	assert_steps("1 3");
	assert_int_equal(count_keys("/chunks/"), 5);
	/* Step 2 is gone for good: its chunks are sent under new keys. */
	load = at_step(2);
	assert_ok(load_commit(store, writer, &load, NULL, CLOCK_NEVER, &sent,
	    &error), error);
	assert_int_equal(sent, 2);
	writer_free(writer);
}

static void
test_upload_in_flight_holds_its_chunks(void **state)
{
	const struct load load = at_step(1);
	struct writer *writer = take_over("one");
	struct manifest *manifest;
	struct error error;
	uint64_t step, attempt;
	size_t sent;

	(void)state;
	for (step = 1; step <= 3; step++)
		commit(writer, step);
	attempt = writer_begin(writer);
	assert_ok(load_send(store, writer, attempt, &load, SIZE_MAX, &sent,
	    &error), error);
	assert_int_equal(sent, 0);
	clock_test_turn(2 * DELAY);
	assert_int_equal(writer_delete_due(writer, &error), 1);
	assert_int_equal(count_keys("/chunks/"), 7);
	manifest = load_manifest(writer, attempt, &load);
	assert_ok(writer_commit(writer, attempt, manifest,
	    &(struct writer_directory){ 0 }, CLOCK_NEVER, &error), error);
	delete_all(writer);
	assert_steps("1 3");
	writer_free(writer);
}

static void
test_manifest_without_answer(void **state)
{
	const struct load load = at_step(2);
	const struct writer_directory nothing = { 0 };
	struct writer *writer = take_over("one");
	struct manifest *manifest;
	struct error error;
	uint64_t attempt;
	size_t sent;

	(void)state;
	commit(writer, 1);
	attempt = writer_begin(writer);
	assert_ok(load_send(store, writer, attempt, &load, SIZE_MAX, &sent,
	    &error), error);
	manifest = load_manifest(writer, attempt, &load);
	next(DELAYING_PUT, "/checkpoints/", DELAYING_UNANSWERED, NULL);
	assert_int_equal(writer_commit(writer, attempt, manifest, &nothing,
	    CLOCK_NEVER, &error), -1);
	assert_int_equal(error.class, ERROR_NOT_DURABLE);
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	/* The same bytes once more, although the clock went on. */
	clock_test_turn(CLOCK_SECOND);
	next(DELAYING_PUT, "/checkpoints/", DELAYING_LATER, NULL);
	assert_int_equal(writer_commit(writer, attempt, manifest, &nothing,
	    CLOCK_NEVER, &error), -1);
	assert_ok(writer_commit(writer, attempt, manifest, &nothing,
	    CLOCK_NEVER, &error), error);
	assert_int_equal(count_keys("/checkpoints/"), 2);
	delaying_release(store, 0);
	assert_int_equal(count_keys("/checkpoints/"), 2);
	assert_steps("2 1");
	writer_free(writer);
}

/* A manifest that was given up may be the truth until a later one is. */
static void
test_given_up_manifest_stays_whole(void **state)
{
	struct writer *writer = take_over("one");
	struct truth *truth;
	struct error error;
	uint64_t step;
	size_t i, length;

	(void)state;
	for (step = 1; step <= 3; step++)
		commit(writer, step);
	/* Step 1 again: from chunks whose DELETE is planned. */
	next(DELAYING_PUT, "/checkpoints/", DELAYING_UNANSWERED, NULL);
	assert_int_equal(commit_step(writer, 1, CLOCK_NEVER, &error), -1);
	assert_int_equal(error.class, ERROR_NOT_DURABLE);
	clock_test_turn(2 * DELAY);
	assert_int_equal(writer_delete_due(writer, &error), 1);
	truth = read_truth();
	assert_int_equal(truth->valid[0]->step, 1);
	assert_int_equal(truth->count, 2);
	for (i = 0; i < 3; i++)
		assert_non_null(delaying_get(store,
		    truth->valid[0]->chunks[i].key, &length));
	truth_free(truth);
	commit(writer, 4);
	delete_all(writer);
	assert_steps("4 3");
	assert_int_equal(count_keys("/checkpoints/"), 2);
	assert_int_equal(count_keys("/chunks/"), 5);
	writer_free(writer);
}

static void
test_manifest_comes_late(void **state)
{
	struct writer *writer = take_over("one");
	struct error error;

	(void)state;
	commit(writer, 1);
	next(DELAYING_PUT, "/checkpoints/", DELAYING_LATER, NULL);
	assert_int_equal(commit_step(writer, 2, CLOCK_NEVER, &error), -1);
	commit(writer, 3);
	delete_all(writer);
	delaying_release(store, 0);
	assert_steps("3 1");
	writer_free(writer);
	/* The next term finds what came too late. */
	writer = take_over("two");
	commit(writer, 4);
	delete_all(writer);
	assert_steps("4 3");
	assert_int_equal(count_keys("/checkpoints/"), 2);
	writer_free(writer);
}

static void
test_deadline_waits_and_does_not_claim(void **state)
{
	const struct term dead = { .number = 2, .random = 7 };
	struct writer *writer = take_over("one");
	struct error error;
	char key[KEY_SIZE];
	uint64_t began;

	(void)state;
	delaying_set(store, key_term_object(&dead, "claim", key), "{}", 2);
	began = clock_monotonic();
	turn_start();
	assert_int_equal(commit_step(writer, 1, began + 90 * CLOCK_SECOND,
	    &error), -1);
	turn_stop();
	assert_true(clock_monotonic() >= began + 90 * CLOCK_SECOND);
	assert_int_equal(error.class, ERROR_NOT_DURABLE);
	assert_non_null(strstr(error.message, "takeover pending"));
	assert_int_equal(writer_term(writer).number, 1);
	assert_int_equal(count_keys("/claim"), 2);
	writer_free(writer);
}

static void
test_dead_starter(void **state)
{
	const struct term dead = { .number = 2, .random = 7 };
	struct writer *writer = take_over("one");
	struct error error;
	char key[KEY_SIZE];
	uint64_t began;
	size_t i;

	(void)state;
	commit(writer, 5);
	delaying_set(store, key_term_object(&dead, "claim", key), "{}", 2);
	began = clock_monotonic();
	turn_start();
	assert_ok(commit_step(writer, 6, CLOCK_NEVER, &error), error);
	turn_stop();
	assert_true(clock_monotonic() >= began + 60 * CLOCK_SECOND);
	assert_int_equal(writer_term(writer).number, 3);
	assert_steps("6 5");
	/* Everything is known as before: only two chunks are new. */
	i = plan.requests[DELAYING_PUT];
	commit(writer, 7);
	assert_int_equal(plan.requests[DELAYING_PUT], i + 3);
	delete_all(writer);
	assert_steps("7 6");
	/* The dead starter's claim is swept; term 1 holds step 6 and chunks. */
	assert_int_equal(count_keys("/claim"), 2);
	writer_free(writer);
}

/* A second upload on its way goes on after the takeover from ourselves. */
static void
test_dead_starter_beside_another_upload(void **state)
{
	const struct term dead = { .number = 2, .random = 7 };
	const struct load second = at_step(8);
	struct writer *writer = take_over("one");
	struct manifest *manifest;
	struct error error;
	char key[KEY_SIZE];
	uint64_t attempt;
	size_t sent;

	(void)state;
	commit(writer, 5);
	attempt = writer_begin(writer);
	assert_ok(load_send(store, writer, attempt, &second, 2, &sent, &error),
	    error);
	assert_int_equal(sent, 1);
	delaying_set(store, key_term_object(&dead, "claim", key), "{}", 2);
	turn_start();
	assert_ok(commit_step(writer, 6, CLOCK_NEVER, &error), error);
	turn_stop();
	commit(writer, 7);
	delete_all(writer);
	assert_ok(load_send(store, writer, attempt, &second, 3, &sent, &error),
	    error);
	assert_int_equal(sent, 1);
	clock_test_turn(DELAY);
	assert_int_equal(writer_delete_due(writer, &error), 0);
	manifest = load_manifest(writer, attempt, &second);
	assert_ok(writer_commit(writer, attempt, manifest,
	    &(struct writer_directory){ 0 }, CLOCK_NEVER, &error), error);
	delete_all(writer);
	assert_steps("8 7");
	assert_int_equal(count_keys("/chunks/"), 5);
	writer_free(writer);
}

/* The answer to our own open.json was lost: that is not somebody newer. */
static void
test_own_open_comes_late(void **state)
{
	const struct term dead = { .number = 2, .random = 7 };
	struct writer *writer = take_over("one");
	struct error error;
	char key[KEY_SIZE];

	(void)state;
	commit(writer, 5);
	delaying_set(store, key_term_object(&dead, "claim", key), "{}", 2);
	next(DELAYING_PUT, "open.json", DELAYING_LATER, NULL);
	turn_start();
	assert_int_equal(commit_step(writer, 6, CLOCK_NEVER, &error), -1);
	turn_stop();
	assert_int_equal(error.class, ERROR_NOT_DURABLE);
	delaying_release(store, 0);
	assert_ok(writer_check(writer, &error), error);
	turn_start();
	assert_ok(commit_step(writer, 7, CLOCK_NEVER, &error), error);
	turn_stop();
	assert_int_equal(writer_term(writer).number, 4);
	assert_steps("7 6");
	commit(writer, 8);
	delete_all(writer);
	assert_steps("8 7");
	writer_free(writer);
}

static void
test_superseded_but_adopted(void **state)
{
	struct writer *writer = take_over("one");
	struct error error;

	(void)state;
	/* While we ask whether we still count, another one takes over. */
	commit(writer, 1);
	next(DELAYING_LIST, "node-0000/", DELAYING_ANSWERED, take_over_other);
	assert_int_equal(commit_step(writer, 2, CLOCK_NEVER, &error), -1);
	assert_int_equal(error.class, ERROR_SUPERSEDED);
	assert_non_null(strstr(error.message, "last.pt is durable, but"));
	assert_non_null(strstr(error.message, "other, 2026-11-30T"));
	assert_steps("2 1");
	assert_int_equal(commit_step(writer, 3, CLOCK_NEVER, &error), -1);
	assert_int_equal(error.class, ERROR_SUPERSEDED);
	writer_free(writer);
	commit(other, 3);
	delete_all(other);
	assert_steps("3 2");
}

static void
open_late(void)
{
	delaying_release(store, 0);
}

static void
test_claim_is_opened_while_we_wait(void **state)
{
	struct writer *writer = take_over("one");
	struct error error;

	(void)state;
	commit(writer, 1);
	next(DELAYING_PUT, "open.json", DELAYING_LATER, NULL);
	assert_null(load_take_over(store, KEEP, DELAY, "slow", &error));
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	next(DELAYING_LIST, "node-0000/", DELAYING_ANSWERED, open_late);
	plan.skip = 3;
	turn_start();
	assert_int_equal(commit_step(writer, 2, CLOCK_NEVER, &error), -1);
	turn_stop();
	assert_int_equal(error.class, ERROR_SUPERSEDED);
	assert_non_null(strstr(error.message, "last.pt is not durable"));
	assert_non_null(strstr(error.message, "slow, "));
	assert_steps("1");
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
	next(DELAYING_LIST, "", DELAYING_NEVER, NULL);
	assert_null(load_take_over(store, KEEP, DELAY, "one", &error));
	assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	assert_int_equal(delaying_count(store), 0);
	for (i = 0; i < 2; i++) {
		next(DELAYING_PUT, parts[i], DELAYING_TWICE, NULL);
		plan.fate = i == 0 ? DELAYING_UNANSWERED : DELAYING_NEVER;
		assert_null(load_take_over(store, KEEP, DELAY, "one", &error));
		assert_int_equal(error.cause, CAUSE_UNREACHABLE);
	}
	writer = take_over("one");
	assert_int_equal(writer_term(writer).number, 3);
	commit(writer, 1);
	delete_all(writer);
	assert_int_equal(count_keys("/claim"), 1);
	writer_free(writer);
}

static void
claim_the_same(void)
{
	const struct term same = { .number = 1, .random = 9 };
	char key[KEY_SIZE];

	delaying_set(store, key_term_object(&same, "claim", key), "{}", 2);
}

static void
test_two_start_at_once(void **state)
{
	struct writer *writer;

	(void)state;
	next(DELAYING_PUT, "claim", DELAYING_ANSWERED, claim_the_same);
	turn_start();
	writer = take_over("one");
	turn_stop();
	assert_int_equal(writer_term(writer).number, 2);
	writer_free(writer);
}

static void
test_named_manifest_is_gone(void **state)
{
	struct writer *writer = take_over("one");
	struct truth *truth;
	struct error error;
	char key[KEY_SIZE];

	(void)state;
	commit(writer, 1);
	commit(writer, 2);
	truth = read_truth();
	snprintf(key, sizeof(key), "%s", truth->valid[1]->key);
	truth_free(truth);
	writer_free(writer);
	delaying_set(store, key, NULL, 0);
	turn_start();
	writer = load_take_over(store, KEEP, DELAY, "two", &error);
	turn_stop();
	assert_null(writer);
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_string_equal(error.object, key);
	/* Nothing was claimed. */
	assert_int_equal(count_keys("/claim"), 1);
}

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
	delaying_set(store, key_term_object(&newer, "open.json", key), open,
	    strlen(open));
	assert_null(load_take_over(store, KEEP, DELAY, "old", &error));
	assert_int_equal(error.cause, CAUSE_FEATURE);
	assert_non_null(strstr(error.message, "\"erasure\""));
	assert_int_equal(delaying_count(store), 1);
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
		delaying_set(store, others[i], "x", 1);
	writer = take_over("one");
	commit(writer, 1);
	for (i = 3; i < 6; i++)
		delaying_set(store, others[i], "x", 1);
	delete_all(writer);
	assert_int_equal(count_keys("term-00000001-0000000000000001/claim"), 1);
	for (i = 1; i < 6; i++)
		assert_int_equal(count_keys(others[i]), i != 2);
	/* A higher claim came meanwhile; no harm, but a commit has to wait. */
	assert_int_equal(commit_step(writer, 2, clock_monotonic(), &error),
	    -1);
	writer_free(writer);
}

static void
test_sweep_waits_for_the_first_commit(void **state)
{
	struct writer *writer = take_over("one");
	const struct load cut = at_step(2);
	struct error error;
	size_t sent;

	(void)state;
	commit(writer, 1);
	assert_ok(load_send(store, writer, writer_begin(writer), &cut, 2,
	    &sent, &error), error);
	writer_free(writer);
	writer = take_over("two");
	assert_int_equal(writer_next_delete(writer), CLOCK_NEVER);
	clock_test_turn(10 * DELAY);
	assert_int_equal(writer_delete_due(writer, &error), 0);
	assert_int_equal(count_keys("/chunks/"), 4);
	commit(writer, 3);
	assert_true(writer_next_delete(writer) <= clock_monotonic());
	delete_all(writer);
	assert_int_equal(count_keys("/chunks/"), 5);
	assert_steps("3 1");
	writer_free(writer);
}

static void
test_weak_store(void **state)
{
	struct writer *writer;
	uint64_t began = clock_monotonic(), step;
	struct error error;

	(void)state;
	store->weak = true;
	turn_start();
	writer = take_over("one");
	turn_stop();
	assert_true(clock_monotonic() >= began + 60 * CLOCK_SECOND);
	assert_true(writer_is_weak(writer));
	for (step = 1; step <= 5; step++)
		commit(writer, step);
	assert_steps("5 4");
	assert_int_equal(writer_next_delete(writer), CLOCK_NEVER);
	clock_test_turn(10 * DELAY);
	assert_int_equal(writer_delete_due(writer, &error), 0);
	assert_int_equal(count_keys("/checkpoints/"), 5);
	assert_int_equal(plan.requests[DELAYING_DELETE], 0);
	writer_free(writer);
}

static void
test_known_content(void **state)
{
	struct load load = at_step(1);
	struct writer *writer = take_over("one");
	const struct manifest *known;
	struct manifest *manifest;
	struct error error;
	uint64_t attempt;
	size_t sent;

	(void)state;
	commit(writer, 1);
	attempt = writer_begin(writer);
	assert_ok(load_send(store, writer, attempt, &load, SIZE_MAX, &sent,
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
	const struct load load = at_step(1);
	const struct writer_directory nothing = { 0 };
	struct writer *writer = take_over("one");
	struct manifest *manifest;
	struct error error;
	uint64_t attempt = writer_begin(writer);
	size_t sent;

	(void)state;
	assert_ok(load_send(store, writer, attempt, &load, SIZE_MAX, &sent,
	    &error), error);
	manifest = load_manifest(writer, attempt, &load);
	manifest->chunks[1].key[80] ^= 1;
	assert_int_equal(writer_commit(writer, attempt, manifest, &nothing,
	    CLOCK_NEVER, &error), -1);
	assert_non_null(strstr(error.message, "not known to be stored"));
	assert_int_equal(count_keys("/checkpoints/"), 0);
	assert_int_equal(writer_commit(writer, attempt + 1, manifest, &nothing,
	    CLOCK_NEVER, &error), -1);
	assert_non_null(strstr(error.message, "not in flight"));
	manifest_free(manifest);
	writer_free(writer);
}

static void
test_attempts_out_of_order(void **state)
{
	const struct load load = at_step(1);
	struct writer *writer = take_over("one");
	struct manifest *manifest;
	struct error error;
	uint64_t attempt = writer_begin(writer);
	size_t sent;

	(void)state;
	assert_ok(load_send(store, writer, attempt, &load, SIZE_MAX, &sent,
	    &error), error);
	commit(writer, 2);
	manifest = load_manifest(writer, attempt, &load);
	assert_ok(writer_commit(writer, attempt, manifest,
	    &(struct writer_directory){ 0 }, CLOCK_NEVER, &error), error);
	assert_int_equal(manifest->attempt, 3);
	delete_all(writer);
	assert_steps("1 2");
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
	struct writer *writer = take_over("one");
	unsigned counts[4] = { 0 };

	(void)state;
	commit(writer, 1);
	writer_free(writer);
	writer = take_over("two");
	commit(writer, 2);
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
	struct writer *writer = take_over("one");
	struct truth *truth;
	struct error error;
	size_t i;

	(void)state;
	for (i = 0; i < 5; i++) {
		const struct load load = { .name = names[i], .series = "epoch-*",
			.has_step = true, .step = i, .seed = i, .chunks = 1 };

		assert_ok(load_commit(store, writer, &load, &directory,
		    CLOCK_NEVER, NULL, &error), error);
	}
	truth = read_truth();
	assert_int_equal(truth->count, 4);
	assert_int_equal(truth->resume, 3);
	assert_string_equal(truth->valid[3]->name, "epoch-1");
	truth_free(truth);
	writer_free(writer);
}

static void
test_close(void **state)
{
	struct writer *writer = take_over("one");
	json_t *facts = json_pack("{s:s, s:i}", "outcome", "finished",
	    "format", 7);
	struct error error;
	const char *text;
	size_t length;
	char key[KEY_SIZE];
	struct term term = writer_term(writer);

	(void)state;
	assert_ok(writer_close(writer, facts, CLOCK_NEVER, &error), error);
	text = delaying_get(store, key_term_object(&term, "close.json", key),
	    &length);
	assert_non_null(strstr(text, "\"outcome\":\"finished\""));
	assert_non_null(strstr(text, "\"format\":1"));
	json_decref(facts);
	writer_free(writer);
}

#define WRITER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WRITER_TEST(test_deletes_wait),
		WRITER_TEST(test_delete_that_fails_is_sent_again),
		WRITER_TEST(test_dropped_chunk_is_used_again),
		WRITER_TEST(test_upload_in_flight_holds_its_chunks),
		WRITER_TEST(test_manifest_without_answer),
		WRITER_TEST(test_given_up_manifest_stays_whole),
		WRITER_TEST(test_manifest_comes_late),
		WRITER_TEST(test_deadline_waits_and_does_not_claim),
		WRITER_TEST(test_dead_starter),
		WRITER_TEST(test_dead_starter_beside_another_upload),
		WRITER_TEST(test_own_open_comes_late),
		WRITER_TEST(test_superseded_but_adopted),
		WRITER_TEST(test_claim_is_opened_while_we_wait),
		WRITER_TEST(test_takeover_unreachable_comes_back),
		WRITER_TEST(test_two_start_at_once),
		WRITER_TEST(test_named_manifest_is_gone),
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
