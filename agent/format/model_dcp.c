#include "format/model_dcp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "format/dcp_blob.h"
#include "format/dcp_metadata.h"
#include "format/model_take.h"
#include "format/pickle.h"
#include "format/tensor_make.h"
#include "format/torch_view.h"

/* Comparing the boxes of one tensor, so that no file takes hours. */
#define COMPARISONS_MAXIMUM 100000000

struct directory {
	const struct model_file *files;
	size_t count;
	size_t folder;		/* bytes of the folder in the path of .metadata */
	const char *metadata_path;
	size_t recent;		/* the file that was found last */
	struct dcp_metadata metadata;
	struct dcp_blob_reader blobs;
	uint64_t comparisons;
};

static int
damaged(struct error *error, const char *what)
{
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL, "%s", what);
}

static bool
is_file(const struct directory *directory, size_t file, const char *path)
{
	const char *name = directory->files[file].path;

	return strncmp(name, directory->metadata_path, directory->folder) ==
	    0 && strcmp(name + directory->folder, path) == 0;
}

/* The file ${path} beside .metadata; it is most often the last one again. */
static int
find_file(struct directory *directory, const char *path, size_t *file,
    struct error *error)
{
	for (size_t i = 0; i < directory->count; i++) {
		size_t at = (directory->recent + i) % directory->count;

		if (is_file(directory, at, path)) {
			*file = directory->recent = at;
			return 0;
		}
	}
	return error_set(error, ERROR_DAMAGED, CAUSE_NOT_FOUND, NULL,
	    "its file %s is not there", path);
}

/* Where a chunk is and how large, as a box with strides of its own. */
static int
fill_piece(const struct pickle_node *start, const struct pickle_node *size,
    const struct tensor *tensor, struct tensor_piece *piece,
    struct error *error)
{
	uint64_t stride = 1;

	if (start->count != tensor->dimensions ||
	    size->count != tensor->dimensions)
		return damaged(error, "a part of it has other dimensions");
	for (unsigned i = tensor->dimensions; i-- > 0;) {
		int64_t from = start->items[i]->integer;
		int64_t extent = size->items[i]->integer;

		if (from < 0 || extent < 0 ||
		    (uint64_t)from > tensor->shape[i] ||
		    (uint64_t)extent > tensor->shape[i] - (uint64_t)from)
			return damaged(error, "a part of it lies outside");
		piece->start[i] = (uint64_t)from;
		piece->size[i] = (uint64_t)extent;
		piece->stride[i] = stride;
		stride *= (uint64_t)extent;
	}
	return 0;
}

/* The blob of a chunk: its file, and where the content begins in it. */
static int
place_piece(struct directory *directory, const struct dcp_tensor *stored,
    const struct pickle_node *start, enum tensor_type type,
    unsigned dimensions, struct tensor_piece *piece, struct error *error)
{
	const struct dcp_place *place = dcp_metadata_place(
	    &directory->metadata, stored, start);
	struct tensor part = { .type = type, .dimensions = dimensions,
		.shape = piece->size };

	if (place == NULL)
		return damaged(error, "a part of it is stored nowhere");
	if (place->changed)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "it is compressed or otherwise changed");
	if (tensor_make_bytes(&part, error) != 0 ||
	    find_file(directory, place->path, &piece->file, error) != 0)
		return -1;
	if (dcp_blob_locate(&directory->blobs,
	    directory->files[piece->file].source, place->offset, place->size,
	    &part, &piece->offset, error) != 0)
		return error_prefix(error, "%s", place->path);
	return 0;
}

static bool
is_empty(const struct tensor_piece *piece, unsigned dimensions)
{
	for (unsigned i = 0; i < dimensions; i++)
		if (piece->size[i] == 0)
			return true;
	return false;
}

static int
add_piece(struct directory *directory, const struct dcp_tensor *stored,
    const struct pickle_node *chunk, struct tensor *tensor,
    struct error *error)
{
	const struct pickle_node *start = dcp_metadata_field(chunk, "offsets");
	const struct pickle_node *size = dcp_metadata_field(chunk, "sizes");
	struct tensor_piece *piece = &tensor->pieces[tensor->piece_count];

	start = start == NULL ? NULL : torch_view_tuple(start);
	size = size == NULL ? NULL : torch_view_tuple(size);
	if (start == NULL || size == NULL)
		return damaged(error, "a part of it has no place");
	if (tensor_make_piece(tensor, piece, error) != 0)
		return -1;
	tensor->piece_count++;
	if (fill_piece(start, size, tensor, piece, error) != 0)
		return -1;
	if (is_empty(piece, tensor->dimensions)) {
		/* A rank that had no rows of it. */
		tensor->piece_count--;
		free(piece->start);
		return 0;
	}
	return place_piece(directory, stored, start, tensor->type,
	    tensor->dimensions, piece, error);
}

