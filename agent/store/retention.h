#ifndef STORE_RETENTION_H
#define STORE_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct manifest;

/*
 * What stays valid, and which checkpoint is the resume point (DESIGN 5).
 * Pure functions: no store, no clock.
 */

/* One valid checkpoint as retention sees it, in order of commit. */
struct retention_item {
	const struct manifest *manifest;
	bool adopted;		/* from an earlier term */
	bool present;		/* the newest version of a name that still lies
				 * in the directory */
	bool pointed;		/* the newest version of a name that a pointer
				 * in the directory names */
	bool resume;		/* adopted, and the resume point then */
	bool keep;		/* out: stays valid */
};

struct retention_rules {
	uint64_t keep;		/* newest resume points; 0: all of everything */
};

/**
 * retention_decide(items, count, rules):
 * Set `keep` of each of the ${count} items (oldest commit first; the last one
 * is being committed now and always stays).
 *
 * Kept are the newest ${rules}->keep resume points; the newest of each best
 * and each final series; of both also the newest proven one, when the newest
 * are not; what is `present`; and, of what was adopted, the newest, the newest
 * resume point, the resume point then and the newest of each best and final
 * series, each until this term has a checkpoint with a higher step (step
 * unknown: for the whole term).
 */
void retention_decide(struct retention_item *items, size_t count,
    const struct retention_rules *rules);

/**
 * retention_resume(items, count):
 * The index of the resume point among those kept, or SIZE_MAX: among this
 * term's own commits that are not best or final: pointed, then step, then
 * time of completion, then name; else what was adopted, and there what was the
 * resume point; best or final only when there is nothing else.  Steps are
 * compared only when all that are compared have one.
 */
size_t retention_resume(const struct retention_item *items, size_t count);

#endif
