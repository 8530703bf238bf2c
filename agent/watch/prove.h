#ifndef WATCH_PROVE_H
#define WATCH_PROVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "format/checkpoint.h"
#include "format/format.h"

struct error;
struct map;
struct view_options;

/* What was learnt of a file or folder while it had this identity. */
struct proof {
	char *path;
	struct identity identity;
	uint64_t seen;		/* clock_monotonic() when it was seen so first */
	bool free;		/* nobody was writing it */
	bool inspected;
	enum format_kind kind;
	enum format_verdict verdict;
	bool hollow;
	char *reason;		/* of the inspection; may be NULL */
};

/* The proving of all units of one view. */
struct prover {
	const struct map *map;
	const struct view_options *options;
	const struct proof *known;	/* of the view before, sorted by path */
	size_t known_count;
	struct proof *proofs;		/* of this one */
	size_t proof_count;
	uint64_t now;			/* clock_monotonic() */
	struct timespec wall;
	uint64_t check_again;
	bool leases;			/* no file refused a lease */
};

/* Times of DESIGN 6, where the options say nothing. */
#define PROVE_SETTLE_KNOWN (UINT64_C(10) * 1000000000)
#define PROVE_SETTLE_UNKNOWN (UINT64_C(2) * 1000000000)
#define PROVE_SETTLE_MARKER (UINT64_C(2) * 1000000000)

/* How soon a file that is being written is looked at again: a mapping that
 * is given up makes no event. */
#define PROVE_AGAIN_WRITTEN (UINT64_C(1000000000))
#define PROVE_AGAIN_CHANGED (UINT64_C(100000000))

/**
 * prove_unit(prover, unit, checkpoint, error):
 * Find the state of the unit of that number and fill state, proven and reason
 * of ${checkpoint}.  Return 0, or -1 when memory ran out.
 */
int prove_unit(struct prover *prover, size_t unit,
    struct checkpoint *checkpoint, struct error *error);

/**
 * prove_keep(prover, unit, error):
 * The unit is as it was in the view before: carry over what is known of it.
 */
int prove_keep(struct prover *prover, size_t unit, struct error *error);

/**
 * prove_end(prover):
 * Sort what was learnt, for the next view.
 */
void prove_end(struct prover *prover);

/**
 * prove_free(proofs, count):
 * Free them.
 */
void prove_free(struct proof *proofs, size_t count);

#endif