static int
by_start(const void *a, const void *b)
{
	const struct tensor_piece *left = a, *right = b;

	return left->start[0] < right->start[0] ? -1 :
	    left->start[0] > right->start[0];
}

static bool
overlap(const struct tensor_piece *a, const struct tensor_piece *b,
    unsigned dimensions)
{
	for (unsigned i = 0; i < dimensions; i++)
		if (a->start[i] + a->size[i] <= b->start[i] ||
		    b->start[i] + b->size[i] <= a->start[i])
			return false;
	return true;
}

/* All parts within, none over another, as many elements as the whole. */
static int
check_cover(struct directory *directory, struct tensor *tensor,
    struct error *error)
{
	uint64_t width = tensor_type_width(tensor->type), bytes = 0;

	if (tensor->dimensions > 0)
		qsort(tensor->pieces, tensor->piece_count,
		    sizeof(*tensor->pieces), by_start);
	for (size_t i = 0; i < tensor->piece_count; i++) {
		const struct tensor_piece *piece = &tensor->pieces[i];
		uint64_t part = width;

		for (unsigned j = 0; j < tensor->dimensions; j++)
			part *= piece->size[j];
		bytes += part;
		if (bytes > tensor->bytes)
			return damaged(error, "its parts are more than it is");
		for (size_t j = i + 1; j < tensor->piece_count &&
		    (tensor->dimensions == 0 || tensor->pieces[j].start[0] <
		    piece->start[0] + piece->size[0]); j++) {
			if (++directory->comparisons > COMPARISONS_MAXIMUM)
				return error_set(error, ERROR_DAMAGED,
				    CAUSE_LIMIT, NULL, "it has too many parts");
			if (overlap(piece, &tensor->pieces[j],
			    tensor->dimensions))
				return damaged(error,
				    "its parts lie over each other");
		}
	}
	return bytes == tensor->bytes ? 0 :
	    damaged(error, "parts of it are missing");
}

static int
fill_tensor(struct directory *directory, const struct dcp_tensor *stored,
    struct tensor *tensor, struct error *error)
{
	for (unsigned i = 0; i < tensor->dimensions; i++) {
		int64_t size = stored->size->items[i]->integer;

		if (size < 0)
			return damaged(error, "it has a negative size");
		tensor->shape[i] = (uint64_t)size;
	}
	if (tensor_make_bytes(tensor, error) != 0)
		return -1;
	tensor->pieces = calloc((size_t)stored->chunks->count + 1,
	    sizeof(*tensor->pieces));
	if (tensor->pieces == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the parts of a tensor");
	for (uint32_t i = 0; i < stored->chunks->count; i++)
		if (add_piece(directory, stored, stored->chunks->items[i],
		    tensor, error) != 0)
			return -1;
	return check_cover(directory, tensor, error);
}

static int
make(void *context, const struct key *key, struct tensor *tensor,
    const char **why, struct error *error)
{
	struct directory *directory = context;
	const struct dcp_tensor *stored = key->origin;

	(void)why;
	if (tensor_make_shape(tensor, stored->type,
	    (unsigned)stored->size->count, error) != 0)
		return -1;
	if (fill_tensor(directory, stored, tensor, error) != 0) {
		tensor_make_free(tensor);
		return -1;
	}
	return 0;
}

int
model_dcp_take(const struct model_file *files, size_t count, size_t metadata,
    const struct model_options *options, struct model *model,
    struct error *error)
{
	struct directory *directory = calloc(1, sizeof(*directory));
	struct model_maker maker = { make, directory };
	const char *path = files[metadata].path;
	int result;

	if (directory == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, path,
		    "out of memory for a distributed checkpoint");
	directory->files = files;
	directory->count = count;
	directory->metadata_path = path;
	directory->folder = (size_t)(path_base(path) - path);
	result = dcp_metadata_read(files[metadata].source,
	    &directory->metadata, error);
	if (result == 0)
		result = model_take(&directory->metadata.tree, &maker,
		    options, model, error);
	dcp_metadata_free(&directory->metadata);
	free(directory);
	return result;
}

int
model_dcp_print(const struct source *source, struct buffer *text,
    struct error *error)
{
	struct dcp_metadata metadata;
	int result = dcp_metadata_read(source, &metadata, error);

	if (result == 0)
		result = key_tree_print(&metadata.tree, text, error);
	dcp_metadata_free(&metadata);
	return result;
}
