#ifndef LIFE_PRECEDENCE_H
#define LIFE_PRECEDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct checkpoint;
struct manifest;

/*
 * Which is newer: a complete checkpoint in the directory whose content the
 * remote does not know, or the remote's resume point?  Pure functions.
 *
 * The rule.  When the remote's highest open term is the last one that this
 * directory's agent opened, nobody else has written since, and this machine's
 * clock orders everything: the local one is newer when it was completed after
 * the resume point (one that this agent committed itself), or after the term
 * was opened (one that it adopted).  A higher step is newer in any case.
 * Otherwise the steps decide when both are known; times of two machines only
 * as the last resort.  Where nothing is restored (`agent`, `push`,
 * --no-restore) and the resume point does not lie here, a trainer goes on from
 * what does: that is newer, whatever its step.
 */
struct precedence {
	const struct manifest *resume;	/* the remote's; NULL: it has none */
	bool mine;		/* its highest open term is this directory's last */
	bool own;		/* and that term committed the resume point */
	struct timespec opened;	/* when that term was opened, by this machine */
	bool local_first;	/* nothing is restored, and the resume point is not here */
};

/**
 * precedence_newer(precedence, local):
 * Whether ${local}, complete and unknown to the remote, is newer than the
 * remote's resume point.
 */
bool precedence_newer(const struct precedence *precedence,
    const struct checkpoint *local);

/**
 * precedence_best(locals, count, pointed, pointed_count):
 * Which of ${locals} a trainer would go on from: one that a pointer names,
 * then the highest step, then the latest, then the name; best and final only
 * when there is nothing else.  SIZE_MAX when ${count} is 0.
 */
size_t precedence_best(struct checkpoint *const *locals, size_t count,
    char *const *pointed, size_t pointed_count);

#endif
