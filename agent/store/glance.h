#ifndef STORE_GLANCE_H
#define STORE_GLANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/key.h"
#include "store/lost.h"

struct backend;
struct error;
struct gathering;
struct manifest;
struct terms;

/*
 * One look at the truth of a node (DESIGN 5), as truth_read and a takeover
 * need it.  Whether the term still counts afterwards is theirs to ask.
 */
struct glance {
	bool open;		/* there is an open term */
	struct term term;	/* the highest open one */
	char *agent;		/* who opened it */
	uint64_t newest_attempt;	/* of its newest manifest; 0: none */

	/* Every valid checkpoint, newest commit first. */
	struct manifest **valid;
	size_t count;
	size_t resume;		/* SIZE_MAX: none; the next best when it is lost */
	struct lost_list lost;	/* named by the truth, but damaged or gone */
	bool resume_lost;	/* the resume point is among them */
	char *needs_writer;	/* a feature of theirs that a writer must know */
};

/* How to look. */
struct glance_rules {
	uint32_t below;		/* only terms with a lower number; 0: all */
	bool surviving;		/* do without the truth itself when it is damaged */
	bool last;		/* what is gone is damaged, too */
};

enum glance_result { GLANCE_FAILED = -1, GLANCE_DONE, GLANCE_GONE };

/**
 * glance_look(backend, terms, rules, gathering, glance, damaged, error):
 * Fill ${glance} (glance_free).  A damaged checkpoint that the truth names is
 * left out and put into glance->lost; the truth itself, that is the newest
 * manifest or the open.json of the term, must be whole unless
 * rules->surviving.  GLANCE_GONE: something that is named is not there,
 * ${error} says what: look again from a new list of terms.  ${damaged} gets
 * the first error that was passed over (may be NULL without
 * rules->surviving).
 */
enum glance_result glance_look(struct backend *backend, const struct terms *terms,
    const struct glance_rules *rules, struct gathering *gathering,
    struct glance *glance, struct error *damaged, struct error *error);

/**
 * glance_free(glance, gathering):
 * Free what ${glance} holds, not itself; the manifests go back to ${gathering}
 * (NULL: are freed too).  It may be freed twice.
 */
void glance_free(struct glance *glance, struct gathering *gathering);

#endif
