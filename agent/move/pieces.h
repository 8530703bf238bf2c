#ifndef MOVE_PIECES_H
#define MOVE_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

struct error;

/*
 * What an upload has seen so far: a table from the hash of bytes to the place
 * where they lie or will lie.
 */
struct pieces;

struct piece {
	uint8_t digest[SHA256_SIZE];
	uint64_t length;
	uint64_t offset;	/* in the chunk */
	uint32_t chunk;		/* index, the caller's */
};

/**
 * pieces_new(error):
 * An empty table, or NULL.
 */
struct pieces *pieces_new(struct error *error);

/**
 * pieces_find(pieces, digest, length):
 * The piece, valid until the next pieces_add; NULL when it is not there.
 */
const struct piece *pieces_find(const struct pieces *pieces,
    const uint8_t digest[SHA256_SIZE], uint64_t length);

/**
 * pieces_add(pieces, piece, error):
 * Add a copy of ${piece} unless its bytes are there already.  Return 0 or -1.
 */
int pieces_add(struct pieces *pieces, const struct piece *piece,
    struct error *error);

/**
 * pieces_free(pieces):
 * Behave consistently with free(NULL).
 */
void pieces_free(struct pieces *pieces);

#endif
