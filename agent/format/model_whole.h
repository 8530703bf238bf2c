#ifndef FORMAT_MODEL_WHOLE_H
#define FORMAT_MODEL_WHOLE_H

#include "format/model.h"

struct error;

/*
 * Weights that are taken as they are: whole files, or a member of a zip.
 */

/**
 * model_whole_file(file, index, model, error):
 * Add the file, the ${index}th, as a part; `note` says what is known of an
 * optimizer inside.
 */
int model_whole_file(const struct model_file *file, size_t index,
    struct model *model, struct error *error);

/**
 * model_whole_member(file, index, name, model, error):
 * Add the member ${name} of the zip ${file}.  Return 1, 0 when it has none of
 * that name, -1.
 */
int model_whole_member(const struct model_file *file, size_t index,
    const char *name, struct model *model, struct error *error);

#endif
