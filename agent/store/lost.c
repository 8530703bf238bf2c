#include "store/lost.h"

#include <stdlib.h>
#include <string.h>

#include "store/key.h"
#include "store/manifest.h"

struct lost *
lost_add(struct lost_list *list, const char *key, const char *name,
    const struct error *error)
{
	struct lost *items = reallocarray(list->items, list->count + 1,
	    sizeof(*items)), *lost;

	if (items == NULL)
		return NULL;
	list->items = items;
	lost = &items[list->count];
	*lost = (struct lost){ .key = strdup(key), .name = strdup(name),
		.error = *error };
	if (lost->key == NULL || lost->name == NULL) {
		free(lost->key);
		free(lost->name);
		return NULL;
	}
	list->count++;
	return lost;
}

bool
lost_is(const struct lost *lost, const char *text)
{
	struct manifest named = { 0 };
	char id[MANIFEST_ID_SIZE];
	struct key_parts parts;

	key_parse(lost->key, &parts);
	named.term = parts.term;
	named.attempt = parts.attempt;
	return strcmp(lost->name, text) == 0 ||
	    strcmp(manifest_id(&named, id), text) == 0;
}

void
lost_free(struct lost_list *list)
{
	size_t i;

	for (i = 0; i < list->count; i++) {
		free(list->items[i].key);
		free(list->items[i].name);
	}
	free(list->items);
	*list = (struct lost_list){ 0 };
}
