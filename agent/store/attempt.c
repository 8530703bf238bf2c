#include "store/attempt.h"

#include <stdlib.h>

#include "store/known.h"

struct attempt *
attempt_new(uint64_t number, const struct term *term)
{
	struct attempt *attempt = calloc(1, sizeof(*attempt));

	if (attempt != NULL) {
		attempt->number = number;
		attempt->term = *term;
	}
	return attempt;
}

struct attempt *
attempt_find(struct attempt *list, uint64_t number)
{
	while (list != NULL && list->number != number)
		list = list->next;
	return list;
}

void
attempt_remove(struct attempt **list, struct attempt *attempt)
{
	while (*list != attempt)
		list = &(*list)->next;
	*list = attempt->next;
	attempt->next = NULL;
}

int
attempt_hold(struct attempt *attempt, struct known_chunk *chunk)
{
	/* Mostly one attempt at a time asks, often for the same chunk. */
	if (chunk->users > 0 && chunk->holder == attempt->number)
		return 0;
	if (attempt->held_count == attempt->held_capacity) {
		size_t capacity = attempt->held_capacity == 0 ? 64 :
		    attempt->held_capacity * 2;
		struct known_chunk **held = realloc(attempt->held,
		    capacity * sizeof(*held));

		if (held == NULL)
			return -1;
		attempt->held = held;
		attempt->held_capacity = capacity;
	}
	attempt->held[attempt->held_count++] = chunk;
	chunk->users++;
	chunk->holder = attempt->number;
	return 0;
}

bool
attempt_holds(const struct attempt *attempt, const struct known_chunk *chunk)
{
	size_t i;

	if (chunk->users == 0)
		return false;
	if (chunk->holder == attempt->number)
		return true;
	for (i = 0; i < attempt->held_count; i++) {
		if (attempt->held[i] == chunk)
			return true;
	}
	return false;
}

void
attempt_free(struct attempt *attempt)
{
	size_t i;

	if (attempt == NULL)
		return;
	for (i = 0; i < attempt->held_count; i++) {
		if (attempt->held[i]->holder == attempt->number)
			attempt->held[i]->holder = 0;
		attempt->held[i]->users--;
	}
	free(attempt->held);
	free(attempt);
}
