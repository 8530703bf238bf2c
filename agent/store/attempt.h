#ifndef STORE_ATTEMPT_H
#define STORE_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "store/key.h"

struct known_chunk;

/* One upload: what it holds must not be deleted.  The writer's lock guards. */
struct attempt {
	uint64_t number;
	struct term term;	/* in which it began: its chunks lie there */
	struct known_chunk **held;
	size_t held_count, held_capacity;

	/*
	 * Its manifest, once a PUT of it was sent: whatever the answer, it may
	 * be the truth from now on, until a later one is durable.
	 */
	bool sent;
	struct term manifest_term;
	uint64_t manifest_attempt;
	uint8_t manifest_digest[SHA256_SIZE];

	struct attempt *next;
};

/**
 * attempt_new(number, term):
 * A new one, or NULL when out of memory.
 */
struct attempt *attempt_new(uint64_t number, const struct term *term);

/**
 * attempt_find(list, number):
 * The attempt in ${list}, or NULL.
 */
struct attempt *attempt_find(struct attempt *list, uint64_t number);

/**
 * attempt_remove(list, attempt):
 * Take ${attempt} out of ${list}.
 */
void attempt_remove(struct attempt **list, struct attempt *attempt);

/**
 * attempt_hold(attempt, chunk):
 * Hold ${chunk}.  Return 0, or -1 when out of memory.
 */
int attempt_hold(struct attempt *attempt, struct known_chunk *chunk);

/**
 * attempt_holds(attempt, chunk):
 * Whether it does.
 */
bool attempt_holds(const struct attempt *attempt,
    const struct known_chunk *chunk);

/**
 * attempt_free(attempt):
 * Let go of its chunks and free it.  Behave consistently with free(NULL).
 */
void attempt_free(struct attempt *attempt);

#endif
