#ifndef MOVE_WEIGHTS_H
#define MOVE_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/model.h"
#include "move/progress.h"
#include "move/ranges.h"

struct backend;
struct error;
struct manifest;
struct remote_file_set;
struct splice;

/*
 * Only the weights: one file made of the tensors of a checkpoint, which lies
 * here or in the remote.  What is asked of the remote is what the tensors
 * need and little more (ranges.h); it is checked while it streams to its
 * place.  Memory is the same for any size.
 */
struct weights {
	/* What model_read had.  In the remote (backend not NULL) file i is
	 * entry entries[i] of the manifest, and its source is not read. */
	const struct model_file *files;
	size_t count;
	struct backend *backend;
	const struct manifest *manifest;
	const size_t *entries;
	const struct remote_file_set *set;	/* what its cache holds is not
				 * fetched again; may be NULL */
	unsigned in_flight;		/* GETs at a time, 0: 16 */

	/* Asked before OUT gets its name: whether local files are still what
	 * they were.  May be NULL. */
	int (*check)(const void *context, struct error *error);
	const void *check_context;

	_Atomic bool cancel;
	struct progress progress;
};

/* A run of bytes of a file that is needed. */
struct weights_bit {
	size_t file;
	uint64_t from;			/* in the file */
	uint64_t length;
	size_t item;			/* the outline's place it belongs to */
	bool turned;			/* it has to be gathered or converted */
	uint64_t to;			/* in OUT, when not turned */
	const void *data;		/* the bytes themselves; NULL: not here */
};

struct weights_plan {
	uint64_t size;			/* of OUT */
	uint64_t fetch_bytes;		/* from the remote */

	/* weights_run's. */
	const struct model *model;	/* NULL: nothing is turned */
	struct model_outline *outline;
	struct model_outline own;
	size_t items;
	struct weights_bit *bits;	/* in the order of files and offsets */
	size_t bit_count;
	struct ranges_wish *wishes;	/* one for each bit */
	struct ranges ranges;
};

/**
 * weights_plan_model(weights, model, output, convert, plan, error):
 * OUT has all tensors of ${model}, floating ones converted to *${convert}
 * (NULL: as they are).  Free ${plan} with weights_plan_free, also after an
 * error; ${model} must outlive it, and the set's sources must not be read
 * before it was run.  Return 0 or -1.
 */
int weights_plan_model(struct weights *weights, const struct model *model,
    enum model_output output, const enum tensor_type *convert,
    struct weights_plan *plan, struct error *error);

/**
 * weights_plan_splice(weights, splice, plan, error):
 * OUT is the only file without its optimizer.
 */
int weights_plan_splice(struct weights *weights, struct splice *splice,
    struct weights_plan *plan, struct error *error);

/**
 * weights_plan_part(weights, part, plan, error):
 * OUT is one part of a model that is taken as it is.
 */
int weights_plan_part(struct weights *weights, const struct model_part *part,
    struct weights_plan *plan, struct error *error);

/**
 * weights_run(weights, plan, path, replace, error):
 * Make the file ${path}, whose directory is there.  A plan is run once.
 * Return 0 when it is whole and on the disk; -1: ERROR_DAMAGED, CAUSE_EXISTS
 * when something has that name and not ${replace}, CAUSE_NO_SPACE,
 * CAUSE_UNREACHABLE, CAUSE_CANCELLED...; then nothing is there, or what was
 * there before.
 */
int weights_run(struct weights *weights, struct weights_plan *plan,
    const char *path, bool replace, struct error *error);

/**
 * weights_plan_free(plan): free what it holds, not itself.
 */
void weights_plan_free(struct weights_plan *plan);

#endif
