#ifndef MOVE_FILLER_H
#define MOVE_FILLER_H

#include <stddef.h>
#include <stdint.h>

#include "move/selection.h"

struct error;
struct staging;

/*
 * The files in staging while they are filled, and made ready for their place.
 */
struct filler;

/**
 * filler_new(staging, target, selection, error):
 * Make every folder, and every file with its size and its room on the disk.
 * ${target} is where donors lie.  NULL with CAUSE_NO_SPACE, CAUSE_DENIED...
 */
struct filler *filler_new(struct staging *staging, int target,
    struct selection *selection, struct error *error);

/**
 * filler_write(filler, part, offset, data, length, error):
 * Write bytes of part number ${part}.  Any thread.
 */
int filler_write(struct filler *filler, size_t part, uint64_t offset,
    const void *data, size_t length, struct error *error);

/**
 * filler_copy(filler, cancel, error):
 * Copy what local files have, checking each hash; what turns out to be
 * something else is to be fetched (ORIGIN_STORE).  Return 0 or -1.
 */
int filler_copy(struct filler *filler, const _Atomic bool *cancel,
    struct error *error);

/**
 * filler_finish(filler, error):
 * Make sure that everything is filled; make links, set modes and times, and
 * have it on the disk: by fsync, or, of many, by one flush for all.
 */
int filler_finish(struct filler *filler, struct error *error);

/**
 * filler_free(filler):
 * Behave consistently with free(NULL).
 */
void filler_free(struct filler *filler);

#endif
