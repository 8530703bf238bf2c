#include "format/torch_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/pickle.h"
#include "format/tensor_make.h"

/*
 * A tensor that is larger than its storage has strides of 0 (expand): a small
 * file could fill any disk.  Up to here it is written out.
 */
#define EXPANDED_MAXIMUM (UINT64_C(1) << 30)

/* torch's names of its dtypes, as globals of the module torch. */
static const struct {
	const char *name;
	enum tensor_type type;
} dtypes[] = {
	{ "float32", TENSOR_F32 }, { "float64", TENSOR_F64 },
	{ "float16", TENSOR_F16 }, { "bfloat16", TENSOR_BF16 },
	{ "int64", TENSOR_I64 }, { "int32", TENSOR_I32 },
	{ "int16", TENSOR_I16 }, { "int8", TENSOR_I8 },
	{ "uint8", TENSOR_U8 }, { "uint16", TENSOR_U16 },
	{ "uint32", TENSOR_U32 }, { "uint64", TENSOR_U64 },
	{ "bool", TENSOR_BOOL }, { "complex64", TENSOR_C64 },
	{ "complex128", TENSOR_C128 }, { "float8_e5m2", TENSOR_F8_E5M2 },
	{ "float8_e4m3fn", TENSOR_F8_E4M3 },
};

/* What other ways of rebuilding mean (the allow-list of torch's
 * _weights_only_unpickler.py names most of them). */
static const struct {
	const char *name;
	const char *why;
} refused[] = {
	{ "_rebuild_qtensor", "it is quantised" },
	{ "_rebuild_sparse_tensor", "it is sparse" },
	{ "_rebuild_sparse_csr_tensor", "it is sparse" },
	{ "_rebuild_nested_tensor", "it is a nested tensor" },
	{ "_rebuild_meta_tensor_no_storage", "it has no data (meta)" },
	{ "_rebuild_wrapper_subclass", "it is of a class that keeps its "
	    "data in a way of its own" },
	{ "_rebuild_device_tensor_from_numpy", "it lies in the pickle as an "
	    "array of numpy" },
	{ "_rebuild_device_tensor_from_cpu_tensor", "it was saved for a "
	    "device that is not known" },
	{ "_rebuild_xla_tensor", "it was saved for XLA" },
	{ "_rebuild_mlc_tensor", "it was saved for MLC" },
	{ "_rebuild_ort_tensor", "it was saved for ORT" },
};

/* Classes whose objects stand for tensors that lie elsewhere too. */
static const char *const shards[] = { "DTensor", "ShardedTensor" };

#define COUNT(row) (sizeof(row) / sizeof((row)[0]))

int
torch_view_type(const struct pickle_node *node, enum tensor_type *type,
    const char **why)
{
	*why = "its element type is none that is known";
	if (node->kind != PICKLE_GLOBAL ||
	    !pickle_is_text(node->items[0], "torch"))
		return -1;
	for (size_t i = 0; i < COUNT(dtypes); i++) {
		if (pickle_is_text(node->items[1], dtypes[i].name)) {
			*type = dtypes[i].type;
			return 0;
		}
	}
	if (strncmp(node->items[1]->text, "q", 1) == 0)
		*why = "it is quantised";
	return -1;
}

const struct pickle_node *
torch_view_tuple(const struct pickle_node *node)
{
	if (node->kind == PICKLE_CALL &&
	    node->call->callee->kind == PICKLE_GLOBAL &&
	    pickle_is_text(node->call->callee->items[1], "Size") &&
	    node->call->arguments->kind == PICKLE_TUPLE &&
	    node->call->arguments->count == 1)
		node = node->call->arguments->items[0];
	if (node->kind != PICKLE_TUPLE && node->kind != PICKLE_LIST)
		return NULL;
	for (uint32_t i = 0; i < node->count; i++)
		if (node->items[i]->kind != PICKLE_INTEGER)
			return NULL;
	return node;
}

static uint64_t
bytes_of(const struct torch_view *view)
{
	uint64_t bytes = tensor_type_width(view->type);

	for (uint32_t i = 0; i < view->size->count; i++) {
		int64_t size = view->size->items[i]->integer;

		if (size < 0 ||
		    __builtin_mul_overflow(bytes, (uint64_t)size, &bytes))
			return 0;
	}
	return bytes;
}

static enum torch_view_kind
refuse(struct torch_view *view, const char *why)
{
	view->why = why;
	return TORCH_VIEW_REFUSED;
}

