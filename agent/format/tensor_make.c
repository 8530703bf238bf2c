#include "format/tensor_make.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory for a tensor");
}

int
tensor_make_shape(struct tensor *tensor, enum tensor_type type,
    unsigned dimensions, struct error *error)
{
	assert(dimensions <= TENSOR_DIMENSIONS_MAXIMUM);
	memset(tensor, 0, sizeof(*tensor));
	tensor->type = type;
	tensor->dimensions = dimensions;
	tensor->shape = calloc((size_t)dimensions + 1,
	    sizeof(*tensor->shape));
	return tensor->shape != NULL ? 0 : no_memory(error);
}

int
tensor_make_bytes(struct tensor *tensor, struct error *error)
{
	uint64_t bytes = tensor_type_width(tensor->type);

	tensor->bytes = 0;
	for (unsigned i = 0; i < tensor->dimensions; i++)
		if (tensor->shape[i] == 0)
			return 0;
	for (unsigned i = 0; i < tensor->dimensions; i++)
		if (__builtin_mul_overflow(bytes, tensor->shape[i], &bytes) ||
		    bytes > INT64_MAX)
			return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    NULL, "it is too large for any file");
	tensor->bytes = bytes;
	return 0;
}

int
tensor_make_piece(const struct tensor *tensor, struct tensor_piece *piece,
    struct error *error)
{
	size_t dimensions = tensor->dimensions;

	memset(piece, 0, sizeof(*piece));
	piece->start = calloc(3 * dimensions + 1, sizeof(*piece->start));
	if (piece->start == NULL)
		return no_memory(error);
	/* One run of memory for the three of them. */
	piece->size = piece->start + dimensions;
	piece->stride = piece->size + dimensions;
	return 0;
}

int
tensor_make_run(struct tensor *tensor, size_t file, uint64_t offset,
    struct error *error)
{
	struct tensor_piece *piece;
	uint64_t stride = 1;

	if (tensor->bytes == 0)
		return 0;
	tensor->pieces = calloc(1, sizeof(*tensor->pieces));
	if (tensor->pieces == NULL)
		return no_memory(error);
	piece = tensor->pieces;
	if (tensor_make_piece(tensor, piece, error) != 0)
		return -1;
	tensor->piece_count = 1;
	piece->file = file;
	piece->offset = offset;
	for (unsigned i = tensor->dimensions; i-- > 0;) {
		piece->size[i] = tensor->shape[i];
		piece->stride[i] = stride;
		stride *= tensor->shape[i];
	}
	return 0;
}

int
tensor_make_reach(const struct tensor_piece *piece, unsigned dimensions,
    uint64_t *reach)
{
	*reach = 1;
	for (unsigned i = 0; i < dimensions; i++) {
		uint64_t part;

		assert(piece->size[i] > 0);
		if (__builtin_mul_overflow(piece->size[i] - 1,
		    piece->stride[i], &part) ||
		    __builtin_add_overflow(*reach, part, reach))
			return -1;
	}
	return 0;
}

void
tensor_make_free(struct tensor *tensor)
{
	for (size_t i = 0; i < tensor->piece_count; i++)
		free(tensor->pieces[i].start);
	free(tensor->pieces);
	free(tensor->shape);
	free(tensor->name);
	memset(tensor, 0, sizeof(*tensor));
}
