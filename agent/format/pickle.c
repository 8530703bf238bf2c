#include "format/pickle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/arena.h"
#include "format/machine.h"
#include "format/pickle_node.h"
#include "format/stack.h"
#include "format/window.h"

struct pickle {
	struct arena arena;
	struct pickle_node *root;
	struct stack persistent;
};

static int
read_number(struct machine *machine, size_t width, uint64_t *number)
{
	uint8_t bytes[8];

	assert(width <= sizeof(bytes));
	if (window_take(machine->window, bytes, width, machine->error) != 0)
		return -1;
	*number = 0;
	for (size_t i = 0; i < width; i++)
		*number |= (uint64_t)bytes[i] << (8 * i);
	return 0;
}

/* The argument of ${width} bytes is a length; push that many bytes. */
static int
push_text(struct machine *machine, enum pickle_kind kind, size_t width)
{
	struct pickle_node *node;
	uint64_t length;
	char *text;

	if (read_number(machine, width, &length) != 0)
		return -1;
	if (length > window_left(machine->window))
		return machine_damaged(machine,
		    "a text is longer than what is left");
	if (length > PICKLE_TEXT_MAXIMUM)
		return error_set(machine->error, ERROR_DAMAGED, CAUSE_LIMIT,
		    NULL, "the pickle holds a text of %llu bytes",
		    (unsigned long long)length);
	node = pickle_node_text(machine->arena, kind, (size_t)length,
	    &text, machine->error);
	if (node == NULL || window_take(machine->window, text,
	    (size_t)length, machine->error) != 0)
		return -1;
	return machine_push(machine, node);
}

static int
push_empty(struct machine *machine, enum pickle_kind kind)
{
	return machine_push(machine, machine_node(machine, kind));
}

static int
push_integer(struct machine *machine, enum pickle_kind kind, int64_t integer)
{
	struct pickle_node *node = machine_node(machine, kind);

	if (node != NULL)
		node->integer = integer;
	return machine_push(machine, node);
}

static int
push_unsigned(struct machine *machine, size_t width)
{
	uint64_t number;

	if (read_number(machine, width, &number) != 0)
		return -1;
	return push_integer(machine, PICKLE_INTEGER, (int64_t)number);
}

static int
push_signed_32(struct machine *machine)
{
	uint64_t number;

	if (read_number(machine, 4, &number) != 0)
		return -1;
	return push_integer(machine, PICKLE_INTEGER,
	    (int32_t)(uint32_t)number);
}

/* LONG1: a length byte, then two's complement. */
static int
push_long(struct machine *machine)
{
	struct pickle_node *node;
	uint64_t number = 0;

	if (push_text(machine, PICKLE_BIG, 1) != 0)
		return -1;
	node = machine->stack.nodes[machine->stack.count - 1];
	if (node->count > 8)
		return 0;
	for (uint32_t i = 0; i < 8; i++) {
		uint8_t fill = node->count > 0 &&
		    (node->text[node->count - 1] & 0x80) != 0 ? 0xff : 0;
		uint8_t byte = i < node->count ? (uint8_t)node->text[i] : fill;

		number |= (uint64_t)byte << (8 * i);
	}
	node->kind = PICKLE_INTEGER;
	node->count = 0;
	node->integer = (int64_t)number;
	return 0;
}

/* BINFLOAT: IEEE 754, big-endian. */
static int
push_real(struct machine *machine)
{
	struct pickle_node *node = machine_node(machine, PICKLE_REAL);
	uint64_t number;

	if (node == NULL || read_number(machine, 8, &number) != 0)
		return -1;
	number = __builtin_bswap64(number);
	memcpy(&node->real, &number, sizeof(node->real));
	return machine_push(machine, node);
}

static int
push_tuple(struct machine *machine, size_t count)
{
	struct pickle_node **items = machine_top(machine, count);
	struct pickle_node *node;

	if (items == NULL)
		return -1;
	node = machine_tuple(machine, PICKLE_TUPLE, items, count);
	machine->stack.count -= count;
	return machine_push(machine, node);
}

