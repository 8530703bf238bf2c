#include "format/arena.h"

#include <stdlib.h>

#include "base/error.h"

#define BLOCK_SIZE ((size_t)65536)
#define ALIGNMENT ((size_t)16)

struct arena_block {
	struct arena_block *next;
	size_t size;
	_Alignas(16) uint8_t bytes[];
};

void
arena_init(struct arena *arena, uint64_t limit)
{
	arena->blocks = NULL;
	arena->used = 0;
	arena->left = limit;
}

static int
add_block(struct arena *arena, size_t size, struct error *error)
{
	struct arena_block *block;

	if (size < BLOCK_SIZE)
		size = BLOCK_SIZE;
	block = malloc(sizeof(*block) + size);
	if (block == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	block->size = size;
	block->next = arena->blocks;
	arena->blocks = block;
	arena->used = 0;
	return 0;
}

void *
arena_take(struct arena *arena, size_t size, struct error *error)
{
	void *bytes;

	if (size > arena->left || size > SIZE_MAX / 2) {
		error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "it would need too much memory");
		return NULL;
	}
	size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if ((arena->blocks == NULL ||
	    arena->blocks->size - arena->used < size) &&
	    add_block(arena, size, error) != 0)
		return NULL;
	bytes = arena->blocks->bytes + arena->used;
	arena->used += size;
	arena->left -= size < arena->left ? size : arena->left;
	return bytes;
}

void
arena_free(struct arena *arena)
{
	while (arena->blocks != NULL) {
		struct arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
	arena->used = 0;
}
