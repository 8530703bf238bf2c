#include "format/torch_tree.h"

#include <string.h>

#include "base/error.h"
#include "format/key_tree.h"
#include "format/pickle.h"
#include "format/torch_view.h"

/* One node can be reached on many ways: so many steps are walked in all. */
#define STEPS_MAXIMUM 20000000

/* How deep Python nests before its own pickler gives up is less. */
#define DEPTH_MAXIMUM KEY_TREE_DEPTH_MAXIMUM

/* A place on the way from the root, a key only when a tensor was met. */
struct frame {
	const struct pickle_node *node;
	const char *name;
	size_t length;
	uint64_t number;
	enum key_kind kind;
	bool optimizer;
	bool cut;
	struct key *key;
};

struct walk {
	struct key_tree *tree;
	struct error *error;
	size_t steps;
	unsigned depth;			/* frames in use; [0] is the root */
	struct frame frames[DEPTH_MAXIMUM];
};

/* How a node is called by what holds it. */
struct label {
	const char *name;
	size_t length;
	uint64_t number;
};

static int walk_node(struct walk *walk, struct label label,
    const struct pickle_node *node);

static struct label
label_number(uint64_t number)
{
	return (struct label){ .number = number };
}

/* The key of a dict's entry, the ${index}th. */
static struct label
label_of(const struct pickle_node *key, uint64_t index)
{
	if (key->kind == PICKLE_TEXT || key->kind == PICKLE_BYTES)
		return (struct label){ .name = key->text,
			.length = key->count };
	if (key->kind == PICKLE_INTEGER && key->integer >= 0)
		index = (uint64_t)key->integer;
	return label_number(index);
}

/* The keys of all frames, made where they are missing. */
static struct key *
make_keys(struct walk *walk)
{
	for (unsigned i = 1; i < walk->depth; i++) {
		struct frame *frame = &walk->frames[i];

		if (frame->key != NULL)
			continue;
		frame->key = key_tree_add(walk->tree, walk->frames[i - 1].key,
		    frame->kind, walk->error);
		if (frame->key == NULL)
			return NULL;
		frame->key->name = frame->name;
		frame->key->length = frame->length;
		frame->key->number = frame->number;
		frame->key->optimizer = frame->optimizer;
		frame->key->cut = frame->cut;
	}
	return walk->frames[walk->depth - 1].key;
}

static int
add_tensor(struct walk *walk, struct label label,
    const struct pickle_node *node, enum torch_view_kind kind,
    const struct torch_view *view)
{
	struct key *parent = make_keys(walk), *key;

	if (parent == NULL)
		return -1;
	key = key_tree_add(walk->tree, parent, kind == TORCH_VIEW_TENSOR ?
	    KEY_TENSOR : KEY_REFUSED, walk->error);
	if (key == NULL)
		return -1;
	key->name = label.name;
	key->length = label.length;
	key->number = label.number;
	key->scalar = kind == TORCH_VIEW_TENSOR && view->dimensions == 0;
	key->why = view->why;
	key->origin = node;
	return key_tree_count(walk->tree, key, view->bytes, walk->error);
}

/* What lies deeper is not seen: say so on the whole way. */
static void
cut(struct walk *walk)
{
	for (unsigned i = 0; i < walk->depth; i++) {
		walk->frames[i].cut = true;
		if (walk->frames[i].key != NULL)
			walk->frames[i].key->cut = true;
	}
}

static int
walk_pairs(struct walk *walk, struct pickle_node **items, uint32_t count)
{
	for (uint32_t i = 0; i + 1 < count; i += 2)
		if (walk_node(walk, label_of(items[i], i / 2),
		    items[i + 1]) != 0)
			return -1;
	return 0;
}

static int
walk_items(struct walk *walk, const struct pickle_node *row)
{
	for (uint32_t i = 0; i < row->count; i++)
		if (walk_node(walk, label_number(i), row->items[i]) != 0)
			return -1;
	return 0;
}

