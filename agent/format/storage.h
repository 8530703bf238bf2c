#ifndef FORMAT_STORAGE_H
#define FORMAT_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/tensor.h"

struct pickle_node;

/*
 * A storage of torch, as the persistent ids of its pickles name it
 * (torch/serialization.py, persistent_id): ('storage', type, key, location,
 * number of elements), and one more in the legacy format.
 */
struct storage {
	const char *key;	/* the pickle's */
	uint64_t elements;
	unsigned width;		/* bytes of an element; 0: a type not known here */
	bool typed;		/* `type` is what its elements are */
	enum tensor_type type;
	bool meta;		/* its location is "meta": it has no bytes */
	bool part;		/* legacy: it is a part of another storage */
};

/**
 * storage_read(id, storage):
 * Take the persistent id ${id} apart.  Return 0, or -1 when it is something
 * else.
 */
int storage_read(const struct pickle_node *id, struct storage *storage);

/**
 * storage_size(elements, width, size):
 * Their product.  Return 0, or -1 when it is too large for any file.
 */
int storage_size(uint64_t elements, unsigned width, uint64_t *size);

/**
 * storage_type_text(type):
 * The name of the typed storage of elements of ${type} ("FloatStorage"), or
 * NULL when they only come in an UntypedStorage.
 */
const char *storage_type_text(enum tensor_type type);

#endif
