#ifndef FORMAT_MODEL_TORCH_H
#define FORMAT_MODEL_TORCH_H

#include "format/model.h"

struct error;
struct key_tree;

/*
 * The model in files of torch.save, zip or legacy.
 */

/**
 * model_torch_take(source, file, options, model, error):
 * Add the tensors of ${source}, the ${file}th, to ${model} (model_take).
 */
int model_torch_take(const struct source *source, size_t file,
    const struct model_options *options, struct model *model,
    struct error *error);

/**
 * model_torch_print(source, text, error):
 * Its tree of keys for people.
 */
int model_torch_print(const struct source *source, struct buffer *text,
    struct error *error);

#endif
