#ifndef FORMAT_MODEL_FIT_H
#define FORMAT_MODEL_FIT_H

#include "format/model.h"

/**
 * model_fit_type(type, convert):
 * The type that a tensor of ${type} has in the output (model_outline_make).
 */
enum tensor_type model_fit_type(enum tensor_type type,
    const enum tensor_type *convert);

/**
 * model_fit_objection(tensor, output, type):
 * Why ${tensor} cannot go into such a file as ${type}; NULL when it can.
 */
const char *model_fit_objection(const struct tensor *tensor,
    enum model_output output, enum tensor_type type);

#endif