static bool
is_true(const struct pickle_node *node)
{
	return node != NULL && node->kind == PICKLE_BOOLEAN &&
	    node->integer != 0;
}

/* The metadata of a tensor: bits that say its numbers are to be changed. */
static bool
is_changed(const struct pickle_node *metadata)
{
	const struct pickle_node *conjugated = pickle_find(metadata, "conj");
	const struct pickle_node *negated = pickle_find(metadata, "neg");

	return is_true(conjugated) || is_true(negated);
}

/* (storage, offset, size, stride, ...), what is said from ${dtype} on. */
static enum torch_view_kind
read_plain(const struct pickle_node *arguments, uint32_t dtype,
    uint32_t metadata, struct torch_view *view)
{
	struct pickle_node **items = arguments->items;

	if (arguments->count < 4 || (dtype != 0 && arguments->count <= dtype))
		return refuse(view, "it is not rebuilt as torch does it");
	if (items[0]->kind != PICKLE_PERSISTENT ||
	    storage_read(items[0]->items[0], &view->storage) != 0)
		return refuse(view, "its storage is no storage of this file");
	view->offset = items[1];
	view->size = torch_view_tuple(items[2]);
	view->stride = torch_view_tuple(items[3]);
	if (view->size == NULL || view->stride == NULL ||
	    view->offset->kind != PICKLE_INTEGER ||
	    view->size->count != view->stride->count)
		return refuse(view, "it is not rebuilt as torch does it");
	if (view->size->count > TENSOR_DIMENSIONS_MAXIMUM)
		return refuse(view, "it has too many dimensions");
	view->dimensions = (unsigned)view->size->count;
	if (view->storage.meta)
		return refuse(view, "it has no data (meta)");
	if (view->storage.part)
		return refuse(view, "its storage is a part of another one");
	if (dtype != 0) {
		if (torch_view_type(items[dtype], &view->type,
		    &view->why) != 0)
			return TORCH_VIEW_REFUSED;
	} else if (!view->storage.typed) {
		return refuse(view, "its element type is none that is known");
	} else {
		view->type = view->storage.type;
	}
	if (metadata != 0 && arguments->count > metadata &&
	    is_changed(items[metadata]))
		return refuse(view, "it is a conjugated or negated view");
	view->bytes = bytes_of(view);
	return TORCH_VIEW_TENSOR;
}

static enum torch_view_kind read_call(const struct pickle_node *callee,
    const struct pickle_node *arguments, unsigned depth,
    struct torch_view *view);

static enum torch_view_kind
read_nested(const struct pickle_node *node, unsigned depth,
    struct torch_view *view)
{
	if (depth == 0 || node->kind != PICKLE_CALL ||
	    node->call->arguments->kind != PICKLE_TUPLE)
		return refuse(view, "it is not rebuilt as torch does it");
	if (read_call(node->call->callee, node->call->arguments, depth - 1,
	    view) == TORCH_VIEW_TENSOR)
		return TORCH_VIEW_TENSOR;
	return view->why != NULL ? TORCH_VIEW_REFUSED :
	    refuse(view, "it is not rebuilt as torch does it");
}

static bool
is_shard(const struct pickle_node *class)
{
	for (size_t i = 0; i < COUNT(shards); i++)
		if (class->kind == PICKLE_GLOBAL &&
		    pickle_is_text(class->items[1], shards[i]))
			return true;
	return false;
}

/* _rebuild_from_type_v2(function, class, its arguments, state) */
static enum torch_view_kind
read_from_type(const struct pickle_node *arguments, unsigned depth,
    struct torch_view *view)
{
	enum torch_view_kind kind;

	if (depth == 0 || arguments->count < 3 ||
	    arguments->items[2]->kind != PICKLE_TUPLE)
		return refuse(view, "it is not rebuilt as torch does it");
	if (is_shard(arguments->items[1]))
		return refuse(view, "it is one shard of a distributed tensor");
	kind = read_call(arguments->items[0], arguments->items[2], depth - 1,
	    view);
	return kind != TORCH_VIEW_NONE ? kind :
	    refuse(view, "it is of a class that is not known");
}

static enum torch_view_kind
read_call(const struct pickle_node *callee,
    const struct pickle_node *arguments, unsigned depth,
    struct torch_view *view)
{
	const struct pickle_node *name;