/* Python 2 gave OrderedDict its entries as a list of lists of two. */
static int
walk_rows(struct walk *walk, const struct pickle_node *rows)
{
	for (uint32_t i = 0; i < rows->count; i++) {
		const struct pickle_node *row = rows->items[i];

		if ((row->kind == PICKLE_LIST || row->kind == PICKLE_TUPLE) &&
		    row->count == 2 && walk_node(walk,
		    label_of(row->items[0], i), row->items[1]) != 0)
			return -1;
	}
	return 0;
}

static bool
is_mapping_class(const struct pickle_node *callee)
{
	return callee->kind == PICKLE_GLOBAL &&
	    (pickle_is_text(callee->items[1], "OrderedDict") ||
	    pickle_is_text(callee->items[1], "defaultdict"));
}

/* The entries of a dict or of an object that is one. */
static int
walk_mapping(struct walk *walk, const struct pickle_node *node)
{
	const struct pickle_call *call;

	if (node->kind == PICKLE_DICT)
		return walk_pairs(walk, node->items, node->count);
	if (node->kind != PICKLE_CALL)
		return 0;
	call = node->call;
	if (is_mapping_class(call->callee) &&
	    call->arguments->kind == PICKLE_TUPLE &&
	    call->arguments->count == 1 &&
	    call->arguments->items[0]->kind == PICKLE_LIST &&
	    walk_rows(walk, call->arguments->items[0]) != 0)
		return -1;
	if (call->dict != NULL)
		return walk_pairs(walk, call->dict->items, call->dict->count);
	return 0;
}

static bool
is_module(const struct pickle_node *node)
{
	const struct pickle_node *state;

	if (node->kind != PICKLE_CALL)
		return false;
	state = node->call->state;
	return pickle_find(state, "_modules") != NULL &&
	    pickle_find(state, "_parameters") != NULL &&
	    pickle_find(state, "_buffers") != NULL;
}

/* An object of TorchScript: its attributes are those of the module. */
static bool
is_script(const struct pickle_node *node)
{
	return node->kind == PICKLE_CALL &&
	    node->call->callee->kind == PICKLE_GLOBAL &&
	    strncmp(node->call->callee->items[0]->text, "__torch__", 9) == 0;
}

static enum key_kind
kind_of(const struct pickle_node *node)
{
	return is_module(node) || is_script(node) ? KEY_MODULE : KEY_BRANCH;
}

/* Whether a set, given as a node or as a call, holds the text of ${key}. */
static bool
holds(const struct pickle_node *set, const struct pickle_node *key)
{
	if (set != NULL && set->kind == PICKLE_CALL &&
	    set->call->arguments->kind == PICKLE_TUPLE &&
	    set->call->arguments->count == 1)
		set = set->call->arguments->items[0];
	if (set == NULL || (set->kind != PICKLE_SET &&
	    set->kind != PICKLE_LIST) || key->kind != PICKLE_TEXT)
		return false;
	for (uint32_t i = 0; i < set->count; i++)
		if (set->items[i]->kind == PICKLE_TEXT &&
		    set->items[i]->count == key->count &&
		    memcmp(set->items[i]->text, key->text, key->count) == 0)
			return true;
	return false;
}

/* Buffers but those that a state dict does not have. */
static int
walk_buffers(struct walk *walk, const struct pickle_node *buffers,
    const struct pickle_node *passing)
{
	if (buffers->kind == PICKLE_CALL && buffers->call->dict != NULL)
		buffers = buffers->call->dict;
	for (uint32_t i = 0; buffers->kind == PICKLE_DICT &&
	    i + 1 < buffers->count; i += 2)
		if (!holds(passing, buffers->items[i]) &&
		    walk_node(walk, label_of(buffers->items[i], i / 2),
		    buffers->items[i + 1]) != 0)
			return -1;
	return 0;
}

/* torch/nn/modules/module.py, state_dict: parameters, buffers, modules. */
static int
walk_module(struct walk *walk, const struct pickle_node *state)
{
	if (walk_mapping(walk, pickle_find(state, "_parameters")) != 0 ||
	    walk_buffers(walk, pickle_find(state, "_buffers"),
	    pickle_find(state, "_non_persistent_buffers_set")) != 0)
		return -1;
	return walk_mapping(walk, pickle_find(state, "_modules"));
}

