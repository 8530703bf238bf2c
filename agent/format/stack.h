#ifndef FORMAT_STACK_H
#define FORMAT_STACK_H

#include <stddef.h>

struct error;
struct pickle_node;

/*
 * A row of pickle nodes that grows at its end up to a limit, or is filled at
 * any index.  It owns the row, not the nodes.
 */
struct stack {
	struct pickle_node **nodes;
	size_t count;		/* kept by whoever fills it */
	size_t capacity;	/* places; those never filled are NULL */
};

/**
 * stack_reserve(stack, wanted, maximum, error):
 * Have places for ${wanted} nodes.  Return 0, or -1: CAUSE_LIMIT over
 * ${maximum}, CAUSE_MEMORY.
 */
int stack_reserve(struct stack *stack, size_t wanted, size_t maximum,
    struct error *error);

/**
 * stack_free(stack):
 * Give the row back.
 */
void stack_free(struct stack *stack);

#endif
