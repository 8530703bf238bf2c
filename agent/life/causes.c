#include "life/causes.h"

#include <string.h>

static struct cause *
find(struct causes *causes, const char *id)
{
	size_t i;

	for (i = 0; i < causes->count; i++)
		if (strcmp(causes->items[i].id, id) == 0)
			return &causes->items[i];
	return NULL;
}

const struct cause *
causes_first(const struct causes *causes)
{
	const struct cause *first = NULL;
	size_t i;

	for (i = 0; i < causes->count; i++)
		if (first == NULL || causes->items[i].when < first->when)
			first = &causes->items[i];
	return first;
}

bool
causes_add(struct causes *causes, const struct cause *cause)
{
	const struct cause *first = causes_first(causes);
	struct cause *place = find(causes, cause->id), *each;
	bool nearer = first == NULL || cause->when < first->when;

	if (place == NULL && causes->count < CAUSES_MAXIMUM)
		place = &causes->items[causes->count++];
	/* With so many of them, the latest end matters least. */
	if (place == NULL) {
		place = &causes->items[0];
		for (each = causes->items; each < causes->items +
		    CAUSES_MAXIMUM; each++)
			if (each->when > place->when)
				place = each;
		if (place->when <= cause->when)
			return false;
	}
	/* A time that was said once is never put off by who said it. */
	if (strcmp(place->id, cause->id) == 0 && place->when <= cause->when)
		return false;
	*place = *cause;
	return nearer;
}

bool
causes_remove(struct causes *causes, const char *id)
{
	struct cause *place = find(causes, id);

	if (place == NULL)
		return false;
	*place = causes->items[--causes->count];
	return true;
}
