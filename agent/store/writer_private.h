#ifndef STORE_WRITER_PRIVATE_H
#define STORE_WRITER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "store/attempt.h"
#include "store/deletion.h"
#include "store/known.h"
#include "store/takeover.h"
#include "store/writer.h"

/* What writer.c, writer_commit.c and writer_delete.c share. */

/* Manifests that are valid no more but may still be looked at. */
#define WRITER_RETIRED 4

/* One valid checkpoint. */
struct writer_item {
	struct manifest *manifest;
	bool adopted;		/* committed before this agent took over */
	bool resume;		/* adopted, and the resume point then */
};

struct writer {
	struct backend *backend;
	uint32_t node, nodes;
	struct retention_rules rules;
	uint64_t delete_delay;
	json_t *identity;
	struct takeover_own own;

	_Atomic uint64_t hurry;	/* writer_hurry; 0: nothing presses */
	pthread_mutex_t mutex;	/* over all below; never held over a request */
	struct term term;
	struct writer_item *items;	/* oldest commit first */
	size_t count, capacity;
	size_t resume;		/* into items; SIZE_MAX: none */
	struct manifest *retired[WRITER_RETIRED];
	size_t retired_count;	/* ever */

	struct known *known;
	struct attempt *attempts;	/* in flight */
	struct attempt *ghosts;	/* given up, their manifest may be the truth */
	uint64_t next_attempt;
	uint64_t committed;	/* the attempt of the newest manifest */
	uint64_t target;
	bool durable;		/* something was committed in this term */
	bool superseded;
	struct error superseded_error;

	struct deletions deletions;
	bool deleting;		/* a thread is in writer_delete_due */
	bool sweep_wanted;	/* something may lie in older terms (G4) */
	uint64_t sweep_from;	/* clock_monotonic(): not before */
	size_t planned_before;	/* deletions planned in older terms */
	bool salvage;		/* something named was lost when we took over:
				 * nothing in older terms is deleted */
};

/**
 * writer_install(writer, takeover, error):
 * With the lock held: ${takeover} is the writer's term now, what it adopted is
 * valid.  Takes what it needs out of ${takeover}.  Return 0, or -1 when out of
 * memory: then the writer must not go on.
 */
int writer_install(struct writer *writer, struct takeover *takeover,
    struct error *error);

/**
 * writer_retire(writer, manifest):
 * With the lock held: ${manifest} is valid no more; it is freed some commits
 * later.
 */
void writer_retire(struct writer *writer, struct manifest *manifest);

/**
 * writer_supersede(writer, error):
 * With the lock held: a newer agent took over, ${error} says who.  Nothing is
 * committed or deleted any more.
 */
void writer_supersede(struct writer *writer, const struct error *error);

/**
 * writer_item_of(writer, parts):
 * With the lock held: the index of the valid checkpoint whose manifest's key
 * is ${parts}, or SIZE_MAX.
 */
size_t writer_item_of(const struct writer *writer,
    const struct key_parts *parts);

/**
 * writer_plan(writer, parts):
 * With the lock held: plan to delete ${parts} after the delay.
 */
void writer_plan(struct writer *writer, const struct key_parts *parts);

/**
 * writer_plan_all(writer):
 * With the lock held, right after a durable commit: plan the deletes of what
 * rule G1 allows, let go of what was given up, and ask for a sweep when it
 * was the term's first.
 */
void writer_plan_all(struct writer *writer);

#endif
