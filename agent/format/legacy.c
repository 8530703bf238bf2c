#include "format/legacy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/format.h"
#include "format/pickle.h"
#include "format/report.h"
#include "format/storage.h"
#include "format/window.h"

/* 0x1950a86a20f9469cfc6c as a LONG1 of ten bytes. */
static const uint8_t magic[12] = { 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9,
	0x20, 0x6a, 0xa8, 0x50, 0x19 };

bool
legacy_claimed(const uint8_t *start, size_t length)
{
	size_t skip = 2;	/* PROTO and its argument */

	if (length < 2 || start[0] != 0x80)
		return false;
	if (length > 2 && start[2] == 0x95)
		skip += 9;	/* FRAME and its length */
	return length >= skip + sizeof(magic) &&
	    memcmp(start + skip, magic, sizeof(magic)) == 0;
}

static int
by_key(const void *a, const void *b)
{
	return strcmp(((const struct storage *)a)->key,
	    ((const struct storage *)b)->key);
}

/* The storages of the object, sorted by key; the caller frees them. */
static struct storage *
sort_storages(const struct pickle *object, size_t *count, struct error *error)
{
	size_t all = pickle_persistent_count(object);
	struct storage *storages = calloc(all + 1, sizeof(*storages));

	*count = 0;
	if (storages == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the storages of a checkpoint");
		return NULL;
	}
	for (size_t i = 0; i < all; i++)
		if (storage_read(pickle_persistent(object, i),
		    &storages[*count]) == 0)
			(*count)++;
	qsort(storages, *count, sizeof(*storages), by_key);
	return storages;
}

/* The storage that comes next must be that of ${key}. */
static int
take_storage(struct window *window, const struct pickle_node *key,
    const struct storage *storages, size_t count,
    struct format_report *report, struct error *error)
{
	struct storage wanted;
	const struct storage *found;
	uint8_t bytes[8];
	uint64_t elements = 0, size;

	if (key->kind != PICKLE_TEXT || strlen(key->text) != key->count)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "the key of a storage is no text");
	wanted.key = key->text;
	found = bsearch(&wanted, storages, count, sizeof(*storages), by_key);
	if (found == NULL || found->width == 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "storage %s has no type that is known", key->text);
	if (window_take(window, bytes, sizeof(bytes), error) != 0)
		return -1;
	for (int i = 7; i >= 0; i--)
		elements = elements << 8 | bytes[i];
	if (storage_size(elements, found->width, &size) != 0 ||
	    size > window_left(window))
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "it ends at byte %" PRIu64 ", inside storage %s of %" PRIu64
		    " elements", window->end, key->text, elements);
	if (size > 0 && report_add(report, key->text, key->count, window->at,
	    size, error) != 0)
		return -1;
	return window_skip(window, size, error);
}

static int
take_storages(struct window *window, const struct pickle *object,
    const struct pickle_node *keys, struct format_report *report,
    struct error *error)
{
	struct storage *storages;
	size_t count;
	int result = 0;

	if (keys->kind != PICKLE_LIST)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "the keys of its storages are no list");
	storages = sort_storages(object, &count, error);
	if (storages == NULL)
		return -1;
	for (uint32_t i = 0; i < keys->count && result == 0; i++)
		result = take_storage(window, keys->items[i], storages, count,
		    report, error);
	free(storages);
	if (result == 0 && window_left(window) > 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "%" PRIu64 " bytes follow its last storage",
		    window_left(window));
	return result;
}

static int
take_all(struct window *window, struct format_report *report,
    struct error *error)
{
	struct pickle *object = NULL, *keys = NULL;
	int result = -1;

	/* The magic number, the protocol, the system. */
	for (int i = 0; i < 3; i++) {
		struct pickle *pickle = pickle_read(window, error);

		if (pickle == NULL)
			return -1;
		pickle_free(pickle);
	}
	object = pickle_read(window, error);
	if (object == NULL)
		goto done;
	keys = pickle_read(window, error);
	if (keys == NULL)
		goto done;
	result = take_storages(window, object, pickle_root(keys), report,
	    error);

done:
	pickle_free(keys);
	pickle_free(object);
	return result;
}

int
legacy_inspect(const struct source *source, struct format_report *report,
    struct error *error)
{
	struct window *window = malloc(sizeof(*window));
	const char *twin = NULL;
	int result;

	report->kind = FORMAT_TORCH_LEGACY;
	if (window == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
		    source->name, "out of memory");
	window_init(window, source, 0, source->size);
	result = take_all(window, report, error);
	if (result == 0)
		result = report_twin(report, &twin, error);
	if (result != 0)
		result = report_judge(report, error, window->failed);
	else if (twin != NULL)
		report_say(report, FORMAT_TORN, "storage %s comes twice", twin);
	else
		report_say(report, FORMAT_WHOLE,
		    "its %zu storages end exactly where the file ends",
		    report->record_count);
	free(window);
	return result;
}
