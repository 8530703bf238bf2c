#include "format/dcp_metadata.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/pickle.h"
#include "format/torch_view.h"
#include "format/window.h"

/* The way to a tensor in the nested state dict, flattened in its name. */
#define WAY_MAXIMUM 16

/* One tensor with its way: all of it but the last part are branches. */
struct entry {
	const struct pickle_node *info;
	const struct pickle_node *name;
	const struct pickle_node *way[WAY_MAXIMUM];	/* texts or numbers */
	size_t depth;
	size_t index;
};

/* What is between a name and its first dot stands for these branches. */
static const char *const first_parts[] = { "model", "module", "state_dict",
	"ema", "model_ema", "optimizer", "optim", "optimizers",
	"rng_state", "rng", "opt_param_scheduler", "lr_scheduler",
	"lr_schedulers", "scheduler", "dataloader", "train_state" };

/*
 * A chunk takes some 1 KiB as a graph, and a model with its optimizer on a
 * hundred GPUs has hundreds of thousands of them.
 */
#define MEMORY_MAXIMUM (UINT64_C(768) << 20)

#define COUNT(row) (sizeof(row) / sizeof((row)[0]))

static int
damaged(struct error *error, const char *what)
{
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
	    ".metadata %s", what);
}

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory for a .metadata");
}

const struct pickle_node *
dcp_metadata_field(const struct pickle_node *node, const char *name)
{
	if (node == NULL || node->kind != PICKLE_CALL)
		return NULL;
	return pickle_find(node->call->state, name);
}

static bool
is_class(const struct pickle_node *node, const char *name)
{
	return node->kind == PICKLE_CALL &&
	    node->call->callee->kind == PICKLE_GLOBAL &&
	    pickle_is_text(node->call->callee->items[1], name);
}

/* TensorProperties: pickled as (dtype, layout, ...), long ago as a dict. */
static const struct pickle_node *
dtype_of(const struct pickle_node *info)
{
	const struct pickle_node *properties = dcp_metadata_field(info,
	    "properties"), *state;

	if (properties == NULL || properties->kind != PICKLE_CALL)
		return NULL;
	state = properties->call->state;
	if (state != NULL && state->kind == PICKLE_TUPLE && state->count > 0)
		return state->items[0];
	return pickle_find(state, "dtype");
}

static uint64_t
bytes_of(const struct dcp_tensor *tensor)
{
	uint64_t bytes = tensor_type_width(tensor->type);

	for (uint32_t i = 0; i < tensor->size->count; i++) {
		int64_t size = tensor->size->items[i]->integer;

		if (size < 0 ||
		    __builtin_mul_overflow(bytes, (uint64_t)size, &bytes))
			return 0;
	}
	return bytes;
}

/* The tensor of ${entry} beneath ${parent}. */
static int
add_tensor(struct dcp_metadata *metadata, const struct entry *entry,
    struct key *parent, struct error *error)
{
	const struct pickle_node *dtype = dtype_of(entry->info), *size;
	struct dcp_tensor *tensor;
	struct key *key = key_tree_add(&metadata->tree, parent, KEY_REFUSED,
	    error);
	const struct pickle_node *last = entry->way[entry->depth - 1];

	tensor = arena_take(&metadata->tree.arena, sizeof(*tensor), error);
	if (key == NULL || tensor == NULL)
		return -1;
	key->name = last->kind == PICKLE_INTEGER ? NULL : last->text;
	key->length = last->kind == PICKLE_INTEGER ? 0 : last->count;
	key->number = last->kind == PICKLE_INTEGER ?
	    (uint64_t)last->integer : 0;
	/* A name that was cut at its first dot stays whole. */
	key->absolute = last == entry->name && entry->depth > 1;
	key->why = "its size or place is not said as it should be";
	size = dcp_metadata_field(entry->info, "size");
	tensor->size = size == NULL ? NULL : torch_view_tuple(size);
	tensor->chunks = dcp_metadata_field(entry->info, "chunks");
	tensor->name = entry->name->text;
	tensor->length = entry->name->count;
	if (tensor->size != NULL && tensor->chunks != NULL &&
	    tensor->chunks->kind == PICKLE_LIST && dtype != NULL &&
	    tensor->size->count <= TENSOR_DIMENSIONS_MAXIMUM &&
	    torch_view_type(dtype, &tensor->type, &key->why) == 0) {
		key->kind = KEY_TENSOR;
		key->origin = tensor;
		key->scalar = tensor->size->count == 0;
	}
	return key_tree_count(&metadata->tree, key, key->kind == KEY_TENSOR ?
	    bytes_of(tensor) : 0, error);
}

