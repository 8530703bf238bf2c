#ifndef FORMAT_SPLICE_H
#define FORMAT_SPLICE_H

#include <stddef.h>
#include <stdint.h>

#include "format/model.h"

struct error;
struct source;

/*
 * A torch zip without its optimizer, still what its own framework loads: the
 * pickle stays as it is, classes and all, but the values of the optimizer's
 * keys at its top are None, and the storages that only they used are left
 * out.  For pickled modules (YOLO), which a state dict cannot stand in for.
 */

/* A record of the old file that goes into the new one as it is. */
struct splice_copy {
	uint64_t from;		/* offset in the old file */
	uint64_t length;
};

struct splice {
	/* outline.places[i] is where copies[i] goes; checksums are needed,
	 * one a copy; outline.types is NULL. */
	struct model_outline outline;
	struct splice_copy *copies;	/* in the order of the old file */
	size_t count;
	char dropped[160];	/* the keys, for people: "optimizer" */
	uint64_t dropped_bytes;	/* of storages */
};

/**
 * splice_make(source, splice, error):
 * Plan the new file for the torch zip ${source}; fill ${splice} (free it with
 * splice_free, also after an error).  Reads only structure.  Return 0; -1:
 * ERROR_USAGE when it holds no optimizer, CAUSE_UNSUPPORTED for the legacy
 * format or a top that is no dict, ERROR_DAMAGED.
 */
int splice_make(const struct source *source, struct splice *splice,
    struct error *error);

/**
 * splice_free(splice): free what it holds, not itself.
 */
void splice_free(struct splice *splice);

#endif
