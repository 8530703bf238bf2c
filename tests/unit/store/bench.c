#include "unit/store/bench.h"

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

struct bench_plan bench_plan;
struct backend *bench_store;
struct writer *bench_other;

static enum delaying_fate
decide(void *context, enum delaying_operation operation, const char *key)
{
	void (*meanwhile)(void);

	(void)context;
	bench_plan.requests[operation]++;
	if (bench_plan.part == NULL || operation != bench_plan.operation ||
	    strstr(key, bench_plan.part) == NULL || bench_plan.skip-- > 0)
		return DELAYING_ANSWERED;
	bench_plan.part = NULL;
	meanwhile = bench_plan.meanwhile;
	bench_plan.meanwhile = NULL;
	if (meanwhile != NULL)
		meanwhile();
	return bench_plan.fate;
}

void
bench_next(enum delaying_operation operation, const char *part,
    enum delaying_fate fate, void (*meanwhile)(void))
{
	bench_plan.operation = operation;
	bench_plan.part = part;
	bench_plan.skip = 0;
	bench_plan.fate = fate;
	bench_plan.meanwhile = meanwhile;
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

void
bench_turn_start(void)
{
	atomic_store(&turning, true);
	assert_int_equal(pthread_create(&turner, NULL, turn, NULL), 0);
}

void
bench_turn_stop(void)
{
	atomic_store(&turning, false);
	pthread_join(turner, NULL);
}

int
bench_set_up(void **state)
{
	(void)state;
	clock_test_start((struct timespec){ .tv_sec = 1796060000 });
	memset(&bench_plan, 0, sizeof(bench_plan));
	bench_store = delaying_new(decide, NULL);
	bench_other = NULL;
	return 0;
}

int
bench_tear_down(void **state)
{
	(void)state;
	writer_free(bench_other);
	backend_free(bench_store);
	clock_test_stop();
	return 0;
}

struct writer *
bench_take_over(const char *host)
{
	struct error error;
	struct writer *writer = load_take_over(bench_store, BENCH_KEEP, BENCH_DELAY, host,
	    &error);

	if (writer == NULL)
		fail_msg("%s: %s", host, error.message);
	return writer;
}

void
bench_take_over_other(void)
{
	bench_other = bench_take_over("other");
}

/* last.pt at ${step}: one chunk that never changes and two that do. */
struct load
bench_at_step(uint64_t step)
{
	return (struct load){ .name = "last.pt", .has_step = true,
		.step = step, .seed = 1, .chunks = 3, .new_chunks = 2,
		.completed = (time_t)step };
}

int
bench_commit_step(struct writer *writer, uint64_t step, uint64_t deadline,
    struct error *error)
{
	const struct load load = bench_at_step(step);

	return load_commit(bench_store, writer, &load, NULL, deadline, NULL, error);
}

void
bench_commit(struct writer *writer, uint64_t step)
{
	struct error error;

	assert_ok(bench_commit_step(writer, step, CLOCK_NEVER, &error), error);
}

struct truth *
bench_read_truth(void)
{
	struct error error;
	struct truth *truth = truth_read(bench_store, 0, &error);

	if (truth == NULL)
		fail_msg("truth: %s", error.message);
	return truth;
}

/* The steps of the valid checkpoints, newest first: "7 6". */
void
bench_assert_steps(const char *expected)
{
	struct truth *truth = bench_read_truth();
	char text[256] = "";
	size_t i;

	for (i = 0; i < truth->count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
		    "%s%u", i > 0 ? " " : "", (unsigned)truth->valid[i]->step);
	truth_free(truth);
	assert_string_equal(text, expected);
}

size_t
bench_count_keys(const char *part)
{
	size_t i, count = 0;

	for (i = 0; i < delaying_count(bench_store); i++)
		count += strstr(delaying_key(bench_store, i), part) != NULL;
	return count;
}

void
bench_delete_all(struct writer *writer)
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
