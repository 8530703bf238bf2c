#ifndef STORE_KNOWN_H
#define STORE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "store/key.h"

struct manifest;

/*
 * The chunks that a writer knows, by the bytes in them: what it may use again
 * (rule G2) and what it may delete (G1).  The writer's lock guards it.
 */
struct known;

/* One chunk in the store. */
struct known_chunk {
	struct term term;
	uint64_t attempt;
	uint8_t digest[SHA256_SIZE];
	uint64_t size;

	uint32_t valid;		/* valid manifests that name it */
	uint32_t users;		/* attempts that hold it */
	uint64_t holder;	/* the attempt that held it last */
	bool own;		/* its PUT was acknowledged to us, in this term */
	bool leftover;		/* of an upload that was cut, adopted with the term */
	bool planned;		/* waits for its DELETE */
	bool sent;		/* its DELETE was sent: never used again */

	struct known_chunk *next;	/* in its bucket */
	struct known_part *parts;	/* of it that can be used alone */
};

/**
 * known_new():
 * An empty one, or NULL when out of memory.
 */
struct known *known_new(void);

/**
 * known_add(known, term, attempt, digest, size):
 * That chunk, made when it is not known yet.  NULL when out of memory.
 */
struct known_chunk *known_add(struct known *known, const struct term *term,
    uint64_t attempt, const uint8_t digest[SHA256_SIZE], uint64_t size);

/**
 * known_get(known, term, attempt, digest):
 * That chunk, or NULL.
 */
struct known_chunk *known_get(struct known *known, const struct term *term,
    uint64_t attempt, const uint8_t digest[SHA256_SIZE]);

/**
 * known_find(known, digest, length, offset):
 * A chunk that may be used (G2) and holds ${length} bytes with ${digest}, at
 * *${offset}; NULL: none.
 */
struct known_chunk *known_find(struct known *known,
    const uint8_t digest[SHA256_SIZE], uint64_t length, uint64_t *offset);

/**
 * known_may_use(chunk):
 * Rule G2: named by a valid manifest, or our own and acknowledged, or left by
 * the predecessor's cut upload, or held by an upload that was allowed to use
 * it; and no DELETE was ever sent.
 */
bool known_may_use(const struct known_chunk *chunk);

/**
 * known_name(known, manifest) / known_unname(known, manifest):
 * ${manifest} becomes valid; is valid no more.  Return 0, or -1 when out of
 * memory and nothing changed.
 */
int known_name(struct known *known, const struct manifest *manifest);
void known_unname(struct known *known, const struct manifest *manifest);

/**
 * known_forget(known, chunk):
 * It was deleted.  Nothing valid may name it and nobody hold it.
 */
void known_forget(struct known *known, struct known_chunk *chunk);

/**
 * known_each(known, visit, context):
 * Call ${visit} with every chunk; it must not add or forget any.
 */
void known_each(struct known *known, void (*visit)(void *context,
    struct known_chunk *chunk), void *context);

/**
 * known_free(known):
 * Behave consistently with free(NULL).
 */
void known_free(struct known *known);

#endif
