#include "format/torch_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/pickle.h"
#include "format/storage.h"
#include "format/window.h"

#define NAME_MAXIMUM 4096
#define START_SIZE 64

bool
torch_file_claimed(const uint8_t *start, size_t length)
{
	return (length >= 4 && memcmp(start, "PK\3\4", 4) == 0) ||
	    legacy_claimed(start, length);
}

/* "x/data.pkl", x any one folder: the name that the file had when saved. */
static const struct zip_record *
find_pickle(const struct zip_directory *directory, size_t *prefix)
{
	for (size_t i = 0; i < directory->count; i++) {
		const struct zip_record *record = &directory->records[i];
		const char *slash = memchr(record->name, '/',
		    record->name_length);

		if (slash == NULL || slash == record->name)
			continue;
		*prefix = (size_t)(slash + 1 - record->name);
		if (record->name_length - *prefix == 8 &&
		    memcmp(slash + 1, "data.pkl", 8) == 0)
			return record;
	}
	return NULL;
}

/* The record with our prefix and ${rest}; NULL when it is not there. */
static const struct zip_record *
find_record(const struct torch_file *file, const char *folder,
    const char *rest)
{
	char name[NAME_MAXIMUM];
	int length = snprintf(name, sizeof(name), "%.*s%s%s",
	    (int)file->prefix, file->data->name, folder, rest);

	if (length < 0 || (size_t)length >= sizeof(name))
		return NULL;
	return zip_directory_find(&file->directory, name, (size_t)length);
}

/* torch 2.1 and later say in which order bytes are; others are little. */
static int
check_byte_order(struct torch_file *file, struct error *error)
{
	const struct zip_record *record = find_record(file, "", "byteorder");
	char word[6];
	uint64_t offset;

	if (record == NULL)
		return 0;
	if (!record->stored || record->length > sizeof(word))
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "its byte order is none that is known");
	if (zip_directory_place(&file->directory, record, &offset,
	    error) != 0 || source_read(file->source, offset, word,
	    (size_t)record->length, error) != 0)
		return -1;
	if (record->length != 6 || memcmp(word, "little", 6) != 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "its numbers are not little-endian");
	return 0;
}

static int
read_pickle(struct torch_file *file, struct error *error)
{
	struct window *window;
	uint64_t offset;

	if (!file->data->stored)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "data.pkl is compressed");
	if (zip_directory_place(&file->directory, file->data, &offset,
	    error) != 0)
		return -1;
	window = malloc(sizeof(*window));
	if (window == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
		    file->source->name, "out of memory");
	window_init(window, file->source, offset, offset +
	    file->data->length);
	file->pickle = pickle_read(window, error);
	free(window);
	return file->pickle == NULL ? -1 : 0;
}

static int
open_zip(struct torch_file *file, struct error *error)
{
	file->zipped = true;
	if (zip_directory_read(file->source, &file->directory, error) != 0)
		return -1;
	file->data = find_pickle(&file->directory, &file->prefix);
	if (file->data == NULL)
		return error_set(error, ERROR_DAMAGED, CAUSE_NOT_FOUND,
		    file->source->name, "it is a zip without data.pkl: no "
		    "file of torch.save, or one of a save that failed");
	if (check_byte_order(file, error) != 0)
		return -1;
	return read_pickle(file, error);
}

static int
by_key(const void *a, const void *b)
{
	const struct legacy_storage *left = a, *right = b;

	return strcmp(left->storage.key, right->storage.key);
}

static int
open_legacy(struct torch_file *file, struct error *error)
{
	struct legacy *legacy = &file->legacy;

	if (legacy_read(file->source, false, legacy, error) != 0)
		return -1;
	if (legacy->big_endian)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED,
		    file->source->name, "its numbers are not little-endian");
	qsort(legacy->storages, legacy->count, sizeof(*legacy->storages),
	    by_key);
	for (size_t i = 1; i < legacy->count; i++)
		if (by_key(&legacy->storages[i - 1],
		    &legacy->storages[i]) == 0)
			return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    NULL, "storage %s comes twice",
			    legacy->storages[i].storage.key);
	return 0;
}

int
torch_file_open(const struct source *source, struct torch_file *file,
    struct error *error)
{
	uint8_t start[START_SIZE];
	size_t length = source->size < sizeof(start) ? (size_t)source->size :
	    sizeof(start);

	memset(file, 0, sizeof(*file));
	file->source = source;
	if (source_read(source, 0, start, length, error) != 0)
		return -1;
	return legacy_claimed(start, length) ? open_legacy(file, error) :
	    open_zip(file, error);
}

const struct pickle *
torch_file_object(const struct torch_file *file)
{
	return file->zipped ? file->pickle : file->legacy.object;
}

const struct zip_record *
torch_file_record(const struct torch_file *file,
    const struct storage *storage)
{
	return find_record(file, "data/", storage->key);
}

static int
missing(const struct storage *storage, struct error *error)
{
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
	    "the bytes of storage %s are not there", storage->key);
}

static int
find_zipped(struct torch_file *file, const struct storage *storage,
    uint64_t *offset, uint64_t *length, struct error *error)
{
	const struct zip_record *record = torch_file_record(file, storage);

	if (record == NULL)
		return missing(storage, error);
	if (!record->stored)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "storage %s is compressed", storage->key);
	*length = record->length;
	return zip_directory_place(&file->directory, record, offset, error);
}

static int
find_legacy(const struct torch_file *file, const struct storage *storage,
    uint64_t *offset, uint64_t *length, struct error *error)
{
	struct legacy_storage wanted = { .storage = *storage };
	const struct legacy_storage *found;

	found = file->legacy.count == 0 ? NULL : bsearch(&wanted,
	    file->legacy.storages, file->legacy.count, sizeof(wanted), by_key);
	if (found == NULL)
		return missing(storage, error);
	*offset = found->offset;
	*length = found->length;
	return 0;
}

int
torch_file_storage(struct torch_file *file, const struct storage *storage,
    uint64_t *offset, uint64_t *length, struct error *error)
{
	uint64_t needed;

	if ((file->zipped ?
	    find_zipped(file, storage, offset, length, error) :
	    find_legacy(file, storage, offset, length, error)) != 0)
		return -1;
	if (storage_size(storage->elements, storage->width, &needed) != 0 ||
	    needed > *length)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "storage %s has %" PRIu64 " bytes, the pickle says %"
		    PRIu64 " elements of %u", storage->key, *length,
		    storage->elements, storage->width);
	return 0;
}

void
torch_file_close(struct torch_file *file)
{
	pickle_free(file->pickle);
	legacy_free(&file->legacy);
	zip_directory_free(&file->directory);
	memset(file, 0, sizeof(*file));
}