	if (callee->kind != PICKLE_GLOBAL || arguments->kind != PICKLE_TUPLE)
		return TORCH_VIEW_NONE;
	name = callee->items[1];
	if (is_shard(callee))
		return refuse(view, "it is one shard of a distributed tensor");
	if (strncmp(name->text, "_rebuild", 8) != 0 ||
	    strncmp(callee->items[0]->text, "torch", 5) != 0)
		return TORCH_VIEW_NONE;
	if (pickle_is_text(name, "_rebuild_tensor_v2"))
		return read_plain(arguments, 0, 6, view);
	if (pickle_is_text(name, "_rebuild_tensor_v3"))
		return read_plain(arguments, 6, 7, view);
	if (pickle_is_text(name, "_rebuild_tensor"))
		return read_plain(arguments, 0, 0, view);
	if (arguments->count > 0 &&
	    (pickle_is_text(name, "_rebuild_parameter") ||
	    pickle_is_text(name, "_rebuild_parameter_with_state")))
		return read_nested(arguments->items[0], depth, view);
	if (pickle_is_text(name, "_rebuild_from_type_v2") ||
	    pickle_is_text(name, "_rebuild_from_type"))
		return read_from_type(arguments, depth, view);
	for (size_t i = 0; i < COUNT(refused); i++)
		if (pickle_is_text(name, refused[i].name))
			return refuse(view, refused[i].why);
	return refuse(view, "it is rebuilt in a way that is not known");
}

enum torch_view_kind
torch_view_read(const struct pickle_node *node, struct torch_view *view)
{
	memset(view, 0, sizeof(*view));
	if (node->kind != PICKLE_CALL)
		return TORCH_VIEW_NONE;
	return read_call(node->call->callee, node->call->arguments, 4, view);
}

static int
fill(const struct torch_view *view, struct tensor *tensor,
    struct tensor_piece *piece, struct error *error)
{
	for (unsigned i = 0; i < view->dimensions; i++) {
		int64_t size = view->size->items[i]->integer;
		int64_t stride = view->stride->items[i]->integer;

		if (size < 0)
			return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    NULL, "it has a negative size");
		if (stride < 0)
			return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    NULL, "it has a negative stride");
		tensor->shape[i] = piece->size[i] = (uint64_t)size;
		piece->stride[i] = (uint64_t)stride;
	}
	if (view->offset->integer < 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "it begins before its storage");
	return tensor_make_bytes(tensor, error);
}

/* Whether the last element lies in the storage. */
static int
check_reach(const struct torch_view *view, uint64_t place,
    const struct tensor *tensor, struct tensor_piece *piece,
    struct error *error)
{
	unsigned width = tensor_type_width(view->type);
	uint64_t first = (uint64_t)view->offset->integer, reach, bytes, whole;

	if (tensor_make_reach(piece, tensor->dimensions, &reach) != 0 ||
	    __builtin_add_overflow(reach, first, &reach) ||
	    storage_size(reach, width, &bytes) != 0 ||
	    storage_size(view->storage.elements, view->storage.width,
	    &whole) != 0 || bytes > whole)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "it reaches past the end of its storage %s",
		    view->storage.key);
	piece->offset = place + first * width;
	return 0;
}

int
torch_view_make(const struct torch_view *view, uint64_t place,
    uint64_t length, struct tensor *tensor, const char **why,
    struct error *error)
{
	struct tensor_piece piece = { .start = NULL };

	if (tensor_make_shape(tensor, view->type, view->dimensions,
	    error) != 0)
		return -1;
	tensor->pieces = calloc(1, sizeof(*tensor->pieces));
	if (tensor->pieces == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a tensor");
		goto failed;
	}
	if (tensor_make_piece(tensor, &piece, error) != 0)
		goto failed;
	tensor->pieces[0] = piece;
	tensor->piece_count = 1;
	if (fill(view, tensor, &tensor->pieces[0], error) != 0)
		goto failed;
	if (tensor->bytes == 0) {
		/* Nothing of it lies anywhere. */
		free(tensor->pieces[0].start);
		tensor->piece_count = 0;
		return 0;
	}
	if (check_reach(view, place, tensor, &tensor->pieces[0], error) != 0)
		goto failed;
	if (tensor->bytes > length && tensor->bytes > EXPANDED_MAXIMUM) {
		tensor_make_free(tensor);
		*why = "its elements lie over each other, and it would be "
		    "over 1 GiB";
		return 1;
	}
	return 0;

failed:
	tensor_make_free(tensor);
	return -1;
}
