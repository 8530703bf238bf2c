#ifndef FORMAT_TORCH_TREE_H
#define FORMAT_TORCH_TREE_H

struct error;
struct key_tree;
struct pickle;

/**
 * torch_tree_make(pickle, tree, error):
 * Fill ${tree}, which is new and empty, with the keys of ${pickle}, which
 * outlives it: entries of dicts, places in lists and tuples, attributes of
 * objects, arguments of calls that are not known.  Of a pickled module the
 * names are those of its state dict.  The origin of a tensor is its node.
 * What holds itself is walked once.  Return 0; -1: CAUSE_LIMIT when walking
 * takes too long or there are too many tensors.
 */
int torch_tree_make(const struct pickle *pickle, struct key_tree *tree,
    struct error *error);

#endif
