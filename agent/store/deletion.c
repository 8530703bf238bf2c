#include "store/deletion.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

int
deletion_add(struct deletions *deletions, const struct key_parts *parts,
    uint64_t due)
{
	/* Half of it is behind us: move the rest up, else grow. */
	if (deletions->first + deletions->count == deletions->capacity &&
	    deletions->first > deletions->capacity / 2) {
		memmove(deletions->items, deletions->items + deletions->first,
		    deletions->count * sizeof(*deletions->items));
		deletions->first = 0;
	}
	if (deletions->first + deletions->count == deletions->capacity) {
		size_t capacity = deletions->capacity == 0 ? 64 :
		    deletions->capacity * 2;
		struct deletion *items = realloc(deletions->items,
		    capacity * sizeof(*items));

		if (items == NULL)
			return -1;
		deletions->items = items;
		deletions->capacity = capacity;
	}
	deletions->items[deletions->first + deletions->count++] =
	    (struct deletion){ .due = due, .parts = *parts };
	return 0;
}

int
deletion_due(struct deletions *deletions, uint64_t now,
    struct deletion *deletion)
{
	if (deletions->count == 0 ||
	    deletions->items[deletions->first].due > now)
		return 0;
	*deletion = deletions->items[deletions->first++];
	deletions->count--;
	return 1;
}

uint64_t
deletion_next(const struct deletions *deletions)
{
	return deletions->count == 0 ? CLOCK_NEVER :
	    deletions->items[deletions->first].due;
}

char *
deletion_key(const struct key_parts *parts, char key[KEY_SIZE])
{
	switch (parts->kind) {
	case KEY_CHUNK:
		return key_chunk(&parts->term, parts->attempt, parts->digest,
		    key);
	case KEY_MANIFEST:
		return key_manifest(&parts->term, parts->attempt,
		    parts->digest, key);
	case KEY_CLAIM:
		return key_term_object(&parts->term, "claim", key);
	case KEY_OPEN:
		return key_term_object(&parts->term, "open.json", key);
	case KEY_CLOSE:
		return key_term_object(&parts->term, "close.json", key);
	case KEY_TERM:
	case KEY_OTHER:
		break;
	}
	abort();	/* nothing else is ever planned */
}

void
deletion_clear(struct deletions *deletions)
{
	free(deletions->items);
	*deletions = (struct deletions){ 0 };
}
