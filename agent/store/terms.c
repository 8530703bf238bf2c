#include "store/terms.h"

#include <stdlib.h>

#include "store/backend.h"

struct growth {
	struct terms *terms;
	size_t capacity;
};

static int
add(void *context, const struct backend_entry *entry, struct error *error)
{
	struct growth *growth = context;
	struct terms *terms = growth->terms;
	struct key_parts parts;

	key_parse(entry->key, &parts);
	if (!entry->is_prefix || parts.kind != KEY_TERM)
		return 0;
	if (terms->count == growth->capacity) {
		size_t capacity = growth->capacity == 0 ? 16 :
		    growth->capacity * 2;
		struct term *items = realloc(terms->items,
		    capacity * sizeof(*items));

		if (items == NULL)
			return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
			    entry->key, "out of memory");
		terms->items = items;
		growth->capacity = capacity;
	}
	terms->items[terms->count++] = parts.term;
	return 0;
}

static int
compare(const void *a, const void *b)
{
	const struct term *of_a = a, *of_b = b;

	if (of_a->number != of_b->number)
		return of_a->number < of_b->number ? -1 : 1;
	return (of_a->random > of_b->random) - (of_a->random < of_b->random);
}

int
terms_list(struct backend *backend, uint32_t node, struct terms *terms,
    struct error *error)
{
	struct growth growth = { .terms = terms };
	char prefix[KEY_SIZE];

	*terms = (struct terms){ 0 };
	if (backend_list(backend, key_node(node, prefix), true, add, &growth,
	    error) != 0) {
		terms_free(terms);
		return -1;
	}
	if (terms->count > 1)
		qsort(terms->items, terms->count, sizeof(*terms->items),
		    compare);
	return 0;
}

void
terms_free(struct terms *terms)
{
	free(terms->items);
	*terms = (struct terms){ 0 };
}