static int
walk_state(struct walk *walk, const struct pickle_node *state)
{
	if (state->kind != PICKLE_TUPLE)
		return walk_mapping(walk, state);
	/* (attributes, slots) */
	for (uint32_t i = 0; i < state->count; i++)
		if (walk_mapping(walk, state->items[i]) != 0)
			return -1;
	return 0;
}

/* An object: nothing is known of it but what it was made of. */
static int
walk_call(struct walk *walk, const struct pickle_node *node)
{
	const struct pickle_call *call = node->call;

	if (is_module(node))
		return walk_module(walk, call->state);
	if (walk_mapping(walk, node) != 0)
		return -1;
	if (is_mapping_class(call->callee))
		return 0;	/* its state is about versions of modules */
	if (call->list != NULL && walk_items(walk, call->list) != 0)
		return -1;
	if (call->arguments->kind == PICKLE_TUPLE &&
	    walk_items(walk, call->arguments) != 0)
		return -1;
	if (call->keywords != NULL && walk_mapping(walk, call->keywords) != 0)
		return -1;
	return call->state != NULL ? walk_state(walk, call->state) : 0;
}

static int
walk_children(struct walk *walk, const struct pickle_node *node)
{
	switch (node->kind) {
	case PICKLE_DICT:
		return walk_pairs(walk, node->items, node->count);
	case PICKLE_TUPLE:
	case PICKLE_LIST:
	case PICKLE_SET:
		return walk_items(walk, node);
	case PICKLE_CALL:
		return walk_call(walk, node);
	default:
		return 0;
	}
}

static bool
is_on_the_way(const struct walk *walk, const struct pickle_node *node)
{
	for (unsigned i = 0; i < walk->depth; i++)
		if (walk->frames[i].node == node)
			return true;
	return false;
}

/* What torch.optim.Optimizer has, as a dict or as an object. */
static bool
is_optimizer(const struct pickle_node *node)
{
	if (node->kind == PICKLE_CALL)
		node = node->call->dict != NULL ? node->call->dict :
		    node->call->state;
	return pickle_find(node, "param_groups") != NULL &&
	    pickle_find(node, "state") != NULL;
}

static int
walk_node(struct walk *walk, struct label label,
    const struct pickle_node *node)
{
	struct torch_view view;
	enum torch_view_kind kind;
	int result;

	if (++walk->steps > STEPS_MAXIMUM)
		return error_set(walk->error, ERROR_DAMAGED, CAUSE_LIMIT,
		    NULL, "its object refers to itself in too many ways");
	if (node->kind != PICKLE_DICT && node->kind != PICKLE_TUPLE &&
	    node->kind != PICKLE_LIST && node->kind != PICKLE_SET &&
	    node->kind != PICKLE_CALL)
		return 0;
	kind = torch_view_read(node, &view);
	if (kind != TORCH_VIEW_NONE)
		return add_tensor(walk, label, node, kind, &view);
	if (is_on_the_way(walk, node))
		return 0;
	if (walk->depth == DEPTH_MAXIMUM) {
		cut(walk);
		return 0;
	}
	walk->frames[walk->depth++] = (struct frame){ .node = node,
		.name = label.name, .length = label.length,
		.number = label.number, .optimizer = is_optimizer(node),
		.kind = kind_of(node) };
	result = walk_children(walk, node);
	walk->depth--;
	return result;
}

int
torch_tree_make(const struct pickle *pickle, struct key_tree *tree,
    struct error *error)
{
	const struct pickle_node *root = pickle_root(pickle);
	struct walk walk = { .tree = tree, .error = error, .depth = 1 };
	struct torch_view view;
	enum torch_view_kind kind = torch_view_read(root, &view);

	walk.frames[0] = (struct frame){ .node = root, .key = tree->root };
	if (kind != TORCH_VIEW_NONE)
		return add_tensor(&walk, (struct label){ "tensor", 6, 0 },
		    root, kind, &view);
	tree->root->kind = kind_of(root);
	tree->root->optimizer = is_optimizer(root);
	return walk_children(&walk, root);
}
