#ifndef LIFE_CANDIDATES_H
#define LIFE_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct checkpoint;

/*
 * The checkpoints that are complete and wait for their upload, and what
 * became of their series: the policy of DESIGN 7, without threads, clock or
 * store.
 *
 * One is taken at a time.  A save that completes later replaces the waiting
 * ones of its series; those that one scan finds together (same batch) do not
 * replace each other and go up oldest first.  Series take turns, so that best
 * and final never starve.  An older one of a series never goes after a newer
 * one.
 */
struct candidates;

struct candidate {
	struct checkpoint *checkpoint;	/* owned */
	uint64_t order;		/* in order of completion, from 1 */
	uint64_t since;		/* the lowest order of what it replaced, or its own */
	uint64_t batch;
	uint64_t seen;		/* clock_monotonic() when it was last written */
	uint64_t not_before;	/* clock_monotonic(): try again then */
	unsigned failures;
	uint64_t left;		/* bytes that its upload had left when it was
				 * held; 0: all */
	bool hopeless;		/* it was said that it cannot make it */
};

/* How an upload ended, for the series. */
enum candidate_end {
	CANDIDATE_DURABLE,
	CANDIDATE_SNAPSHOT_DURABLE,	/* from a snapshot */
	CANDIDATE_CHANGED,	/* overwritten meanwhile; its successor will come */
	CANDIDATE_GONE,		/* deleted meanwhile: nothing to be sorry for */
	CANDIDATE_LOST		/* given up: what is complete is not durable */
};

/**
 * candidates_new(): none yet.  NULL when out of memory.
 */
struct candidates *candidates_new(void);

/**
 * candidates_add(candidates, checkpoint, batch, now, dropped, context):
 * ${checkpoint} is complete, and was last written at ${now}
 * (clock_monotonic); the set owns it.  ${dropped} (may be NULL) is
 * called with each waiting one that it replaces, which is freed after it.
 * Return its order, or 0 when out of memory (it is freed).
 */
uint64_t candidates_add(struct candidates *candidates,
    struct checkpoint *checkpoint, uint64_t batch, uint64_t now,
    void (*dropped)(void *context, const struct checkpoint *checkpoint),
    void *context);

/**
 * candidates_take(candidates, now):
 * The next one to go up, the caller's (candidate_free); NULL when none is due.
 */
struct candidate *candidates_take(struct candidates *candidates, uint64_t now);

/**
 * candidates_at(candidates, index):
 * The waiting ones, oldest first, below candidates_count; they stay in the set.
 * candidates_pick(candidates, index): this one is to go up; the caller's.
 */
struct candidate *candidates_at(struct candidates *candidates, size_t index);
struct candidate *candidates_pick(struct candidates *candidates, size_t index);

/**
 * candidates_hold(candidates, candidate, left):
 * A deadline runs and it gives way to another one, with ${left} bytes (> 0) to
 * go: it waits, and nothing newer takes its place before that is durable.
 */
void candidates_hold(struct candidates *candidates,
    struct candidate *candidate, uint64_t left);

/**
 * candidates_return(candidates, candidate, not_before):
 * Its upload failed for a passing reason: it waits again until ${not_before},
 * unless a newer one of its series waits, which takes its place.  The set
 * owns it.
 */
void candidates_return(struct candidates *candidates,
    struct candidate *candidate, uint64_t not_before);

/**
 * candidates_end(candidates, candidate, end):
 * Its upload ended so.  Frees ${candidate}.
 */
void candidates_end(struct candidates *candidates, struct candidate *candidate,
    enum candidate_end end);

/**
 * candidates_wants_snapshot(candidates, series):
 * Whether the next upload of ${series} should read from a snapshot: it was
 * overwritten under an upload twice in a row.
 */
bool candidates_wants_snapshot(const struct candidates *candidates,
    const char *series);

/**
 * candidates_hurry(candidates):
 * Let nobody wait for its next try.
 */
void candidates_hurry(struct candidates *candidates);

/**
 * candidates_next(candidates): the earliest not_before, CLOCK_NEVER: none.
 * candidates_count(candidates): how many wait.
 * candidates_since(candidates): the lowest `since`, UINT64_MAX: none.
 * candidates_last(candidates): the order of the last one added.
 */
uint64_t candidates_next(const struct candidates *candidates);
size_t candidates_count(const struct candidates *candidates);
uint64_t candidates_since(const struct candidates *candidates);
uint64_t candidates_last(const struct candidates *candidates);

/**
 * candidates_lost(candidates):
 * The name of a checkpoint that was given up and that nothing newer of its
 * series has made up for; NULL: none.
 */
const char *candidates_lost(const struct candidates *candidates);

void candidate_free(struct candidate *candidate);
void candidates_free(struct candidates *candidates);

#endif
