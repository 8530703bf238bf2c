#include "format/torch_write.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "format/storage.h"

/* Memo of what comes again for each tensor. */
enum memo { MEMO_DICT, MEMO_REBUILD, MEMO_STORAGE, MEMO_CPU };

struct writer {
	struct buffer *pickle;
	struct error *error;
	bool failed;
};

static void
put(struct writer *writer, const void *bytes, size_t length)
{
	if (!writer->failed && buffer_append(writer->pickle, bytes, length,
	    writer->error) != 0)
		writer->failed = true;
}

static void
put_text(struct writer *writer, const char *opcodes)
{
	put(writer, opcodes, strlen(opcodes));
}

static void
put_number(struct writer *writer, char opcode, uint64_t number, size_t width)
{
	uint8_t bytes[9] = { (uint8_t)opcode };

	for (size_t i = 0; i < width; i++)
		bytes[1 + i] = (uint8_t)(number >> (8 * i));
	put(writer, bytes, 1 + width);
}

/* The shortest of BININT1, BININT2, BININT, LONG1. */
static void
put_integer(struct writer *writer, uint64_t number)
{
	uint8_t bytes[11] = { 0x8a, 9 };

	if (number <= UINT8_MAX) {
		put_number(writer, 'K', number, 1);
	} else if (number <= UINT16_MAX) {
		put_number(writer, 'M', number, 2);
	} else if (number <= INT32_MAX) {
		put_number(writer, 'J', number, 4);
	} else {
		for (size_t i = 0; i < 8; i++)
			bytes[2 + i] = (uint8_t)(number >> (8 * i));
		put(writer, bytes, sizeof(bytes));
	}
}

static void
put_unicode(struct writer *writer, const char *text)
{
	put_number(writer, 'X', strlen(text), 4);
	put_text(writer, text);
}

static void
remember(struct writer *writer, enum memo memo)
{
	put_number(writer, 'q', memo, 1);
}

static void
recall(struct writer *writer, enum memo memo)
{
	put_number(writer, 'h', memo, 1);
}

/* torch._utils is what all tensors are rebuilt by: kept in the memo. */
static void
put_head(struct writer *writer)
{
	put_text(writer, "\x80\2ccollections\nOrderedDict\n");
	remember(writer, MEMO_DICT);
	put_text(writer, ")R(");
}

/* torch's names of the types that have no storage of their own. */
static const char *
dtype_of(enum tensor_type type)
{
	switch (type) {
	case TENSOR_U16: return "uint16";
	case TENSOR_U32: return "uint32";
	case TENSOR_U64: return "uint64";
	case TENSOR_F8_E5M2: return "float8_e5m2";
	case TENSOR_F8_E4M3: return "float8_e4m3fn";
	default: return NULL;
	}
}

static void
put_storage(struct writer *writer, size_t index, enum tensor_type type,
    uint64_t elements, bool first)
{
	char key[24];
	const char *class = storage_type_text(type);

	put_text(writer, "(");
	if (first) {
		put_unicode(writer, "storage");
		remember(writer, MEMO_STORAGE);
	} else {
		recall(writer, MEMO_STORAGE);
	}
	put_text(writer, class != NULL ? "ctorch\n" : "ctorch.storage\n");
	put_text(writer, class != NULL ? class : "UntypedStorage");
	put_text(writer, "\n");
	snprintf(key, sizeof(key), "%zu", index);
	put_unicode(writer, key);
	if (first) {
		put_unicode(writer, "cpu");
		remember(writer, MEMO_CPU);
	} else {
		recall(writer, MEMO_CPU);
	}
	put_integer(writer, class != NULL ? elements :
	    elements * tensor_type_width(type));
	put_text(writer, "tQ");
}

static void
put_tuple(struct writer *writer, const uint64_t *numbers, unsigned count)
{
	put_text(writer, "(");
	for (unsigned i = 0; i < count; i++)
		put_integer(writer, numbers[i]);
	put_text(writer, "t");
}

/* Strides of C order, as torch has them: a size of 0 counts as 1. */
static void
make_strides(const struct tensor *tensor, uint64_t *strides)
{
	uint64_t stride = 1;

	for (unsigned i = tensor->dimensions; i-- > 0;) {
		strides[i] = stride;
		if (tensor->shape[i] > 1 && __builtin_mul_overflow(stride,
		    tensor->shape[i], &stride))
			stride = 0;	/* only of an empty tensor */
	}
}

static void
put_tensor(struct writer *writer, const struct tensor *tensor, size_t index,
    enum tensor_type type, bool *rebuilt)
{
	const char *dtype = dtype_of(type);
	uint64_t strides[TENSOR_DIMENSIONS_MAXIMUM];
	uint64_t elements = tensor->bytes / tensor_type_width(tensor->type);

	put_unicode(writer, tensor->name);
	if (dtype != NULL) {
		put_text(writer, "ctorch._utils\n_rebuild_tensor_v3\n(");
	} else if (*rebuilt) {
		recall(writer, MEMO_REBUILD);
		put_text(writer, "(");
	} else {
		put_text(writer, "ctorch._utils\n_rebuild_tensor_v2\n");
		remember(writer, MEMO_REBUILD);
		put_text(writer, "(");
		*rebuilt = true;
	}
	put_storage(writer, index, type, elements, index == 0);
	put_integer(writer, 0);
	put_tuple(writer, tensor->shape, tensor->dimensions);
	make_strides(tensor, strides);
	put_tuple(writer, strides, tensor->dimensions);
	put_text(writer, "\x89");	/* requires_grad: False */
	recall(writer, MEMO_DICT);
	put_text(writer, ")R");		/* backward hooks: none */
	if (dtype != NULL) {
		put_text(writer, "ctorch\n");
		put_text(writer, dtype);
		put_text(writer, "\n");
	}
	put_text(writer, "tR");
}

int
torch_write_pickle(const struct model *model, const enum tensor_type *types,
    struct buffer *pickle, struct error *error)
{
	struct writer writer = { .pickle = pickle, .error = error };
	bool rebuilt = false;

	put_head(&writer);
	for (size_t i = 0; i < model->count && !writer.failed; i++)
		put_tensor(&writer, &model->tensors[i], i, types[i], &rebuilt);
	put_text(&writer, "u.");
	return writer.failed ? -1 : 0;
}
