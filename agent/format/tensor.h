#ifndef FORMAT_TENSOR_H
#define FORMAT_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/*
 * Tensors inside checkpoint files: what they are called, what they hold, and
 * where their bytes lie.  Plain data; nothing is read through it.
 */

#define TENSOR_DIMENSIONS_MAXIMUM 64

/* Element types that safetensors has a word for. */
enum tensor_type {
	TENSOR_BOOL, TENSOR_U8, TENSOR_I8, TENSOR_U16, TENSOR_I16, TENSOR_F16,
	TENSOR_BF16, TENSOR_U32, TENSOR_I32, TENSOR_F32, TENSOR_U64, TENSOR_I64,
	TENSOR_F64, TENSOR_C64, TENSOR_F8_E5M2, TENSOR_F8_E4M3,
	TENSOR_C128	/* has none: refused by name when written to safetensors */
};

/**
 * tensor_type_text(type): the word of safetensors ("BF16"); "C128".
 * tensor_type_width(type): bytes of an element.
 */
const char *tensor_type_text(enum tensor_type type);
unsigned tensor_type_width(enum tensor_type type);

/*
 * A box of elements that lies in one file: the element with index (i0, i1,
 * ...) of the box is at `offset` + width * sum(i * stride) in the file and has
 * index (start0 + i0, ...) in the tensor.  Strides are in elements, never
 * negative; the box lies within the file, as whoever made it has checked.
 */
struct tensor_piece {
	size_t file;		/* index into the model's files */
	uint64_t offset;
	uint64_t *start;	/* dimensions of them each */
	uint64_t *size;
	uint64_t *stride;
};

struct tensor {
	char *name;		/* as the state dict has it: "layer.0.weight" */
	enum tensor_type type;
	unsigned dimensions;
	uint64_t *shape;
	uint64_t bytes;		/* width * all of shape */
	struct tensor_piece *pieces;	/* they cover it exactly, without overlap */
	size_t piece_count;
};

/**
 * tensor_is_run(tensor, offset):
 * Whether the tensor is one run of bytes in its file, in C order: then
 * *${offset} is where.
 */
bool tensor_is_run(const struct tensor *tensor, uint64_t *offset);

#endif
