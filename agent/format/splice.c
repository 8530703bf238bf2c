#include "format/splice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "format/pickle.h"
#include "format/pickle_cut.h"
#include "format/pickle_opcode.h"
#include "format/pickle_spans.h"
#include "format/storage.h"
#include "format/torch_file.h"
#include "format/window.h"
#include "format/zip_plan.h"

#define PICKLE_MAXIMUM ((size_t)64 << 20)

/* A splice in the making. */
struct splicer {
	struct torch_file file;
	uint8_t *old;			/* data.pkl */
	size_t length;
	struct buffer pickle;		/* the new one */
	struct pickle *read;		/* the new one again */
	const char **keys;		/* of the storages that stay, sorted */
	size_t key_count;
};

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory for cutting out an optimizer");
}

static int
read_old(struct splicer *splicer, struct error *error)
{
	const struct zip_record *data = splicer->file.data;
	uint64_t offset;

	if (data->length > PICKLE_MAXIMUM)
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "its data.pkl is longer than %zu bytes", PICKLE_MAXIMUM);
	splicer->length = (size_t)data->length;
	splicer->old = malloc(splicer->length + 1);
	if (splicer->old == NULL)
		return no_memory(error);
	if (zip_directory_place(&splicer->file.directory, data, &offset,
	    error) != 0)
		return -1;
	return source_read(splicer->file.source, offset, splicer->old,
	    splicer->length, error);
}

/* The text of a key, which may be one that was remembered before. */
static const char *
key_text(const struct pickle_spans *spans, struct pickle_span key,
    size_t *length)
{
	const struct pickle_memo *memo;
	struct pickle_opcode opcode;

	*length = 0;
	if (pickle_opcode_read(spans->bytes, spans->length, key.start,
	    &opcode) != 0)
		return "";
	if (opcode.code == 'h' || opcode.code == 'j') {
		memo = pickle_spans_memo(spans, opcode.number);
		if (memo == NULL || pickle_opcode_read(spans->bytes,
		    spans->length, spans->values[memo->value].start,
		    &opcode) != 0)
			return "";
	}
	if (opcode.text == 0)
		return "";
	*length = (size_t)opcode.number;
	return (const char *)spans->bytes + opcode.text;
}

/*
 * Which values at the top belong to optimizers ("optimizer",
 * "optimizer_states", "optim"), and are not None already.
 */
static bool
is_dropped(const struct pickle_spans *spans, const struct pickle_pair *pair,
    char *names, size_t size)
{
	size_t length, had = strlen(names);
	const char *key = key_text(spans, pair->key, &length);

	if (memmem(key, length, "optim", 5) == NULL ||
	    spans->bytes[pair->value.start] == 'N')
		return false;
	snprintf(names + had, size - had, "%s%.*s", had > 0 ? ", " : "",
	    length < 64 ? (int)length : 64, key);
	return true;
}

static int
cut_pickle(struct splicer *splicer, const struct pickle_spans *spans,
    struct splice *splice, struct error *error)
{
	bool *drops = calloc(spans->pair_count + 1, sizeof(*drops));
	size_t count = 0;
	int result;

	if (drops == NULL)
		return no_memory(error);
	for (size_t i = 0; i < spans->pair_count; i++) {
		drops[i] = is_dropped(spans, &spans->pairs[i],
		    splice->dropped, sizeof(splice->dropped));
		count += drops[i];
	}
	if (count > 0)
		result = pickle_cut(spans, drops, &splicer->pickle, error);
	else
		result = error_set(error, ERROR_USAGE, CAUSE_NOT_FOUND, NULL,
		    "no optimizer's state lies at its top, so nothing can be "
		    "cut out");
	free(drops);
	return result;
}

static int
make_pickle(struct splicer *splicer, struct splice *splice,
    struct error *error)
{
	const struct pickle_node *root = pickle_root(splicer->file.pickle);
	struct pickle_spans spans;
	int result;

	if (root->kind != PICKLE_DICT && (root->kind != PICKLE_CALL ||
	    root->call->dict == NULL))
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "what it holds is no dict, so there is no key to cut out");
	result = pickle_spans_make(splicer->old, splicer->length, &spans,
	    error);
	if (result == 0)
		result = cut_pickle(splicer, &spans, splice, error);
	pickle_spans_free(&spans);
	return result;
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Read the new pickle as any other: which storages does it name. */
static int
read_new(struct splicer *splicer, struct error *error)
{
	struct source_memory memory = { splicer->pickle.data,
		splicer->pickle.length };
	struct source source = source_from_memory(&memory);
	struct window *window = malloc(sizeof(*window));
	size_t count;

	if (window == NULL)
		return no_memory(error);
	window_init(window, &source, 0, source.size);
	splicer->read = pickle_read(window, error);
	free(window);
	if (splicer->read == NULL)
		return -1;
	count = pickle_persistent_count(splicer->read);
	splicer->keys = calloc(count + 1, sizeof(*splicer->keys));
	if (splicer->keys == NULL)
		return no_memory(error);
	for (size_t i = 0; i < count; i++) {
		struct storage storage;

		if (storage_read(pickle_persistent(splicer->read, i),
		    &storage) == 0)
			splicer->keys[splicer->key_count++] = storage.key;
	}
	qsort(splicer->keys, splicer->key_count, sizeof(*splicer->keys),
	    by_text);
	return 0;
}

