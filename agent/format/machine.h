#ifndef FORMAT_MACHINE_H
#define FORMAT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/pickle.h"
#include "format/stack.h"

struct arena;
struct error;
struct window;

/*
 * The stack machine that a pickle is a program for: its stack, its marks and
 * its memo, with the limits of pickle.h.  Functions that fail return -1 or
 * NULL and fill the machine's error.  It owns the stack, the memo and the
 * marks; the nodes are the arena's.
 */
struct machine {
	struct arena *arena;
	struct window *window;
	struct error *error;
	struct stack stack;
	struct stack memo;
	uint32_t *marks;	/* heights of the stack */
	size_t mark_count;
	bool stopped;
	struct pickle *pickle;	/* what is being made */
};

/**
 * machine_damaged(machine, what) / machine_unsupported(machine, what):
 * Fail: the pickle cannot be right; or it does what is not known here.
 */
int machine_damaged(struct machine *machine, const char *what);
int machine_unsupported(struct machine *machine, const char *what);

/**
 * machine_node, machine_tuple, machine_add:
 * As pickle_node_new, pickle_node_tuple and pickle_node_add.
 */
struct pickle_node *machine_node(struct machine *machine,
    enum pickle_kind kind);
struct pickle_node *machine_tuple(struct machine *machine,
    enum pickle_kind kind, struct pickle_node **items, size_t count);
int machine_add(struct machine *machine, struct pickle_node *to,
    struct pickle_node **items, size_t count);

/**
 * machine_push(machine, node):
 * Put ${node} on the stack; NULL: -1, the error is there already.
 */
int machine_push(struct machine *machine, struct pickle_node *node);

/**
 * machine_top(machine, count):
 * The topmost ${count} nodes above the last mark, still on the stack; NULL
 * when there are not as many.
 */
struct pickle_node **machine_top(struct machine *machine, size_t count);

/**
 * machine_pop(machine):
 * Take the topmost node off, or the mark when nothing is above it.
 */
int machine_pop(struct machine *machine);

/**
 * machine_mark(machine) / machine_take_marked(machine, count):
 * Set a mark; take the last one off with the nodes above it, *${count} of
 * them, and return their place, which holds them until the next push.
 */
int machine_mark(struct machine *machine);
struct pickle_node **machine_take_marked(struct machine *machine,
    size_t *count);

/**
 * machine_remember(machine, index) / machine_recall(machine, index):
 * Put the topmost node into the memo; push what is in the memo.
 */
int machine_remember(struct machine *machine, uint64_t index);
int machine_recall(struct machine *machine, uint64_t index);

#endif
