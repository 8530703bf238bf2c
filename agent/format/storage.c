#include "format/storage.h"

#include <stddef.h>
#include <string.h>

#include "format/pickle.h"

/*
 * torch/storage.py, _dtype_to_storage_type_map.  UntypedStorage counts bytes,
 * and the quantised ones hold numbers that mean nothing alone.
 */
static const struct {
	const char *name;
	unsigned width;
	bool typed;
	enum tensor_type type;
} types[] = {
	{ "DoubleStorage", 8, true, TENSOR_F64 },
	{ "FloatStorage", 4, true, TENSOR_F32 },
	{ "HalfStorage", 2, true, TENSOR_F16 },
	{ "BFloat16Storage", 2, true, TENSOR_BF16 },
	{ "LongStorage", 8, true, TENSOR_I64 },
	{ "IntStorage", 4, true, TENSOR_I32 },
	{ "ShortStorage", 2, true, TENSOR_I16 },
	{ "CharStorage", 1, true, TENSOR_I8 },
	{ "ByteStorage", 1, true, TENSOR_U8 },
	{ "BoolStorage", 1, true, TENSOR_BOOL },
	{ "ComplexFloatStorage", 8, true, TENSOR_C64 },
	{ "ComplexDoubleStorage", 16, true, TENSOR_C128 },
	{ "QUInt8Storage", 1, false, TENSOR_U8 },
	{ "QInt8Storage", 1, false, TENSOR_I8 },
	{ "QInt32Storage", 4, false, TENSOR_I32 },
	{ "UntypedStorage", 1, false, TENSOR_U8 },
};

#define TYPES (sizeof(types) / sizeof(types[0]))

static void
read_type(const struct pickle_node *type, struct storage *storage)
{
	if (type->kind != PICKLE_GLOBAL)
		return;
	for (size_t i = 0; i < TYPES; i++) {
		if (!pickle_is_text(type->items[1], types[i].name))
			continue;
		storage->width = types[i].width;
		storage->typed = types[i].typed;
		storage->type = types[i].type;
	}
}

int
storage_read(const struct pickle_node *id, struct storage *storage)
{
	const struct pickle_node *key, *elements;

	if (id->kind != PICKLE_TUPLE || id->count < 5 ||
	    !pickle_is_text(id->items[0], "storage"))
		return -1;
	key = id->items[2];
	elements = id->items[4];
	if (key->kind != PICKLE_TEXT || key->count == 0 ||
	    strlen(key->text) != key->count)
		return -1;
	if (elements->kind != PICKLE_INTEGER || elements->integer < 0)
		return -1;
	memset(storage, 0, sizeof(*storage));
	storage->key = key->text;
	storage->elements = (uint64_t)elements->integer;
	storage->meta = pickle_is_text(id->items[3], "meta");
	storage->part = id->count > 5 && id->items[5]->kind != PICKLE_NONE;
	read_type(id->items[1], storage);
	return 0;
}

int
storage_size(uint64_t elements, unsigned width, uint64_t *size)
{
	if (__builtin_mul_overflow(elements, (uint64_t)width, size) ||
	    *size > INT64_MAX)
		return -1;
	return 0;
}

const char *
storage_type_text(enum tensor_type type)
{
	for (size_t i = 0; i < TYPES; i++)
		if (types[i].typed && types[i].type == type)
			return types[i].name;
	return NULL;
}
