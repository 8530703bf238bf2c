#include "format/pickle_node.h"

#include <assert.h>
#include <string.h>

#include "format/arena.h"

struct pickle_node *
pickle_node_new(struct arena *arena, enum pickle_kind kind,
    struct error *error)
{
	struct pickle_node *node = arena_take(arena, sizeof(*node), error);

	if (node != NULL) {
		memset(node, 0, sizeof(*node));
		node->kind = kind;
	}
	return node;
}

struct pickle_node *
pickle_node_tuple(struct arena *arena, enum pickle_kind kind,
    struct pickle_node **items, size_t count, struct error *error)
{
	struct pickle_node *node = pickle_node_new(arena, kind, error);

	assert(count <= UINT32_MAX);
	if (node == NULL || count == 0)
		return node;
	node->items = arena_take(arena, count * sizeof(*items), error);
	if (node->items == NULL)
		return NULL;
	memcpy(node->items, items, count * sizeof(*items));
	node->count = (uint32_t)count;
	return node;
}

/* The room for items is a power of two, at least 4, and grows when full. */
static int
add_one(struct arena *arena, struct pickle_node *to, struct pickle_node *item,
    struct error *error)
{
	uint32_t count = to->count;

	if (count == 0 || (count >= 4 && (count & (count - 1)) == 0)) {
		size_t room = count == 0 ? 4 : (size_t)count * 2;
		struct pickle_node **items = arena_take(arena,
		    room * sizeof(*items), error);

		if (items == NULL)
			return -1;
		if (count > 0)
			memcpy(items, to->items, count * sizeof(*items));
		to->items = items;
	}
	to->items[to->count++] = item;
	return 0;
}

int
pickle_node_add(struct arena *arena, struct pickle_node *to,
    struct pickle_node **items, size_t count, struct error *error)
{
	for (size_t i = 0; i < count; i++)
		if (add_one(arena, to, items[i], error) != 0)
			return -1;
	return 0;
}

struct pickle_node *
pickle_node_text(struct arena *arena, enum pickle_kind kind, size_t length,
    char **text, struct error *error)
{
	struct pickle_node *node = pickle_node_new(arena, kind, error);

	assert(length <= UINT32_MAX);
	*text = node == NULL ? NULL : arena_take(arena, length + 1, error);
	if (*text == NULL)
		return NULL;
	(*text)[length] = '\0';
	node->text = *text;
	node->count = (uint32_t)length;
	return node;
}

struct pickle_node *
pickle_node_call(struct arena *arena, struct error *error)
{
	struct pickle_node *node = pickle_node_new(arena, PICKLE_CALL, error);

	if (node == NULL)
		return NULL;
	node->call = arena_take(arena, sizeof(*node->call), error);
	if (node->call == NULL)
		return NULL;
	memset(node->call, 0, sizeof(*node->call));
	return node;
}
