#ifndef FORMAT_KEY_TREE_H
#define FORMAT_KEY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena.h"

struct buffer;
struct error;

/*
 * The keys of a checkpoint under which tensors lie, as a tree, whatever the
 * layout: nested dicts and modules of a pickle, or names with dots.  Keys
 * without a tensor beneath are not in it.
 */
enum key_kind {
	KEY_BRANCH,
	KEY_MODULE,		/* a branch that is a pickled module */
	KEY_TENSOR,
	KEY_REFUSED		/* a tensor that cannot be taken; `why` */
};

struct key {
	const char *name;	/* NULL: `number` is its name */
	size_t length;		/* of the name, which may hold anything */
	uint64_t number;
	enum key_kind kind;
	bool absolute;		/* KEY_TENSOR: the name is the whole name */
	bool scalar;		/* KEY_TENSOR: without dimensions */
	bool optimizer;		/* looks like the state of an optimizer */
	bool cut;		/* something beneath lies too deep to be seen */
	const char *why;
	struct key *parent, *child, *last, *next;
	uint64_t tensors;	/* here and beneath, the refused ones too */
	uint64_t bytes;
	uint64_t optimizer_tensors;	/* beneath what looks like one */
	const void *origin;	/* what the layout knows of the tensor */
};

struct key_tree {
	struct arena arena;
	struct key *root;
	uint64_t tensors;
};

/* More is refused (CAUSE_LIMIT). */
#define KEY_TREE_MEMORY_MAXIMUM (UINT64_C(192) << 20)
#define KEY_TREE_TENSORS_MAXIMUM 1000000
#define KEY_TREE_NAME_MAXIMUM 4096
#define KEY_TREE_DEPTH_MAXIMUM 128

/**
 * key_tree_init(tree, error):
 * A tree with an empty root.  Free it with key_tree_free, also after an error.
 */
int key_tree_init(struct key_tree *tree, struct error *error);
void key_tree_free(struct key_tree *tree);

/**
 * key_tree_add(tree, parent, kind, error):
 * A new last child of ${parent}, without a name; NULL: CAUSE_LIMIT or
 * CAUSE_MEMORY.  Names are not copied: they outlive the tree.
 */
struct key *key_tree_add(struct key_tree *tree, struct key *parent,
    enum key_kind kind, struct error *error);

/**
 * key_tree_count(tree, key, bytes, error):
 * ${key}, a tensor of ${bytes}, is there: count it in all its ancestors.
 */
int key_tree_count(struct key_tree *tree, struct key *key, uint64_t bytes,
    struct error *error);

/**
 * key_tree_is(key, name):
 * Whether the name is ${name}.
 */
bool key_tree_is(const struct key *key, const char *name);

/**
 * key_tree_path(from, key, path, error):
 * Add the path of ${key} beneath its ancestor ${from}, with dots between, to
 * ${path}; nothing when they are the same.  Return 0 or -1: CAUSE_LIMIT when
 * the buffer's limit is reached.
 */
int key_tree_path(const struct key *from, const struct key *key,
    struct buffer *path, struct error *error);

/**
 * key_tree_print(tree, text, error):
 * The tree for people: a line a branch, with how many tensors and bytes lie
 * beneath, indented; at most some 300 lines.
 */
int key_tree_print(const struct key_tree *tree, struct buffer *text,
    struct error *error);

#endif
