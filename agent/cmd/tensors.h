#ifndef CMD_TENSORS_H
#define CMD_TENSORS_H

#include <jansson.h>

struct error;
struct model;
struct options;
struct subject;

/*
 * What is printed of the tensors of a checkpoint.
 */

/**
 * tensors_print(model):
 * A line for each tensor or part: type, shape, bytes, name.
 */
void tensors_print(const struct model *model);

/**
 * tensors_fill(object, model):
 * Set layout, key, tensors, tensor_bytes, parts, left_out, left_out_bytes,
 * refused and note.  Return 0, or -1 when out of memory.
 */
int tensors_fill(json_t *object, const struct model *model);

/**
 * tensors_subject(object, subject):
 * Set name, choice, and what `list` says of it when it is in the remote.
 * Return 0, or -1 when out of memory.
 */
int tensors_subject(json_t *object, const struct subject *subject);

/**
 * tensors_print_subject(subject):
 * The checkpoint and why it was taken, without a newline.
 */
void tensors_print_subject(const struct subject *subject);

/**
 * tensors_read(subject, options, model, error):
 * model_read with what ${options} choose.  When it is in doubt which part is
 * the model, print the tree of keys on standard error.
 */
int tensors_read(const struct subject *subject, const struct options *options,
    struct model *model, struct error *error);

#endif
