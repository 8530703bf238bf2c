#ifndef STORE_VIEW_H
#define STORE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/key.h"

struct backend;
struct error;
struct gathering;
struct manifest;
struct terms;

/*
 * One look at the truth of a node (DESIGN 5), as truth_read and a takeover
 * need it.  Whether the term still counts afterwards is theirs to ask.
 */
struct view {
	bool open;		/* there is an open term */
	struct term term;	/* the highest open one */
	char *agent;		/* who opened it */
	uint64_t newest_attempt;	/* of its newest manifest; 0: none */

	/* Every valid checkpoint, newest commit first. */
	struct manifest **valid;
	size_t count;
	size_t resume;		/* SIZE_MAX: none */
	char *needs_writer;	/* a feature of theirs that a writer must know */
};

/* How to look. */
struct view_rules {
	uint32_t below;		/* only terms with a lower number; 0: all */
	bool surviving;		/* leave out what is damaged */
	bool last;		/* with surviving: what is gone is damaged too */
};

enum view_result { VIEW_FAILED = -1, VIEW_DONE, VIEW_GONE };

/**
 * view_look(backend, terms, rules, gathering, view, damaged, error):
 * Fill ${view} (view_free).  VIEW_GONE: something that is named is not there,
 * ${error} says what: look again from a new list of terms.  ${damaged} gets
 * the first error that was passed over (rules->surviving only; else NULL).
 */
enum view_result view_look(struct backend *backend, const struct terms *terms,
    const struct view_rules *rules, struct gathering *gathering,
    struct view *view, struct error *damaged, struct error *error);

/**
 * view_free(view, gathering):
 * Free what ${view} holds, not itself; the manifests go back to ${gathering}
 * (NULL: are freed too).  It may be freed twice.
 */
void view_free(struct view *view, struct gathering *gathering);

#endif
