#include "move/shelf.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"

struct part {
	const struct source *source;
	uint64_t offset;	/* in the source */
	uint64_t start;		/* on the shelf */
	uint64_t length;
};

struct shelf {
	struct source source;
	struct sha256 *hash;
	struct part *parts;
	size_t count;
	size_t capacity;
};

/* The part that holds the byte at ${offset}. */
static size_t
find_part(const struct shelf *shelf, uint64_t offset)
{
	size_t low = 0, high = shelf->count, middle;

	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (shelf->parts[middle].start <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int
read_at(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	const struct shelf *shelf = context;
	const struct part *part;
	uint64_t skip;
	size_t step;

	if (length == 0)
		return 0;
	for (part = &shelf->parts[find_part(shelf, offset)]; length > 0;
	    part++) {
		assert(part < shelf->parts + shelf->count);
		skip = offset - part->start;
		step = part->length - skip < length ?
		    (size_t)(part->length - skip) : length;
		if (part->source->read_at(part->source->context,
		    part->offset + skip, data, step, error) == -1)
			return -1;
		data = (char *)data + step;
		offset += step;
		length -= step;
	}
	return 0;
}

struct shelf *
shelf_new(struct error *error)
{
	struct shelf *shelf;

	if ((shelf = calloc(1, sizeof(*shelf))) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	if ((shelf->hash = sha256_new(error)) == NULL) {
		free(shelf);
		return NULL;
	}
	shelf->source.read_at = read_at;
	shelf->source.context = shelf;
	shelf->source.name = "small pieces";
	return shelf;
}

int
shelf_add(struct shelf *shelf, const struct source *source, uint64_t offset,
    const void *data, size_t length, struct error *error)
{
	size_t capacity = shelf->capacity > 0 ? shelf->capacity * 2 : 16;
	struct part *parts, *last;

	assert(length > 0);
	last = shelf->count > 0 ? &shelf->parts[shelf->count - 1] : NULL;
	if (last != NULL && last->source == source &&
	    last->offset + last->length == offset) {
		last->length += length;
	} else {
		if (shelf->count == shelf->capacity) {
			parts = realloc(shelf->parts,
			    capacity * sizeof(*parts));
			if (parts == NULL)
				return error_set(error, ERROR_FAILED,
				    CAUSE_MEMORY, NULL, "out of memory");
			shelf->parts = parts;
			shelf->capacity = capacity;
		}
		shelf->parts[shelf->count++] = (struct part){
			.source = source,
			.offset = offset,
			.start = shelf->source.size,
			.length = length
		};
	}
	shelf->source.size += length;
	sha256_add(shelf->hash, data, length);
	return 0;
}

uint64_t
shelf_size(const struct shelf *shelf)
{
	return shelf->source.size;
}

void
shelf_close(struct shelf *shelf, uint8_t digest[SHA256_SIZE])
{
	sha256_end(shelf->hash, digest);
}

const struct source *
shelf_source(const struct shelf *shelf)
{
	return &shelf->source;
}

void
shelf_free(struct shelf *shelf)
{
	if (shelf == NULL)
		return;
	sha256_free(shelf->hash);
	free(shelf->parts);
	free(shelf);
}
