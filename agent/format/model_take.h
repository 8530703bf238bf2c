#ifndef FORMAT_MODEL_TAKE_H
#define FORMAT_MODEL_TAKE_H

#include "format/model.h"

struct error;
struct key;
struct key_tree;

/*
 * Filling a model from a tree of keys: what the layouts share.
 */

/* What a layout knows: how to make a tensor of a key of its tree. */
struct model_maker {
	/*
	 * Fill ${tensor}, all but its name.  Return 0; 1 with *${why} it
	 * cannot be taken (static text); -1: nothing is kept in ${tensor}
	 * either way.
	 */
	int (*make)(void *context, const struct key *key,
	    struct tensor *tensor, const char **why, struct error *error);
	void *context;
};

/**
 * model_take(tree, maker, options, model, error):
 * Choose what is the model in ${tree} and add its tensors, under their names
 * below the choice, to ${model}.  May be called once for each file.
 */
int model_take(const struct key_tree *tree, const struct model_maker *maker,
    const struct model_options *options, struct model *model,
    struct error *error);

/**
 * model_finish(model, options, error):
 * All files are taken: strip prefixes, refuse (-1) names that come twice and
 * a model without a tensor.
 */
int model_finish(struct model *model, const struct model_options *options,
    struct error *error);

/**
 * model_refuse(model, name, why, error):
 * Add "name: why" to `refused`.
 */
int model_refuse(struct model *model, const char *name, const char *why,
    struct error *error);

#endif
