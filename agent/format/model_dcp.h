#ifndef FORMAT_MODEL_DCP_H
#define FORMAT_MODEL_DCP_H

#include "format/model.h"

struct error;

/*
 * The model in a directory of torch.distributed.checkpoint: `.metadata`, a
 * pickle of what tensors there are and where their chunks lie, and the files
 * that it names (torch/distributed/checkpoint/metadata.py, filesystem.py).
 */

/**
 * model_dcp_take(files, count, metadata, options, model, error):
 * Add the tensors of the checkpoint whose .metadata is ${files}[${metadata}],
 * to ${model}.
 */
int model_dcp_take(const struct model_file *files, size_t count,
    size_t metadata, const struct model_options *options, struct model *model,
    struct error *error);

/**
 * model_dcp_print(source, text, error):
 * The keys in the .metadata ${source} for people.
 */
int model_dcp_print(const struct source *source, struct buffer *text,
    struct error *error);

#endif