static int
push_marked(struct machine *machine, enum pickle_kind kind)
{
	struct pickle_node **items, *node;
	size_t count;

	items = machine_take_marked(machine, &count);
	if (items == NULL)
		return -1;
	if (kind == PICKLE_DICT && count % 2 != 0)
		return machine_damaged(machine, "a key has no value");
	if (kind == PICKLE_TUPLE) {
		node = machine_tuple(machine, kind, items, count);
		return machine_push(machine, node);
	}
	node = machine_node(machine, kind);
	if (node == NULL || machine_add(machine, node, items, count) != 0)
		return -1;
	return machine_push(machine, node);
}

/* Where what is put into the node below goes: itself, or a part of a call. */
static struct pickle_node *
holder(struct machine *machine, enum pickle_kind kind)
{
	struct pickle_node **below = machine_top(machine, 1), **part;

	if (below == NULL)
		return NULL;
	if ((*below)->kind == kind)
		return *below;
	if ((*below)->kind != PICKLE_CALL) {
		machine_unsupported(machine,
		    "puts something into what cannot hold it");
		return NULL;
	}
	part = kind == PICKLE_DICT ? &(*below)->call->dict :
	    &(*below)->call->list;
	if (*part == NULL)
		*part = machine_node(machine, kind == PICKLE_DICT ? PICKLE_DICT :
		    PICKLE_LIST);
	return *part;
}

/* APPENDS, SETITEMS, ADDITEMS: what is above the mark goes below it. */
static int
put_marked(struct machine *machine, enum pickle_kind kind)
{
	struct pickle_node **items, *to;
	size_t count;

	items = machine_take_marked(machine, &count);
	if (items == NULL)
		return -1;
	if (kind == PICKLE_DICT && count % 2 != 0)
		return machine_damaged(machine, "a key has no value");
	to = holder(machine, kind);
	if (to == NULL)
		return -1;
	return machine_add(machine, to, items, count);
}

/* APPEND, SETITEM: the topmost 1 or 2 nodes go below. */
static int
put_top(struct machine *machine, enum pickle_kind kind, size_t count)
{
	struct pickle_node **items = machine_top(machine, count + 1), *to;

	if (items == NULL)
		return -1;
	machine->stack.count -= count;
	to = holder(machine, kind);
	if (to == NULL)
		return -1;
	return machine_add(machine, to, items + 1, count);
}

/* GLOBAL: two lines; push what they hold. */
static int
push_line(struct machine *machine)
{
	char line[1024];
	struct pickle_node *node;
	size_t length = 0;
	char *text;

	for (;;) {
		if (window_take(machine->window, line + length, 1,
		    machine->error) != 0)
			return -1;
		if (line[length] == '\n')
			break;
		if (++length == sizeof(line))
			return machine_unsupported(machine,
			    "has a very long name");
	}
	node = pickle_node_text(machine->arena, PICKLE_TEXT, length,
	    &text, machine->error);
	if (node == NULL)
		return -1;
	memcpy(text, line, length);
	return machine_push(machine, node);
}

/* Make a global of the module and name on the stack. */
static int
make_global(struct machine *machine)
{
	struct pickle_node **items = machine_top(machine, 2), *node;

	if (items == NULL)
		return -1;
	if (items[0]->kind != PICKLE_TEXT || items[1]->kind != PICKLE_TEXT)
		return machine_damaged(machine, "a name is no text");
	node = machine_tuple(machine, PICKLE_GLOBAL, items, 2);
	machine->stack.count -= 2;
	return machine_push(machine, node);
}

/* REDUCE, NEWOBJ (2 nodes), NEWOBJ_EX (3). */
static int
make_call(struct machine *machine, size_t count)
{
	struct pickle_node **items = machine_top(machine, count), *node;

	if (items == NULL)
		return -1;
	node = pickle_node_call(machine->arena, machine->error);
	if (node == NULL)
		return -1;
	node->call->callee = items[0];
	node->call->arguments = items[1];
	if (count == 3)
		node->call->keywords = items[2];
	machine->stack.count -= count;
	return machine_push(machine, node);
}

