#ifndef FORMAT_TENSOR_MAKE_H
#define FORMAT_TENSOR_MAKE_H

#include "format/tensor.h"

struct error;

/*
 * Making the tensors of tensor.h, for the readers of this room.
 */

/**
 * tensor_make_shape(tensor, type, dimensions, error):
 * A tensor without name or pieces, its shape to be filled.  Return 0 or -1.
 */
int tensor_make_shape(struct tensor *tensor, enum tensor_type type,
    unsigned dimensions, struct error *error);

/**
 * tensor_make_bytes(tensor, error):
 * The shape is there: fill `bytes`.  Return 0, or -1 (ERROR_DAMAGED) when they
 * are too many for any file.
 */
int tensor_make_bytes(struct tensor *tensor, struct error *error);

/**
 * tensor_make_piece(tensor, piece, error):
 * Room for the box of ${piece}, start 0, whose index and place the caller
 * fills.
 */
int tensor_make_piece(const struct tensor *tensor, struct tensor_piece *piece,
    struct error *error);

/**
 * tensor_make_run(tensor, file, offset, error):
 * Its only piece: all of it in C order at ${offset} of ${file}; none when it
 * is empty.
 */
int tensor_make_run(struct tensor *tensor, size_t file, uint64_t offset,
    struct error *error);

/**
 * tensor_make_reach(piece, dimensions, reach):
 * How many elements from the first one of a box that is not empty its last one
 * lies, and 1.  Return 0 or -1 when that overflows.
 */
int tensor_make_reach(const struct tensor_piece *piece, unsigned dimensions,
    uint64_t *reach);

/**
 * tensor_make_free(tensor): free what it holds, not itself.
 */
void tensor_make_free(struct tensor *tensor);

#endif
