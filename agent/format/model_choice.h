#ifndef FORMAT_MODEL_CHOICE_H
#define FORMAT_MODEL_CHOICE_H

#include <stdbool.h>

struct error;
struct key;
struct key_tree;
struct model_options;

/*
 * Which part of a tree of keys is the model.
 *
 * The rules, from the top down; "holds" counts tensors.
 *  1. --key: that subtree, whole; "." is the top.
 *  2. A pickled module, or a lone tensor, is the model.
 *  3. --ema: the one key with a name of averaged weights; none: refused.
 *  4. The one key with a sure name (state_dict, model_state_dict, module,
 *     model, model0 and so on); two that hold tensors: refused.
 *  5. Without one: everything, when it is a map of names to tensors; without
 *     what belongs to the rest (optimizer and so on, by name or by its
 *     structure), when the names are those of layers.
 *  6. Else the only other key that is not the rest's; averaged weights when
 *     there is no other.  More than one: refused.
 * In what was chosen by 3, 4 or 6 the same is asked again when it holds an
 * optimizer, or keys as at a checkpoint's top (Composer's `state`, a pickled
 * trainer).
 */
enum model_choice_kind {
	MODEL_CHOICE_ALL,	/* all beneath the base */
	MODEL_CHOICE_TENSORS,	/* beneath the base, but for the rest's keys */
	MODEL_CHOICE_NUMBERED,	/* its keys model0, model1, ... */
	MODEL_CHOICE_PREFIX	/* those whose name begins with `prefix` and a dot */
};

struct model_choice {
	enum model_choice_kind kind;
	const struct key *base;	/* names begin below it */
	const char *prefix;	/* the options' */
};

/**
 * model_choice_make(tree, options, choice, error):
 * Choose.  Return 0; -1: ERROR_USAGE when it is in doubt or what the options
 * ask for is not there, with the keys at the top in the message.
 */
int model_choice_make(const struct key_tree *tree,
    const struct model_options *options, struct model_choice *choice,
    struct error *error);

/**
 * model_choice_holds(choice, child):
 * Whether the subtree of ${child}, a child of the base, belongs to it.
 */
bool model_choice_holds(const struct model_choice *choice,
    const struct key *child);

#endif
