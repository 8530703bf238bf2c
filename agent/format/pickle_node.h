#ifndef FORMAT_PICKLE_NODE_H
#define FORMAT_PICKLE_NODE_H

#include "format/pickle.h"

struct arena;

/*
 * Making the nodes of pickle.h in an arena.  Every function returns NULL or
 * -1 with the arena's error.
 */

/**
 * pickle_node_new(arena, kind, error):
 * A node that is empty, or 0.
 */
struct pickle_node *pickle_node_new(struct arena *arena,
    enum pickle_kind kind, struct error *error);

/**
 * pickle_node_tuple(arena, kind, items, count, error):
 * A node with exactly these items, to which none is added later.
 */
struct pickle_node *pickle_node_tuple(struct arena *arena,
    enum pickle_kind kind, struct pickle_node **items, size_t count,
    struct error *error);

/**
 * pickle_node_add(arena, to, items, count, error):
 * Add items to a list, set or dict that pickle_node_new made.
 */
int pickle_node_add(struct arena *arena, struct pickle_node *to,
    struct pickle_node **items, size_t count, struct error *error);

/**
 * pickle_node_text(arena, kind, length, text, error):
 * A node with room for a text of ${length} bytes and a NUL, which is there;
 * *${text} is where the caller writes it.
 */
struct pickle_node *pickle_node_text(struct arena *arena,
    enum pickle_kind kind, size_t length, char **text, struct error *error);

/**
 * pickle_node_call(arena, error):
 * A PICKLE_CALL with nothing in it yet.
 */
struct pickle_node *pickle_node_call(struct arena *arena,
    struct error *error);

#endif
