#ifndef STORE_LOST_H
#define STORE_LOST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * A checkpoint that the truth names as valid, but whose manifest is damaged or
 * gone.
 */
struct lost {
	char *key;		/* of its manifest */
	char *name;
	size_t newer;		/* how many of the valid ones are newer */
	bool resume;		/* it is the resume point */
	struct error error;	/* ERROR_DAMAGED, says what is wrong with it */
};

/* Those of one look. */
struct lost_list {
	struct lost *items;
	size_t count;
};

/**
 * lost_add(list, key, name, error):
 * Put one behind the others and return it, or NULL when out of memory.
 */
struct lost *lost_add(struct lost_list *list, const char *key,
    const char *name, const struct error *error);

/**
 * lost_is(lost, text):
 * Whether ${text} is its name or its id.
 */
bool lost_is(const struct lost *lost, const char *text);

/**
 * lost_free(list):
 * Free what ${list} holds, not itself; it may be freed twice.
 */
void lost_free(struct lost_list *list);

#endif