static int
compare_parts(const struct pickle_node *a, const struct pickle_node *b)
{
	uint32_t shorter;
	int order;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind == PICKLE_INTEGER)
		return a->integer < b->integer ? -1 : a->integer > b->integer;
	shorter = a->count < b->count ? a->count : b->count;
	order = memcmp(a->text, b->text, shorter);
	return order != 0 ? order : a->count < b->count ? -1 :
	    a->count > b->count;
}

/* By the branches, then as they came. */
static int
by_way(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	for (size_t i = 0; i + 1 < left->depth && i + 1 < right->depth; i++) {
		int order = compare_parts(left->way[i], right->way[i]);

		if (order != 0)
			return order;
	}
	if (left->depth != right->depth)
		return left->depth < right->depth ? -1 : 1;
	return left->index < right->index ? -1 : left->index > right->index;
}

/* The way that planner_data tells: a tuple of texts and numbers. */
static bool
read_way(const struct pickle_node *way, struct entry *entry)
{
	if (way == NULL || way->kind != PICKLE_TUPLE || way->count == 0 ||
	    way->count > WAY_MAXIMUM)
		return false;
	for (uint32_t i = 0; i < way->count; i++) {
		if (way->items[i]->kind != PICKLE_TEXT &&
		    (way->items[i]->kind != PICKLE_INTEGER ||
		    way->items[i]->integer < 0))
			return false;
		entry->way[i] = way->items[i];
	}
	entry->depth = way->count;
	return true;
}

/* ChainedOptimizer of Megatron: chained_0.optimizer.state... */
static bool
is_chained(const char *text, size_t length)
{
	return length > 8 && memcmp(text, "chained_", 8) == 0;
}

static bool
is_first_part(const char *text, size_t length)
{
	for (size_t i = 0; i < COUNT(first_parts); i++)
		if (strlen(first_parts[i]) == length &&
		    memcmp(text, first_parts[i], length) == 0)
			return true;
	return is_chained(text, length);
}

/*
 * Without it: the part before the first dot, if it is a known one; behind
 * "state", which is Composer's, the one before the second.
 */
static int
guess_way(struct dcp_metadata *metadata, struct entry *entry,
    struct error *error)
{
	const struct pickle_node *name = entry->name;
	size_t from = name->count > 6 && memcmp(name->text, "state.", 6) == 0 ?
	    6 : 0;
	const char *dot = memchr(name->text + from, '.', name->count - from);
	struct pickle_node *parts;

	entry->depth = 1;
	entry->way[0] = name;
	if (dot == NULL || !is_first_part(name->text + from,
	    (size_t)(dot - name->text) - from))
		return 0;
	parts = arena_take(&metadata->tree.arena, 2 * sizeof(*parts), error);
	if (parts == NULL)
		return -1;
	parts[0] = (struct pickle_node){ .kind = PICKLE_TEXT, .count = 5,
		.text = "state" };
	parts[1] = (struct pickle_node){ .kind = PICKLE_TEXT,
		.count = (uint32_t)((size_t)(dot - name->text) - from),
		.text = name->text + from };
	entry->depth = 0;
	if (from > 0)
		entry->way[entry->depth++] = &parts[0];
	entry->way[entry->depth++] = &parts[1];
	entry->way[entry->depth++] = name;
	return 0;
}

/*
 * The branches of sorted entries: what an entry shares with the one before it
 * is there already.
 */
