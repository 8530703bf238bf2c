#ifndef FORMAT_TORCH_WRITE_H
#define FORMAT_TORCH_WRITE_H

#include <stdint.h>

#include "format/model.h"

struct buffer;
struct error;

/**
 * torch_write_pickle(model, types, pickle, error):
 * The data.pkl (protocol 2) of an OrderedDict with the tensors of ${model}
 * under their names, of the given types and contiguous, the ith one in the
 * storage "i": only what torch.load(weights_only=True) allows.  Added to
 * ${pickle}.  Return 0 or -1.
 */
int torch_write_pickle(const struct model *model,
    const enum tensor_type *types, struct buffer *pickle,
    struct error *error);

#endif
