#ifndef TESTS_UNIT_FORMAT_PICKLER_H
#define TESTS_UNIT_FORMAT_PICKLER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A writer of pickles of protocol 2, also wrong ones.  Nothing is checked but
 * that they fit.
 */
struct pickler {
	char bytes[1 << 16];
	size_t length;
};

static inline void
pickler_raw(struct pickler *pickler, const char *bytes, size_t length)
{
	memcpy(pickler->bytes + pickler->length, bytes, length);
	pickler->length += length;
}

static inline void
pickler_put(struct pickler *pickler, const char *text)
{
	pickler_raw(pickler, text, strlen(text));
}

static inline void
pickler_number(struct pickler *pickler, uint64_t number, int width)
{
	for (int i = 0; i < width; i++)
		pickler->bytes[pickler->length++] = (char)(number >> (8 * i));
}

static inline void
pickler_bytes(struct pickler *pickler, const char *text, size_t length)
{
	pickler_put(pickler, "X");
	pickler_number(pickler, length, 4);
	pickler_raw(pickler, text, length);
}

static inline void
pickler_text(struct pickler *pickler, const char *text)
{
	pickler_bytes(pickler, text, strlen(text));
}

static inline void
pickler_integer(struct pickler *pickler, int64_t number)
{
	pickler_raw(pickler, "\x8a\x08", 2);
	pickler_number(pickler, (uint64_t)number, 8);
}

static inline void
pickler_tuple(struct pickler *pickler, const int64_t *numbers, size_t count)
{
	pickler_put(pickler, "(");
	for (size_t i = 0; i < count; i++)
		pickler_integer(pickler, numbers[i]);
	pickler_put(pickler, "t");
}

static inline void
pickler_global(struct pickler *pickler, const char *module, const char *name)
{
	pickler_put(pickler, "c");
	pickler_put(pickler, module);
	pickler_put(pickler, "\n");
	pickler_put(pickler, name);
	pickler_put(pickler, "\n");
}

static inline void
pickler_storage(struct pickler *pickler, const char *type, const char *key,
    int64_t elements)
{
	pickler_put(pickler, "(");
	pickler_text(pickler, "storage");
	pickler_global(pickler, "torch", type);
	pickler_text(pickler, key);
	pickler_text(pickler, "cpu");
	pickler_integer(pickler, elements);
	pickler_put(pickler, "tQ");
}

/* The arguments that come behind the storage, up to the hooks. */
static inline void
pickler_view(struct pickler *pickler, int64_t offset, const int64_t *size,
    const int64_t *stride, size_t dimensions)
{
	pickler_integer(pickler, offset);
	pickler_tuple(pickler, size, dimensions);
	pickler_tuple(pickler, stride, dimensions);
	pickler_put(pickler, "\x89}");
}

/* A float32 tensor of one dimension in all of a storage. */
static inline void
pickler_tensor(struct pickler *pickler, const char *key, int64_t elements)
{
	int64_t stride = 1;

	pickler_global(pickler, "torch._utils", "_rebuild_tensor_v2");
	pickler_put(pickler, "(");
	pickler_storage(pickler, "FloatStorage", key, elements);
	pickler_view(pickler, 0, &elements, &stride, 1);
	pickler_put(pickler, "tR");
}

#endif