static int
add_entries(struct dcp_metadata *metadata, const struct entry *entries,
    size_t count, struct error *error)
{
	struct key *keys[WAY_MAXIMUM] = { metadata->tree.root };
	size_t depth = 0;

	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &entries[i];
		size_t same = 0;

		while (same < depth && same + 1 < entry->depth &&
		    compare_parts(entry->way[same],
		    entries[i - 1].way[same]) == 0)
			same++;
		for (depth = same; depth + 1 < entry->depth; depth++) {
			const struct pickle_node *part = entry->way[depth];
			struct key *key = key_tree_add(&metadata->tree,
			    keys[depth], KEY_BRANCH, error);

			if (key == NULL)
				return -1;
			if (part->kind == PICKLE_INTEGER) {
				key->number = (uint64_t)part->integer;
			} else {
				key->name = part->text;
				key->length = part->count;
			}
			key->optimizer = key->name != NULL &&
			    is_chained(key->name, key->length);
			keys[depth + 1] = key;
		}
		if (add_tensor(metadata, entry, keys[depth], error) != 0)
			return -1;
	}
	return 0;
}

/* The entries of planner_data, sorted by name. */
struct ways {
	const struct pickle_node *const **pairs;	/* name, way */
	size_t count;
};

static int
by_first(const void *a, const void *b)
{
	const struct pickle_node *const *const *left = a, *const *const *right =
	    b;

	return compare_parts((*left)[0], (*right)[0]);
}

static int
sort_ways(const struct pickle_node *planned, struct ways *ways,
    struct error *error)
{
	ways->count = 0;
	ways->pairs = calloc(planned == NULL ||
	    planned->kind != PICKLE_DICT ? 1 : (size_t)planned->count / 2 + 1,
	    sizeof(*ways->pairs));
	if (ways->pairs == NULL)
		return no_memory(error);
	for (uint32_t i = 0; planned != NULL && planned->kind == PICKLE_DICT &&
	    i + 1 < planned->count; i += 2)
		if (planned->items[i]->kind == PICKLE_TEXT)
			ways->pairs[ways->count++] =
			    (const struct pickle_node *const *)
			    &planned->items[i];
	qsort(ways->pairs, ways->count, sizeof(*ways->pairs), by_first);
	return 0;
}

static const struct pickle_node *
find_way(const struct ways *ways, const struct pickle_node *name)
{
	const struct pickle_node *const *wanted = &name, *const **found;

	if (ways->count == 0)
		return NULL;
	found = bsearch(&wanted, ways->pairs, ways->count,
	    sizeof(*ways->pairs), by_first);
	return found == NULL ? NULL : (*found)[1];
}

/* Fill ${entries} with the tensors among ${infos}. */
static int
read_entries(struct dcp_metadata *metadata, const struct pickle_node *infos,
    const struct ways *ways, struct entry *entries, size_t *count,
    struct error *error)
{
	*count = 0;
	for (uint32_t i = 0; i + 1 < infos->count; i += 2) {
		struct entry *entry = &entries[*count];

		if (infos->items[i]->kind != PICKLE_TEXT ||
		    !is_class(infos->items[i + 1], "TensorStorageMetadata"))
			continue;	/* BYTE_IO: no tensor */
		entry->name = infos->items[i];
		entry->info = infos->items[i + 1];
		entry->index = (*count)++;
		if (!read_way(find_way(ways, entry->name), entry) &&
		    guess_way(metadata, entry, error) != 0)
			return -1;
	}
	return 0;
}

static int
read_tensors(struct dcp_metadata *metadata, struct error *error)
{
	const struct pickle_node *root = pickle_root(metadata->pickle);
	const struct pickle_node *infos = dcp_metadata_field(root,
	    "state_dict_metadata");
	struct ways ways = { NULL, 0 };
	struct entry *entries;
	size_t count;
	int result;

	if (infos == NULL || infos->kind != PICKLE_DICT)
		return damaged(error, "has no state_dict_metadata");
	entries = calloc((size_t)infos->count / 2 + 1, sizeof(*entries));
	result = entries == NULL ? no_memory(error) : sort_ways(
	    dcp_metadata_field(root, "planner_data"), &ways, error);
	if (result == 0)
		result = read_entries(metadata, infos, &ways, entries, &count,
		    error);
	if (result == 0) {
		qsort(entries, count, sizeof(*entries), by_way);
		result = add_entries(metadata, entries, count, error);
	}
	free(ways.pairs);
	free(entries);
	return result;
}

