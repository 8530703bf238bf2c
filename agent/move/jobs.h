#ifndef MOVE_JOBS_H
#define MOVE_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "move/selection.h"

struct error;

/*
 * What has to be fetched: each chunk once, however many files and extents
 * share it; of a chunk of which little is wanted only the ranges, where the
 * manifest says how to check them.
 */

/* Where bytes of a chunk go. */
struct job_place {
	const struct manifest_chunk *chunk;
	const struct manifest *manifest;
	uint64_t offset;		/* in the chunk */
	uint64_t length;
	const uint8_t *digest;		/* of these bytes; NULL: not known */
	size_t part;
	uint64_t file_offset;
	struct origin *origin;		/* of the extent */
};

/* One GET. */
struct job {
	const struct manifest_chunk *chunk;
	const struct manifest *manifest;	/* one that names it */
	bool whole;			/* checked by the chunk's hash, else each
					 * place by its own */
	uint64_t offset;
	uint64_t length;
	const struct job_place *places;	/* by offset */
	size_t count;
};

struct jobs {
	struct job_place *places;
	size_t place_count;
	struct job *all;
	size_t count;
	uint64_t bytes;			/* of all GETs */
};

/**
 * jobs_make(selection, jobs, error):
 * From every extent of the items that have to be made that is neither staged
 * nor to be had from a local file.
 * Return 0 or -1; free it with jobs_free.
 */
int jobs_make(const struct selection *selection, struct jobs *jobs,
    struct error *error);

/**
 * jobs_free(jobs):
 * Free what ${jobs} holds.
 */
void jobs_free(struct jobs *jobs);

#endif
