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

/* The number of elements that comes next. */
static int
take_number(struct window *window, uint64_t *number, struct error *error)
{
	uint8_t bytes[8];

	if (window_take(window, bytes, sizeof(bytes), error) != 0)
		return -1;
	*number = 0;
	for (int i = 7; i >= 0; i--)
		*number = *number << 8 | bytes[i];
	return 0;
}

/* The storage that comes next must be that of ${key}. */
static int
take_storage(struct window *window, bool look, const struct pickle_node *key,
    const struct storage *storages, size_t count,
    struct legacy_storage *taken, struct error *error)
{
	struct storage wanted;
	const struct storage *found;
	uint64_t elements;

	if (key->kind != PICKLE_TEXT || strlen(key->text) != key->count)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "the key of a storage is no text");
	wanted.key = key->text;
	found = bsearch(&wanted, storages, count, sizeof(*storages), by_key);
	if (found == NULL || found->width == 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "storage %s has no type that is known", key->text);
	elements = found->elements;
	if (look ? take_number(window, &elements, error) != 0 :
	    window_skip(window, 8, error) != 0)
		return -1;
	taken->storage = *found;
	taken->offset = window->at;
	if (storage_size(elements, found->width, &taken->length) != 0 ||
	    taken->length > window_left(window))
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "it ends at byte %" PRIu64 ", inside storage %s of %" PRIu64
		    " elements", window->end, key->text, elements);
	return window_skip(window, taken->length, error);
}

static int
take_storages(struct window *window, bool look, struct legacy *legacy,
    struct error *error)
{
	const struct pickle_node *keys = pickle_root(legacy->keys);
	struct storage *storages;
	size_t count;
	int result = 0;

	if (keys->kind != PICKLE_LIST)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "the keys of its storages are no list");
	legacy->storages = calloc((size_t)keys->count + 1,
	    sizeof(*legacy->storages));
	if (legacy->storages == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the storages of a checkpoint");
	storages = sort_storages(legacy->object, &count, error);
	if (storages == NULL)
		return -1;
	for (uint32_t i = 0; i < keys->count && result == 0; i++) {
		result = take_storage(window, look, keys->items[i], storages,
		    count, &legacy->storages[i], error);
		legacy->count += result == 0;
	}
	free(storages);
	if (result == 0 && window_left(window) > 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "%" PRIu64 " bytes follow its last storage",
		    window_left(window));
	return result;
}

/* sys_info: a dict with little_endian among others. */
static bool
is_big_endian(const struct pickle_node *system)
{
	const struct pickle_node *little = pickle_find(system,
	    "little_endian");

	return little != NULL && little->kind == PICKLE_BOOLEAN &&
	    little->integer == 0;
}

static int
read_pickles(struct window *window, struct legacy *legacy,
    struct error *error)
{
	/* The magic number, the protocol, the system. */
	for (int i = 0; i < 3; i++) {
		struct pickle *pickle = pickle_read(window, error);

		if (pickle == NULL)
			return -1;
		legacy->big_endian = is_big_endian(pickle_root(pickle));
		pickle_free(pickle);
	}
	legacy->object = pickle_read(window, error);
	if (legacy->object == NULL)
		return -1;
	legacy->keys = pickle_read(window, error);
	return legacy->keys == NULL ? -1 : 0;
}

int
legacy_read(const struct source *source, bool look, struct legacy *legacy,
    struct error *error)
{
	struct window *window = malloc(sizeof(*window));
	int result;

	memset(legacy, 0, sizeof(*legacy));
	if (window == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
		    source->name, "out of memory");
	window_init(window, source, 0, source->size);
	result = read_pickles(window, legacy, error);
	if (result == 0)
		result = take_storages(window, look, legacy, error);
	legacy->failed = window->failed;
	free(window);
	return result;
}

void
legacy_free(struct legacy *legacy)
{
	free(legacy->storages);
	pickle_free(legacy->keys);
	pickle_free(legacy->object);
	memset(legacy, 0, sizeof(*legacy));
}

static int
add_records(const struct legacy *legacy, struct format_report *report,
    struct error *error)
{
	for (size_t i = 0; i < legacy->count; i++) {
		const struct legacy_storage *taken = &legacy->storages[i];

		if (taken->length > 0 && report_add(report,
		    taken->storage.key, strlen(taken->storage.key),
		    taken->offset, taken->length, error) != 0)
			return -1;
	}
	return 0;
}

int
legacy_inspect(const struct source *source, struct format_report *report,
    struct error *error)
{
	struct legacy legacy;
	const char *twin = NULL;
	int result;

	report->kind = FORMAT_TORCH_LEGACY;
	result = legacy_read(source, true, &legacy, error);
	if (result == 0)
		result = add_records(&legacy, report, error);
	if (result == 0)
		result = report_twin(report, &twin, error);
	if (result != 0)
		result = report_judge(report, error, legacy.failed);
	else if (twin != NULL)
		report_say(report, FORMAT_TORN, "storage %s comes twice", twin);
	else
		report_say(report, FORMAT_WHOLE,
		    "its %zu storages end exactly where the file ends",
		    report->record_count);
	legacy_free(&legacy);
	return result;
}
