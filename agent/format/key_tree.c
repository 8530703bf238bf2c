#include "format/key_tree.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"

#define LINES_MAXIMUM 300
#define SHOWN_MAXIMUM 64	/* bytes of a name */

int
key_tree_init(struct key_tree *tree, struct error *error)
{
	memset(tree, 0, sizeof(*tree));
	arena_init(&tree->arena, KEY_TREE_MEMORY_MAXIMUM);
	tree->root = arena_take(&tree->arena, sizeof(*tree->root), error);
	if (tree->root == NULL)
		return -1;
	memset(tree->root, 0, sizeof(*tree->root));
	return 0;
}

void
key_tree_free(struct key_tree *tree)
{
	arena_free(&tree->arena);
	tree->root = NULL;
}

struct key *
key_tree_add(struct key_tree *tree, struct key *parent, enum key_kind kind,
    struct error *error)
{
	struct key *key = arena_take(&tree->arena, sizeof(*key), error);

	if (key == NULL)
		return NULL;
	memset(key, 0, sizeof(*key));
	key->kind = kind;
	key->parent = parent;
	if (parent->last != NULL)
		parent->last->next = key;
	else
		parent->child = key;
	parent->last = key;
	return key;
}

int
key_tree_count(struct key_tree *tree, struct key *key, uint64_t bytes,
    struct error *error)
{
	bool optimizer = false;

	if (++tree->tensors > KEY_TREE_TENSORS_MAXIMUM)
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "it holds more than %d tensors", KEY_TREE_TENSORS_MAXIMUM);
	for (struct key *at = key; at != NULL; at = at->parent) {
		optimizer = optimizer || at->optimizer;
		at->tensors++;
		at->optimizer_tensors += optimizer;
		if (__builtin_add_overflow(at->bytes, bytes, &at->bytes))
			at->bytes = UINT64_MAX;
	}
	return 0;
}

bool
key_tree_is(const struct key *key, const char *name)
{
	return key->name != NULL && key->length == strlen(name) &&
	    memcmp(key->name, name, key->length) == 0;
}

int
key_tree_path(const struct key *from, const struct key *key,
    struct buffer *path, struct error *error)
{
	const struct key *way[KEY_TREE_DEPTH_MAXIMUM + 2];
	size_t depth = 0;

	for (const struct key *at = key; at != from; at = at->parent) {
		assert(depth < sizeof(way) / sizeof(way[0]));
		way[depth++] = at;
	}
	for (size_t i = depth; i-- > 0;) {
		const struct key *at = way[i];

		if (i + 1 < depth && buffer_append(path, ".", 1, error) != 0)
			return -1;
		if (at->name == NULL ?
		    buffer_format(path, error, "%" PRIu64, at->number) != 0 :
		    buffer_append(path, at->name, at->length, error) != 0)
			return -1;
	}
	return 0;
}

/* A branch all of whose tensors are its own, or one of few branches. */
static int
print_line(const struct key *key, unsigned depth, struct buffer *text,
    struct error *error)
{
	char name[SHOWN_MAXIMUM + 4], number[24];
	size_t length = key->length < SHOWN_MAXIMUM ? key->length :
	    SHOWN_MAXIMUM;

	if (key->name == NULL) {
		snprintf(number, sizeof(number), "%" PRIu64, key->number);
		strcpy(name, number);
	} else {
		memcpy(name, key->name, length);
		strcpy(name + length, length < key->length ? "..." : "");
		for (size_t i = 0; i < length; i++)
			if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
				name[i] = '?';
	}
	return buffer_format(text, error, "%*s%s: %" PRIu64 " tensor%s, %"
	    PRIu64 " bytes%s%s\n", (int)(2 * depth), "", name, key->tensors,
	    key->tensors == 1 ? "" : "s", key->bytes,
	    key->kind == KEY_MODULE ? ", a module" : "",
	    key->optimizer ? ", an optimizer's state" : "");
}

static bool
is_branch(const struct key *key)
{
	return key->kind == KEY_BRANCH || key->kind == KEY_MODULE;
}

/* The branches beneath ${key}, and theirs down to ${depth_left}. */
static int
print_beneath(const struct key *key, unsigned depth, unsigned depth_left,
    unsigned *lines, struct buffer *text, struct error *error)
{
	for (const struct key *at = key->child; at != NULL; at = at->next) {
		/* Tensors one by one only where they stand beside branches. */
		if (!is_branch(at) && depth > 0)
			continue;
		if (*lines == 0)
			return 0;
		if (--*lines == 0)
			return buffer_format(text, error, "...\n");
		if (print_line(at, depth, text, error) != 0)
			return -1;
		if (depth_left > 1 && is_branch(at) && !at->optimizer &&
		    print_beneath(at, depth + 1, depth_left - 1, lines, text,
		    error) != 0)
			return -1;
	}
	return 0;
}

int
key_tree_print(const struct key_tree *tree, struct buffer *text,
    struct error *error)
{
	unsigned lines = LINES_MAXIMUM;

	return print_beneath(tree->root, 0, 4, &lines, text, error);
}
