#ifndef UNIT_STORE_BENCH_H
#define UNIT_STORE_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unit/store/delaying.h"
#include "unit/store/load.h"

struct truth;

/*
 * What the tests of the writer stand on: a store in memory whose next request
 * of a kind does what a test planned, a clock that the test turns, and
 * checkpoints "last.pt" that differ by their step.  Made anew for each test.
 */

#define BENCH_KEEP 2
#define BENCH_DELAY (15 * 60 * CLOCK_SECOND)

extern struct backend *bench_store;

/* What to do with the next request of a kind, and what happens meanwhile. */
extern struct bench_plan {
	enum delaying_operation operation;
	const char *part;	/* of the key; NULL: nothing is planned */
	unsigned skip;		/* so many of them first */
	enum delaying_fate fate;
	void (*meanwhile)(void);
	unsigned requests[4];	/* of each operation, ever */
} bench_plan;

int bench_set_up(void **state);
int bench_tear_down(void **state);

/**
 * bench_next(operation, part, fate, meanwhile):
 * Plan for the next request whose key holds ${part}.
 */
void bench_next(enum delaying_operation operation, const char *part,
    enum delaying_fate fate, void (*meanwhile)(void));

/**
 * bench_turn_start(): let the clock run, a second at a time, while the writer
 * sleeps.  bench_turn_stop(): let it stand again.
 */
void bench_turn_start(void);
void bench_turn_stop(void);

/**
 * bench_take_over(host): a writer.
 * bench_take_over_other(): another one, bench_other, freed at the end.
 */
struct writer *bench_take_over(const char *host);
void bench_take_over_other(void);
extern struct writer *bench_other;

/**
 * bench_at_step(step): last.pt then: one chunk that never changes, two that do.
 * bench_commit_step(writer, step, deadline, error): upload and commit it.
 * bench_commit(writer, step): the same; it must work.
 */
struct load bench_at_step(uint64_t step);
int bench_commit_step(struct writer *writer, uint64_t step, uint64_t deadline,
    struct error *error);
void bench_commit(struct writer *writer, uint64_t step);

/**
 * bench_delete_all(writer):
 * Turn the clock and send every DELETE that is planned, also by sweeps.
 */
void bench_delete_all(struct writer *writer);

/**
 * bench_read_truth(): the truth; the test fails without one.
 * bench_assert_steps(expected): the steps of what is valid, newest first: "7 6".
 * bench_count_keys(part): how many objects' keys hold ${part}.
 */
struct truth *bench_read_truth(void);
void bench_assert_steps(const char *expected);
size_t bench_count_keys(const char *part);

#endif
