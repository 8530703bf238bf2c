#ifndef FORMAT_MODEL_SAFETENSORS_H
#define FORMAT_MODEL_SAFETENSORS_H

#include "format/model.h"

struct error;
struct key_tree;

/**
 * model_safetensors_take(source, file, options, model, error):
 * Add the tensors of the safetensors file ${source}, the ${file}th, to
 * ${model}: all of them, unless a key is asked for.
 */
int model_safetensors_take(const struct source *source, size_t file,
    const struct model_options *options, struct model *model,
    struct error *error);

/**
 * model_safetensors_print(source, text, error):
 * Its names for people.
 */
int model_safetensors_print(const struct source *source, struct buffer *text,
    struct error *error);

#endif