static bool
names_key(const struct splicer *splicer, const char *name, size_t length)
{
	size_t low = 0, high = splicer->key_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *key = splicer->keys[middle];
		int order = strncmp(key, name, length);

		if (order == 0 && key[length] == '\0')
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/*
 * Records that say how the records of the old file lie (torch 2.7 may rely on
 * it) or hash them: without them torch looks for itself, as in older files.
 */
static bool
is_about_records(const char *rest, size_t length)
{
	static const char *const names[] = { ".format_version",
		".storage_alignment", ".data/serialization_id" };

	for (size_t i = 0; i < 3; i++)
		if (strlen(names[i]) == length &&
		    memcmp(names[i], rest, length) == 0)
			return true;
	return false;
}

static int
copy_record(struct splicer *splicer, const struct zip_record *record,
    struct splice *splice, struct error *error)
{
	struct splice_copy *copy = &splice->copies[splice->count];

	if (!record->stored)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "its record %.*s is compressed", (int)record->name_length,
		    record->name);
	if (zip_directory_place(&splicer->file.directory, record, &copy->from,
	    error) != 0)
		return -1;
	copy->length = record->length;
	splice->count++;
	return zip_plan_add(splice->outline.zip, record->name,
	    record->name_length, NULL, record->length,
	    &splice->outline.places[splice->count - 1], error);
}

static int
lay_record(struct splicer *splicer, const struct zip_record *record,
    struct splice *splice, struct error *error)
{
	size_t prefix = splicer->file.prefix, length = record->name_length;
	const char *rest = record->name + prefix;
	uint64_t place;

	if (record == splicer->file.data)
		return zip_plan_add(splice->outline.zip, record->name,
		    length, splicer->pickle.data, splicer->pickle.length,
		    &place, error);
	if (length < prefix ||
	    memcmp(record->name, splicer->file.data->name, prefix) != 0)
		return copy_record(splicer, record, splice, error);
	length -= prefix;
	if (is_about_records(rest, length))
		return 0;
	if (length > 5 && memcmp(rest, "data/", 5) == 0 &&
	    !names_key(splicer, rest + 5, length - 5)) {
		splice->dropped_bytes += record->length;
		return 0;
	}
	return copy_record(splicer, record, splice, error);
}

static int
lay_records(struct splicer *splicer, struct splice *splice,
    struct error *error)
{
	const struct zip_directory *directory = &splicer->file.directory;

	splice->outline.zip = zip_plan_new();
	splice->copies = calloc(directory->count + 1,
	    sizeof(*splice->copies));
	splice->outline.places = calloc(directory->count + 1,
	    sizeof(*splice->outline.places));
	if (splice->outline.zip == NULL || splice->copies == NULL ||
	    splice->outline.places == NULL)
		return no_memory(error);
	for (size_t i = 0; i < directory->count; i++)
		if (lay_record(splicer, &directory->records[i], splice,
		    error) != 0)
			return -1;
	splice->outline.needs_checksums = true;
	splice->outline.size = zip_plan_size(splice->outline.zip);
	return 0;
}

int
splice_make(const struct source *source, struct splice *splice,
    struct error *error)
{
	struct splicer splicer = { .length = 0 };
	int result = -1;

	memset(splice, 0, sizeof(*splice));
	buffer_init(&splicer.pickle, 2 * PICKLE_MAXIMUM);
	if (torch_file_open(source, &splicer.file, error) != 0)
		goto done;
	if (!splicer.file.zipped) {
		error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED,
		    source->name, "only the zip format of torch can be cut");
		goto done;
	}
	if (read_old(&splicer, error) != 0 ||
	    make_pickle(&splicer, splice, error) != 0 ||
	    read_new(&splicer, error) != 0)
		goto done;
	result = lay_records(&splicer, splice, error);

done:
	free(splicer.keys);
	pickle_free(splicer.read);
	buffer_free(&splicer.pickle);
	free(splicer.old);
	torch_file_close(&splicer.file);
	return result;
}

void
splice_free(struct splice *splice)
{
	model_outline_free(&splice->outline);
	free(splice->copies);
	memset(splice, 0, sizeof(*splice));
}
