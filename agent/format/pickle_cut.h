#ifndef FORMAT_PICKLE_CUT_H
#define FORMAT_PICKLE_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/pickle_spans.h"

struct buffer;
struct error;

/**
 * pickle_cut(spans, drops, pickle, error):
 * Write the pickle of ${spans} into ${pickle} with None for the value of each
 * pair whose ${drops} is true.  What in a dropped value is remembered and
 * asked for later is still made there, and thrown away.  Numbers of the memo
 * are written out and frames left out, so that nothing else shifts.  Return 0
 * or -1.
 */
int pickle_cut(const struct pickle_spans *spans, const bool *drops,
    struct buffer *pickle, struct error *error);

#endif
