#include "format/tensor.h"

/* The words are those of safetensors/src/tensor.rs, Dtype. */
static const struct {
	const char *text;
	unsigned width;
} types[] = {
	[TENSOR_BOOL] = { "BOOL", 1 }, [TENSOR_U8] = { "U8", 1 },
	[TENSOR_I8] = { "I8", 1 }, [TENSOR_U16] = { "U16", 2 },
	[TENSOR_I16] = { "I16", 2 }, [TENSOR_F16] = { "F16", 2 },
	[TENSOR_BF16] = { "BF16", 2 }, [TENSOR_U32] = { "U32", 4 },
	[TENSOR_I32] = { "I32", 4 }, [TENSOR_F32] = { "F32", 4 },
	[TENSOR_U64] = { "U64", 8 }, [TENSOR_I64] = { "I64", 8 },
	[TENSOR_F64] = { "F64", 8 }, [TENSOR_C64] = { "C64", 8 },
	[TENSOR_F8_E5M2] = { "F8_E5M2", 1 },
	[TENSOR_F8_E4M3] = { "F8_E4M3", 1 }, [TENSOR_C128] = { "C128", 16 },
};

const char *
tensor_type_text(enum tensor_type type)
{
	return types[type].text;
}

unsigned
tensor_type_width(enum tensor_type type)
{
	return types[type].width;
}

bool
tensor_is_run(const struct tensor *tensor, uint64_t *offset)
{
	const struct tensor_piece *piece = tensor->pieces;
	uint64_t wanted = 1;

	*offset = 0;
	if (tensor->bytes == 0)
		return true;
	if (tensor->piece_count != 1)
		return false;
	for (unsigned i = tensor->dimensions; i-- > 0;) {
		if (piece->size[i] != tensor->shape[i])
			return false;
		if (piece->size[i] != 1 && piece->stride[i] != wanted)
			return false;
		wanted *= piece->size[i];
	}
	*offset = piece->offset;
	return true;
}
