#ifndef LIFE_CAUSES_H
#define LIFE_CAUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Who has said that this machine goes, and when: several may say so, the
 * earliest counts, and one may take it back.  Without clock.
 */

#define CAUSES_MAXIMUM 16

struct cause {
	char source[40];	/* "aws spot", "SIGTERM", "ckptsync notice" */
	char id[96];		/* the same one keeps its id */
	char reason[160];	/* for people */
	uint64_t when;		/* clock_monotonic() of the end */
	bool survives;		/* the disk comes back */
};

struct causes {
	struct cause items[CAUSES_MAXIMUM];
	size_t count;
};

/**
 * causes_add(causes, cause):
 * ${cause} is new, or the one with its id has another time.  Return whether
 * the end came nearer.
 */
bool causes_add(struct causes *causes, const struct cause *cause);

/**
 * causes_remove(causes, id): it was taken back.  Return whether it was there.
 */
bool causes_remove(struct causes *causes, const char *id);

/**
 * causes_first(causes): the one with the earliest end, NULL: none.
 */
const struct cause *causes_first(const struct causes *causes);

#endif
