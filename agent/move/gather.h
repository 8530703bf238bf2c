#ifndef MOVE_GATHER_H
#define MOVE_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/source.h"
#include "format/tensor.h"

struct error;

/*
 * Tensors whose bytes do not lie in the file as they are wanted: transposed,
 * with steps, in shards, of another type.  They are read in blocks, turned in
 * memory, and written in C order; the memory is the same for any tensor.
 */
struct gather;

/* What it takes: a block that was read, one in order, one converted. */
#define GATHER_MEMORY ((size_t)14 << 20)

/**
 * gather_new(error):
 * NULL when out of memory.
 */
struct gather *gather_new(struct error *error);

/**
 * gather_tensor(gather, sources, tensor, type, fd, place, error):
 * Write ${tensor}, whose pieces lie in ${sources}[piece->file], to the open
 * file ${fd} from ${place} on, as elements of ${type} (its own, or one that
 * convert_possible allows).  Return 0 or -1.
 */
int gather_tensor(struct gather *gather,
    const struct source *const *sources, const struct tensor *tensor,
    enum tensor_type type, int fd, uint64_t place, struct error *error);

/**
 * gather_span(tensor, piece):
 * How many bytes of its file ${piece} reaches over, from its offset on; 0
 * when it is empty.
 */
uint64_t gather_span(const struct tensor *tensor,
    const struct tensor_piece *piece);

/**
 * gather_is_run(tensor, piece, type, place):
 * Whether ${piece} is one run of bytes that goes to one run of the tensor in
 * ${type} as it is; *${place} is where in the tensor's bytes.
 */
bool gather_is_run(const struct tensor *tensor,
    const struct tensor_piece *piece, enum tensor_type type, uint64_t *place);

/**
 * gather_free(gather):
 * Behave consistently with free(NULL).
 */
void gather_free(struct gather *gather);

#endif
