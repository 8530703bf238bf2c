#include "move/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Open addressing, at most three quarters full; an empty place has length 0. */
struct pieces {
	struct piece *table;
	size_t size;		/* a power of two */
	size_t count;
};

struct pieces *
pieces_new(struct error *error)
{
	struct pieces *pieces;

	if ((pieces = calloc(1, sizeof(*pieces))) != NULL) {
		pieces->size = 64;
		pieces->table = calloc(pieces->size, sizeof(*pieces->table));
		if (pieces->table != NULL)
			return pieces;
	}
	free(pieces);
	error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL, "out of memory");
	return NULL;
}

/* Where the piece is, or the empty place where it belongs. */
static size_t
seek(const struct piece *table, size_t size,
    const uint8_t digest[SHA256_SIZE], uint64_t length)
{
	uint64_t start;
	size_t i;

	/* A SHA-256 is spread evenly already. */
	memcpy(&start, digest, sizeof(start));
	for (i = (size_t)start & (size - 1); table[i].length != 0;
	    i = (i + 1) & (size - 1))
		if (table[i].length == length &&
		    memcmp(table[i].digest, digest, SHA256_SIZE) == 0)
			break;
	return i;
}

const struct piece *
pieces_find(const struct pieces *pieces, const uint8_t digest[SHA256_SIZE],
    uint64_t length)
{
	size_t i = seek(pieces->table, pieces->size, digest, length);

	return pieces->table[i].length != 0 ? &pieces->table[i] : NULL;
}

static int
grow(struct pieces *pieces, struct error *error)
{
	size_t i, size = pieces->size * 2;
	struct piece *table;

	if ((table = calloc(size, sizeof(*table))) == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	for (i = 0; i < pieces->size; i++)
		if (pieces->table[i].length != 0)
			table[seek(table, size, pieces->table[i].digest,
			    pieces->table[i].length)] = pieces->table[i];
	free(pieces->table);
	pieces->table = table;
	pieces->size = size;
	return 0;
}

int
pieces_add(struct pieces *pieces, const struct piece *piece,
    struct error *error)
{
	size_t i;

	if (pieces->count >= pieces->size / 4 * 3 && grow(pieces, error) == -1)
		return -1;
	i = seek(pieces->table, pieces->size, piece->digest, piece->length);
	if (pieces->table[i].length == 0) {
		pieces->table[i] = *piece;
		pieces->count++;
	}
	return 0;
}

void
pieces_free(struct pieces *pieces)
{
	if (pieces == NULL)
		return;
	free(pieces->table);
	free(pieces);
}