static int
compare_starts(const struct pickle_node *a, const struct pickle_node *b)
{
	if (a == NULL || b == NULL)
		return (a != NULL) - (b != NULL);
	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	for (uint32_t i = 0; i < a->count; i++)
		if (a->items[i]->integer != b->items[i]->integer)
			return a->items[i]->integer < b->items[i]->integer ?
			    -1 : 1;
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	const struct dcp_place *left = a, *right = b;
	size_t shorter = left->length < right->length ? left->length :
	    right->length;
	int order = memcmp(left->name, right->name, shorter);

	if (order == 0)
		order = left->length < right->length ? -1 :
		    left->length > right->length;
	return order != 0 ? order : compare_starts(left->start, right->start);
}

/* MetadataIndex and _StorageInfo. */
static bool
read_place(const struct pickle_node *index, const struct pickle_node *info,
    struct dcp_place *place)
{
	const struct pickle_node *name = dcp_metadata_field(index, "fqn");
	const struct pickle_node *start = dcp_metadata_field(index, "offset");
	const struct pickle_node *path = dcp_metadata_field(info,
	    "relative_path");
	const struct pickle_node *offset = dcp_metadata_field(info, "offset");
	const struct pickle_node *length = dcp_metadata_field(info, "length");
	const struct pickle_node *changes = dcp_metadata_field(info,
	    "transform_descriptors");

	if (name == NULL || name->kind != PICKLE_TEXT || path == NULL ||
	    path->kind != PICKLE_TEXT || strlen(path->text) != path->count ||
	    offset == NULL || offset->kind != PICKLE_INTEGER ||
	    offset->integer < 0 || length == NULL ||
	    length->kind != PICKLE_INTEGER || length->integer < 0)
		return false;
	*place = (struct dcp_place){ .name = name->text,
		.length = name->count, .path = path->text,
		.start = start == NULL ? NULL : torch_view_tuple(start),
		.offset = (uint64_t)offset->integer,
		.size = (uint64_t)length->integer,
		.changed = changes != NULL && changes->kind != PICKLE_NONE &&
		    !(changes->kind == PICKLE_LIST && changes->count == 0) };
	return true;
}

static int
read_places(struct dcp_metadata *metadata, struct error *error)
{
	const struct pickle_node *data = dcp_metadata_field(
	    pickle_root(metadata->pickle), "storage_data");

	if (data == NULL || data->kind != PICKLE_DICT)
		return damaged(error, "has no storage_data");
	metadata->places = calloc((size_t)data->count / 2 + 1,
	    sizeof(*metadata->places));
	if (metadata->places == NULL)
		return no_memory(error);
	for (uint32_t i = 0; i + 1 < data->count; i += 2)
		metadata->count += read_place(data->items[i],
		    data->items[i + 1], &metadata->places[metadata->count]);
	qsort(metadata->places, metadata->count, sizeof(*metadata->places),
	    by_name);
	return 0;
}

int
dcp_metadata_read(const struct source *source, struct dcp_metadata *metadata,
    struct error *error)
{
	struct window *window = malloc(sizeof(*window));

	memset(metadata, 0, sizeof(*metadata));
	if (window == NULL)
		return no_memory(error);
	window_init(window, source, 0, source->size);
	metadata->pickle = pickle_read_within(window, MEMORY_MAXIMUM, error);
	free(window);
	if (metadata->pickle == NULL)
		return error_prefix(error, ".metadata");
	if (key_tree_init(&metadata->tree, error) != 0 ||
	    read_tensors(metadata, error) != 0)
		return -1;
	return read_places(metadata, error);
}

const struct dcp_place *
dcp_metadata_place(const struct dcp_metadata *metadata,
    const struct dcp_tensor *tensor, const struct pickle_node *start)
{
	struct dcp_place wanted = { .name = tensor->name,
		.length = tensor->length, .start = start };
	const struct dcp_place *found;

	if (metadata->count == 0)
		return NULL;
	found = bsearch(&wanted, metadata->places, metadata->count,
	    sizeof(wanted), by_name);
	/* A tensor in one piece may be indexed without where it begins. */
	if (found == NULL && tensor->chunks->count == 1) {
		wanted.start = NULL;
		found = bsearch(&wanted, metadata->places, metadata->count,
		    sizeof(wanted), by_name);
	}
	return found;
}

void
dcp_metadata_free(struct dcp_metadata *metadata)
{
	key_tree_free(&metadata->tree);
	free(metadata->places);
	pickle_free(metadata->pickle);
	memset(metadata, 0, sizeof(*metadata));
}
