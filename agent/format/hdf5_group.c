#include "format/hdf5.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"

/* HDF5 File Format Specification 3.0, II.A, III.B and III.D. */
#define SUPERBLOCK_SIZE 96	/* version 0, with 8-byte addresses */
#define ROOT_ENTRY 56		/* of the symbol table, in it */
#define HEAP_SIZE 32
#define LOOK_MAXIMUM 65536

static uint64_t
number(const uint8_t *bytes)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--)
		value = value << 8 | bytes[i];
	return value;
}

/* Whether the names in a heap, each with a NUL behind it, have ${start}. */
static bool
has_name(const char *bytes, size_t length, const char *start)
{
	size_t wanted = strlen(start);

	for (size_t i = 0; i + wanted <= length; i++)
		if ((i == 0 || bytes[i - 1] == '\0') &&
		    memcmp(bytes + i, start, wanted) == 0)
			return true;
	return false;
}

/* Look at up to LOOK_MAXIMUM of the ${length} bytes at ${at}. */
static int
look(const struct source *source, uint64_t at, uint64_t length,
    const char *start, bool names, enum hdf5_answer *answer,
    struct error *error)
{
	size_t part;
	char *bytes;
	int result;

	if (at >= source->size)
		return 0;
	if (length > source->size - at)
		length = source->size - at;
	part = length < LOOK_MAXIMUM ? (size_t)length : LOOK_MAXIMUM;
	bytes = malloc(part + 1);
	if (bytes == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
		    source->name, "out of memory");
	result = source_read(source, at, bytes, part, error);
	if (result == 0 && names && has_name(bytes, part, start))
		*answer = HDF5_HAS;
	else if (result == 0 && names && part == length)
		*answer = HDF5_HAS_NOT;
	else if (result == 0 && !names &&
	    memmem(bytes, part, start, strlen(start)) != NULL)
		*answer = HDF5_HAS;
	free(bytes);
	return result;
}

/* The names of the root group are in its local heap. */
static int
look_in_heap(const struct source *source, uint64_t heap, const char *start,
    enum hdf5_answer *answer, struct error *error)
{
	uint8_t header[HEAP_SIZE];

	if (heap > source->size || source->size - heap < sizeof(header))
		return 0;
	if (source_read(source, heap, header, sizeof(header), error) != 0)
		return -1;
	if (memcmp(header, "HEAP", 4) != 0)
		return 0;
	return look(source, number(header + 24), number(header + 8), start,
	    true, answer, error);
}

int
hdf5_has_group(const struct source *source, const char *start,
    enum hdf5_answer *answer, struct error *error)
{
	uint8_t block[SUPERBLOCK_SIZE];
	const uint8_t *entry = block + ROOT_ENTRY;

	*answer = HDF5_UNKNOWN;
	if (source->size < sizeof(block))
		return 0;
	if (source_read(source, 0, block, sizeof(block), error) != 0)
		return -1;
	/* Version 0, addresses and lengths of 8 bytes, the heap cached. */
	if (block[8] == 0 && block[13] == 8 && block[14] == 8 &&
	    entry[16] == 1)
		return look_in_heap(source, number(entry + 32), start, answer,
		    error);
	/* Versions 2 and 3: the links of a small group are in its header. */
	if (block[8] >= 2 && block[9] == 8)
		return look(source, number(block + 36), LOOK_MAXIMUM, start,
		    false, answer, error);
	return 0;
}
