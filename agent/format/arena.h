#ifndef FORMAT_ARENA_H
#define FORMAT_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_block;
struct error;

/*
 * Memory that is given back all at once, with a limit.  One thread at a time.
 */
struct arena {
	struct arena_block *blocks;	/* the newest first */
	size_t used;			/* of the newest */
	uint64_t left;			/* bytes that may still be taken */
};

/**
 * arena_init(arena, limit):
 * An empty arena of up to ${limit} bytes.  Allocates nothing.
 */
void arena_init(struct arena *arena, uint64_t limit);

/**
 * arena_take(arena, size, error):
 * ${size} bytes, fit for any object, not cleared; they stay until arena_free.
 * NULL with CAUSE_LIMIT or CAUSE_MEMORY.
 */
void *arena_take(struct arena *arena, size_t size, struct error *error);

/**
 * arena_free(arena):
 * Give all back; ${arena} can be used again after arena_init.
 */
void arena_free(struct arena *arena);

#endif
