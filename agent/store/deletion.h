#ifndef STORE_DELETION_H
#define STORE_DELETION_H

#include <stddef.h>
#include <stdint.h>

#include "store/key.h"

/* A DELETE that is planned. */
struct deletion {
	uint64_t due;		/* clock_monotonic() */
	struct key_parts parts;	/* of its key */
};

/* Those that wait, in the order in which they are to be sent. */
struct deletions {
	struct deletion *items;
	size_t first, count, capacity;
};

/**
 * deletion_add(deletions, parts, due):
 * Plan one.  Return 0, or -1 when out of memory (a later sweep finds it).
 */
int deletion_add(struct deletions *deletions, const struct key_parts *parts,
    uint64_t due);

/**
 * deletion_due(deletions, now, deletion):
 * Take the first one out when it is due.  Return 1, or 0 when none is.
 */
int deletion_due(struct deletions *deletions, uint64_t now,
    struct deletion *deletion);

/**
 * deletion_next(deletions):
 * When the first one is due; CLOCK_NEVER: none.
 */
uint64_t deletion_next(const struct deletions *deletions);

/**
 * deletion_key(parts, key):
 * Write the key that ${parts} describe and return it.
 */
char *deletion_key(const struct key_parts *parts, char key[KEY_SIZE]);

/**
 * deletion_clear(deletions):
 * Forget all, and free what ${deletions} holds.
 */
void deletion_clear(struct deletions *deletions);

#endif
