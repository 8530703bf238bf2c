#ifndef FORMAT_CONVERT_H
#define FORMAT_CONVERT_H

#include <stdbool.h>
#include <stddef.h>

#include "format/tensor.h"

/*
 * Floating numbers from one type to another, little-endian, rounded once to
 * the nearest, ties to even (IEEE 754); too large becomes infinity, too small
 * zero of the same sign; NaN stays NaN and quiet, its sign and upper bits
 * kept.  What is of that type already is copied.
 */

/**
 * convert_possible(from, to):
 * Whether convert_elements can: F64, F32, F16, BF16 to F32, F16, BF16.
 */
bool convert_possible(enum tensor_type from, enum tensor_type to);

/**
 * convert_elements(from, to, in, out, count):
 * Convert ${count} elements that convert_possible allows.  ${in} and ${out}
 * need no alignment and do not overlap.
 */
void convert_elements(enum tensor_type from, enum tensor_type to,
    const void *in, void *out, size_t count);

#endif