static int
build(struct machine *machine)
{
	struct pickle_node **items = machine_top(machine, 2);

	if (items == NULL)
		return -1;
	if (items[0]->kind != PICKLE_CALL || items[0]->call->state != NULL)
		return machine_unsupported(machine,
		    "gives a state to what cannot have one");
	items[0]->call->state = items[1];
	machine->stack.count--;
	return 0;
}

static int
make_persistent(struct machine *machine)
{
	struct stack *persistent = &machine->pickle->persistent;
	struct pickle_node **items = machine_top(machine, 1), *node;

	if (items == NULL || stack_reserve(persistent, persistent->count + 1,
	    PICKLE_STACK_MAXIMUM, machine->error) != 0)
		return -1;
	persistent->nodes[persistent->count++] = items[0];
	node = machine_tuple(machine, PICKLE_PERSISTENT, items, 1);
	machine->stack.count--;
	return machine_push(machine, node);
}

static int
memo_argument(struct machine *machine, size_t width,
    int (*use)(struct machine *machine, uint64_t index))
{
	uint64_t index;

	if (read_number(machine, width, &index) != 0)
		return -1;
	return use(machine, index);
}

static int
stop(struct machine *machine)
{
	struct pickle_node **node = machine_top(machine, 1);

	if (node == NULL)
		return -1;
	machine->pickle->root = *node;
	machine->stopped = true;
	return 0;
}

static int
check_protocol(struct machine *machine)
{
	uint64_t protocol;

	if (read_number(machine, 1, &protocol) != 0)
		return -1;
	if (protocol < 2 || protocol > 5)
		return machine_unsupported(machine,
		    "has a protocol other than 2 to 5");
	return 0;
}

/* Opcodes that push a value of their own. */
static int
push_value(struct machine *machine, uint8_t opcode)
{
	switch (opcode) {
	case 'N': return push_empty(machine, PICKLE_NONE);
	case 0x88: return push_integer(machine, PICKLE_BOOLEAN, 1);
	case 0x89: return push_integer(machine, PICKLE_BOOLEAN, 0);
	case 'K': return push_unsigned(machine, 1);
	case 'M': return push_unsigned(machine, 2);
	case 'J': return push_signed_32(machine);
	case 0x8a: return push_long(machine);
	case 'G': return push_real(machine);
	case 0x8c: return push_text(machine, PICKLE_TEXT, 1);
	case 'X': return push_text(machine, PICKLE_TEXT, 4);
	case 0x8d: return push_text(machine, PICKLE_TEXT, 8);
	case 'U': case 'C': return push_text(machine, PICKLE_BYTES, 1);
	case 'T': case 'B': return push_text(machine, PICKLE_BYTES, 4);
	case 0x8e: case 0x96: return push_text(machine, PICKLE_BYTES, 8);
	case ')': return push_empty(machine, PICKLE_TUPLE);
	case ']': return push_empty(machine, PICKLE_LIST);
	case '}': return push_empty(machine, PICKLE_DICT);
	case 0x8f: return push_empty(machine, PICKLE_SET);
	case 'h': return memo_argument(machine, 1, machine_recall);
	case 'j': return memo_argument(machine, 4, machine_recall);
	default:
		return machine_unsupported(machine,
		    "has an opcode that is not known");
	}
}

static int
duplicate(struct machine *machine)
{
	struct pickle_node **node = machine_top(machine, 1);

	return node == NULL ? -1 : machine_push(machine, *node);
}

