#ifndef STORE_TRUTH_H
#define STORE_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/key.h"
#include "store/lost.h"
#include "store/manifest.h"

struct backend;
struct error;

/*
 * The truth of a node (DESIGN 5): what the newest manifest of its highest
 * open term says, or, before that term's first commit, its open.json.
 */
struct truth {
	struct term term;	/* the highest open term */
	char *agent;		/* who opened it: "host, 2026-11-30T...", for people */

	/* Every valid checkpoint, newest commit first. */
	struct manifest **valid;
	size_t count;
	size_t resume;		/* index of the resume point; SIZE_MAX: none */

	/* What it names as valid, too, but is damaged or gone. */
	struct lost_list lost;
	bool resume_lost;	/* the resume point is among them; `resume` is
				 * then the next best */
};

/**
 * truth_read(backend, node, error):
 * Find the highest open term, read all that it names, and look again whether
 * it is still the highest; a change, or anything that is gone, means start
 * over (three times).  NULL with ERROR_NOTHING and CAUSE_NOT_FOUND only when
 * a look succeeded and found no open term or no checkpoint; ERROR_DAMAGED
 * names the damaged manifest; CAUSE_UNREACHABLE.  Waits.
 *
 * The newest manifest (or open.json), which says what is valid, and the resume
 * point must be whole.  Any other checkpoint whose manifest is damaged, or
 * still gone after the third time, costs only itself: it is left out, stands
 * in truth->lost, and one log line names it.  truth_find does not take an
 * older checkpoint for a lost one.
 */
struct truth *truth_read(struct backend *backend, uint32_t node,
    struct error *error);

/**
 * truth_read_any(backend, node, error):
 * The same, but the resume point may be lost, too (truth->resume_lost): for
 * who wants another checkpoint, or none.
 */
struct truth *truth_read_any(struct backend *backend, uint32_t node,
    struct error *error);

/**
 * truth_read_surviving(backend, node, damaged, error):
 * The same, but leave out manifests that are damaged or cannot be read as
 * such, as long as the rest of the truth can be told, and give the first
 * such error in ${damaged} (class ERROR_NONE: none).  When the newest manifest
 * itself is damaged, the next older ones of the same term say what was valid.
 * For `restore --fallback` and `list`.
 */
struct truth *truth_read_surviving(struct backend *backend, uint32_t node,
    struct error *damaged, struct error *error);

/**
 * truth_resume(truth, error):
 * The resume point; NULL with ERROR_DAMAGED when it is lost, with
 * ERROR_NOTHING when there is none.
 */
const struct manifest *truth_resume(const struct truth *truth,
    struct error *error);

/**
 * truth_find(truth, text, error):
 * The newest valid checkpoint whose name or id is ${text}; NULL with
 * ERROR_NOTHING, listing near misses in the message; ERROR_DAMAGED when the
 * newest one of this name is lost.
 */
const struct manifest *truth_find(const struct truth *truth, const char *text,
    struct error *error);

/**
 * truth_best(truth):
 * The newest valid checkpoint of role best, or NULL.
 * truth_final(truth): the same for final.
 */
const struct manifest *truth_best(const struct truth *truth);
const struct manifest *truth_final(const struct truth *truth);

/**
 * truth_free(truth):
 * Behave consistently with free(NULL).
 */
void truth_free(struct truth *truth);

#endif
