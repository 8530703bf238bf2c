#include "format/stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int
stack_reserve(struct stack *stack, size_t wanted, size_t maximum,
    struct error *error)
{
	size_t capacity = stack->capacity < 64 ? 64 : stack->capacity;
	struct pickle_node **nodes;

	if (wanted > maximum)
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "the pickle holds more than %zu values", maximum);
	if (wanted <= stack->capacity)
		return 0;
	while (capacity < wanted)
		capacity *= 2;
	nodes = realloc(stack->nodes, capacity * sizeof(*nodes));
	if (nodes == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a pickle");
	memset(nodes + stack->capacity, 0,
	    (capacity - stack->capacity) * sizeof(*nodes));
	stack->nodes = nodes;
	stack->capacity = capacity;
	return 0;
}

void
stack_free(struct stack *stack)
{
	free(stack->nodes);
	stack->nodes = NULL;
	stack->count = stack->capacity = 0;
}