static int
step(struct machine *machine, uint8_t opcode)
{
	size_t count;

	switch (opcode) {
	case 0x80: return check_protocol(machine);
	case 0x95: return window_skip(machine->window, 8, machine->error);
	case '(': return machine_mark(machine);
	case '0': return machine_pop(machine);
	case '1': return machine_take_marked(machine, &count) == NULL ? -1 : 0;
	case '2': return duplicate(machine);
	case 0x85: return push_tuple(machine, 1);
	case 0x86: return push_tuple(machine, 2);
	case 0x87: return push_tuple(machine, 3);
	case 't': return push_marked(machine, PICKLE_TUPLE);
	case 'l': return push_marked(machine, PICKLE_LIST);
	case 'd': return push_marked(machine, PICKLE_DICT);
	case 0x91: return push_marked(machine, PICKLE_SET);
	case 'a': return put_top(machine, PICKLE_LIST, 1);
	case 's': return put_top(machine, PICKLE_DICT, 2);
	case 'e': return put_marked(machine, PICKLE_LIST);
	case 'u': return put_marked(machine, PICKLE_DICT);
	case 0x90: return put_marked(machine, PICKLE_SET);
	case 'c':
		if (push_line(machine) != 0 || push_line(machine) != 0)
			return -1;
		return make_global(machine);
	case 0x93: return make_global(machine);
	case 'R': case 0x81: return make_call(machine, 2);
	case 0x92: return make_call(machine, 3);
	case 'b': return build(machine);
	case 'Q': return make_persistent(machine);
	case 'q': return memo_argument(machine, 1, machine_remember);
	case 'r': return memo_argument(machine, 4, machine_remember);
	case 0x94: return machine_remember(machine, machine->memo.count);
	case '.': return stop(machine);
	default: return push_value(machine, opcode);
	}
}

static int
run(struct machine *machine)
{
	uint8_t opcode;

	if (window_take(machine->window, &opcode, 1, machine->error) != 0)
		return -1;
	if (opcode != 0x80)
		return machine_unsupported(machine,
		    "does not begin with a protocol");
	do {
		if (step(machine, opcode) != 0)
			return -1;
		if (machine->stopped)
			return 0;
	} while (window_take(machine->window, &opcode, 1, machine->error) == 0);
	return -1;
}

struct pickle *
pickle_read_within(struct window *window, uint64_t memory,
    struct error *error)
{
	struct machine machine = { .window = window, .error = error };
	int result = -1;

	machine.pickle = calloc(1, sizeof(*machine.pickle));
	machine.marks = malloc(PICKLE_MARKS_MAXIMUM * sizeof(uint32_t));
	if (machine.pickle == NULL || machine.marks == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a pickle");
		goto done;
	}
	arena_init(&machine.pickle->arena, memory);
	machine.arena = &machine.pickle->arena;
	/* So that the place of no nodes is no NULL. */
	result = stack_reserve(&machine.stack, 1, PICKLE_STACK_MAXIMUM, error);
	if (result == 0)
		result = run(&machine);

done:
	free(machine.marks);
	stack_free(&machine.stack);
	stack_free(&machine.memo);
	if (result == 0)
		return machine.pickle;
	pickle_free(machine.pickle);
	return NULL;
}

struct pickle *
pickle_read(struct window *window, struct error *error)
{
	return pickle_read_within(window, PICKLE_MEMORY_MAXIMUM, error);
}

const struct pickle_node *
pickle_root(const struct pickle *pickle)
{
	return pickle->root;
}

size_t
pickle_persistent_count(const struct pickle *pickle)
{
	return pickle->persistent.count;
}

const struct pickle_node *
pickle_persistent(const struct pickle *pickle, size_t index)
{
	assert(index < pickle->persistent.count);
	return pickle->persistent.nodes[index];
}

bool
pickle_is_text(const struct pickle_node *node, const char *text)
{
	return (node->kind == PICKLE_TEXT || node->kind == PICKLE_BYTES) &&
	    node->count == strlen(text) &&
	    memcmp(node->text, text, node->count) == 0;
}

const struct pickle_node *
pickle_find(const struct pickle_node *node, const char *name)
{
	const struct pickle_node *found = NULL;

	if (node == NULL || node->kind != PICKLE_DICT)
		return NULL;
	for (uint32_t i = 0; i + 1 < node->count; i += 2)
		if (pickle_is_text(node->items[i], name))
			found = node->items[i + 1];
	return found;
}

void
pickle_free(struct pickle *pickle)
{
	if (pickle == NULL)
		return;
	stack_free(&pickle->persistent);
	arena_free(&pickle->arena);
	free(pickle);
}
