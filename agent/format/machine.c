#include "format/machine.h"

#include "base/error.h"
#include "format/pickle_node.h"
#include "format/window.h"

int
machine_damaged(struct machine *machine, const char *what)
{
	return error_set(machine->error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
	    "the pickle is damaged before byte %llu: %s",
	    (unsigned long long)machine->window->at, what);
}

int
machine_unsupported(struct machine *machine, const char *what)
{
	return error_set(machine->error, ERROR_DAMAGED, CAUSE_UNSUPPORTED,
	    NULL, "the pickle %s", what);
}

struct pickle_node *
machine_node(struct machine *machine, enum pickle_kind kind)
{
	return pickle_node_new(machine->arena, kind, machine->error);
}

struct pickle_node *
machine_tuple(struct machine *machine, enum pickle_kind kind,
    struct pickle_node **items, size_t count)
{
	return pickle_node_tuple(machine->arena, kind, items, count,
	    machine->error);
}

int
machine_add(struct machine *machine, struct pickle_node *to,
    struct pickle_node **items, size_t count)
{
	return pickle_node_add(machine->arena, to, items, count,
	    machine->error);
}

int
machine_push(struct machine *machine, struct pickle_node *node)
{
	struct stack *stack = &machine->stack;

	if (node == NULL || stack_reserve(stack, stack->count + 1,
	    PICKLE_STACK_MAXIMUM, machine->error) != 0)
		return -1;
	stack->nodes[stack->count++] = node;
	return 0;
}

/* The height below which the running mark does not let anything be taken. */
static size_t
floor_of(const struct machine *machine)
{
	return machine->mark_count == 0 ? 0 :
	    machine->marks[machine->mark_count - 1];
}

struct pickle_node **
machine_top(struct machine *machine, size_t count)
{
	if (machine->stack.count - floor_of(machine) < count) {
		machine_damaged(machine, "its stack is empty");
		return NULL;
	}
	return machine->stack.nodes + machine->stack.count - count;
}

struct pickle_node **
machine_take_marked(struct machine *machine, size_t *count)
{
	size_t height;

	if (machine->mark_count == 0) {
		machine_damaged(machine, "a mark is missing");
		return NULL;
	}
	height = machine->marks[--machine->mark_count];
	*count = machine->stack.count - height;
	machine->stack.count = height;
	return machine->stack.nodes + height;
}

int
machine_remember(struct machine *machine, uint64_t index)
{
	struct pickle_node **node = machine_top(machine, 1);
	struct stack *memo = &machine->memo;

	if (node == NULL)
		return -1;
	if (stack_reserve(memo, (size_t)index + 1, PICKLE_MEMO_MAXIMUM,
	    machine->error) != 0)
		return -1;
	if (memo->nodes[index] == NULL)
		memo->count++;
	memo->nodes[index] = *node;
	return 0;
}

int
machine_recall(struct machine *machine, uint64_t index)
{
	if (index >= machine->memo.capacity ||
	    machine->memo.nodes[index] == NULL)
		return machine_damaged(machine,
		    "it remembers what it never met");
	return machine_push(machine, machine->memo.nodes[index]);
}

int
machine_mark(struct machine *machine)
{
	if (machine->mark_count == PICKLE_MARKS_MAXIMUM)
		return error_set(machine->error, ERROR_DAMAGED, CAUSE_LIMIT,
		    NULL, "the pickle is nested over %d deep",
		    PICKLE_MARKS_MAXIMUM);
	machine->marks[machine->mark_count++] =
	    (uint32_t)machine->stack.count;
	return 0;
}

int
machine_pop(struct machine *machine)
{
	if (machine->stack.count > floor_of(machine))
		machine->stack.count--;
	else if (machine->mark_count > 0)
		machine->mark_count--;
	else
		return machine_damaged(machine, "its stack is empty");
	return 0;
}
