#include "format/slice.h"

#include <assert.h>

static int
read_slice_at(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	const struct slice *slice = context;

	return source_read(slice->whole, slice->offset + offset, data, length,
	    error);
}

static uint64_t
find_slice_edge(void *context, uint64_t offset)
{
	const struct slice *slice = context;

	return slice->whole->find_edge(slice->whole->context,
	    slice->offset + offset) - slice->offset;
}

struct source
slice_source(struct slice *slice, uint64_t length)
{
	assert(slice->offset <= slice->whole->size &&
	    length <= slice->whole->size - slice->offset);
	return (struct source){
		.size = length,
		.read_at = read_slice_at,
		.find_edge = slice->whole->find_edge != NULL ?
		    find_slice_edge : NULL,
		.context = slice,
		.name = slice->whole->name,
	};
}
