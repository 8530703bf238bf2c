#include "format/storage.h"

#include <string.h>

#include "format/pickle.h"

/* torch/storage.py, _dtype_to_storage_type_map; UntypedStorage counts bytes. */
static const struct {
	const char *name;
	unsigned width;
} types[] = {
	{ "DoubleStorage", 8 }, { "FloatStorage", 4 }, { "HalfStorage", 2 },
	{ "BFloat16Storage", 2 }, { "LongStorage", 8 }, { "IntStorage", 4 },
	{ "ShortStorage", 2 }, { "CharStorage", 1 }, { "ByteStorage", 1 },
	{ "BoolStorage", 1 }, { "ComplexFloatStorage", 8 },
	{ "ComplexDoubleStorage", 16 }, { "QUInt8Storage", 1 },
	{ "QInt8Storage", 1 }, { "QInt32Storage", 4 },
	{ "UntypedStorage", 1 },
};

static unsigned
width_of(const struct pickle_node *type)
{
	if (type->kind != PICKLE_GLOBAL)
		return 0;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (pickle_is_text(type->items[1], types[i].name))
			return types[i].width;
	return 0;
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
	storage->key = key->text;
	storage->elements = (uint64_t)elements->integer;
	storage->width = width_of(id->items[1]);
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
