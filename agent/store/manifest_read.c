#include "store/manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "store/feature.h"
#include "store/manifest_check.h"

struct input {
	struct manifest *manifest;
	const char *name;	/* the key, for errors */
	struct error *error;
};

static int
no_memory(const struct input *input)
{
	return error_set(input->error, ERROR_FAILED, CAUSE_MEMORY,
	    input->name, "out of memory");
}

/* Field ${field} of what ${where} says is missing or of a wrong kind. */
static int
wrong(const struct input *input, const char *where, const char *field)
{
	return error_set(input->error, ERROR_DAMAGED, CAUSE_OTHER,
	    input->name, "the manifest's %s has no usable \"%s\"", where,
	    field);
}

static int
take_name(const struct input *input, const json_t *object, const char *where,
    const char *field, char **name)
{
	*name = json_get_name(object, field);
	return *name != NULL ? 0 : wrong(input, where, field);
}

static int
take_number(const struct input *input, const json_t *object, const char *where,
    const char *field, uint64_t maximum, uint64_t *number)
{
	if (json_get_u64(object, field, number) != 0 || *number > maximum)
		return wrong(input, where, field);
	return 0;
}

/* The list ${field} and fresh zeroed memory for its elements. */
static int
take_list(const struct input *input, const json_t *object, const char *field,
    size_t size, const json_t **list, void *items)
{
	void *memory;

	*list = json_object_get(object, field);
	if (!json_is_array(*list))
		return wrong(input, "head", field);
	memory = calloc(json_array_size(*list) + 1, size);
	if (memory == NULL)
		return no_memory(input);
	memcpy(items, &memory, sizeof(memory));
	return 0;
}

static int
take_kind(const struct input *input, const json_t *object,
    enum manifest_kind *kind)
{
	const char *text = json_get_text(object, "kind");

	if (text == NULL)
		return wrong(input, "entry", "kind");
	if (strcmp(text, "file") == 0)
		*kind = MANIFEST_FILE;
	else if (strcmp(text, "folder") == 0)
		*kind = MANIFEST_FOLDER;
	else if (strcmp(text, "link") == 0)
		*kind = MANIFEST_LINK;
	else if (strcmp(text, "hard_link") == 0)
		*kind = MANIFEST_HARD_LINK;
	else
		return wrong(input, "entry", "kind");
	return 0;
}

/* The whole number >= 0 at ${index}. */
static int
number_at(const json_t *list, size_t index, uint64_t *number)
{
	const json_t *value = json_array_get(list, index);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return -1;
	*number = (uint64_t)json_integer_value(value);
	return 0;
}

static int
take_extent(const struct input *input, const json_t *list,
    struct manifest_extent *extent)
{
	size_t length = json_array_size(list);
	uint64_t chunk;
	const json_t *hex;

	if (length < 3 || number_at(list, 0, &chunk) != 0 ||
	    chunk > UINT32_MAX || number_at(list, 1, &extent->offset) != 0 ||
	    number_at(list, 2, &extent->length) != 0)
		return wrong(input, "entry", "extents");
	extent->chunk = (uint32_t)chunk;
	if (length == 3)
		return 0;
	hex = json_array_get(list, 3);
	if (json_string_length(hex) != SHA256_HEX_SIZE - 1 ||
	    sha256_from_hex(json_string_value(hex), extent->digest) != 0)
		return wrong(input, "entry", "extents");
	extent->has_digest = true;
	return 0;
}

static int
take_extents(const struct input *input, const json_t *object,
    struct manifest_entry *entry)
{
	const json_t *list;
	size_t i, count;

	if (take_number(input, object, "entry", "size_bytes", INT64_MAX,
	    &entry->size) != 0 ||
	    take_list(input, object, "extents", sizeof(*entry->extents),
	    &list, &entry->extents) != 0)
		return -1;
	count = json_array_size(list);
	for (i = 0; i < count; i++) {
		if (take_extent(input, json_array_get(list, i),
		    &entry->extents[i]) != 0)
			return -1;
	}
	entry->extent_count = count;
	return 0;
}

static int
take_entry(const struct input *input, const json_t *object,
    struct manifest_entry *entry)
{
	uint64_t mode;

	if (take_kind(input, object, &entry->kind) != 0 ||
	    take_name(input, object, "entry", "path", &entry->path) != 0)
		return -1;
	if (entry->kind == MANIFEST_LINK || entry->kind == MANIFEST_HARD_LINK)
		return take_name(input, object, "entry", "target",
		    &entry->target);
	if (take_number(input, object, "entry", "mode", 07777, &mode) != 0)
		return -1;
	entry->mode = (mode_t)mode;
	if (json_get_time(object, "modified", &entry->modified) != 0)
		return wrong(input, "entry", "modified");
	return entry->kind == MANIFEST_FILE ?
	    take_extents(input, object, entry) : 0;
}

static int
take_entries(const struct input *input, const json_t *object,
    const char *field, struct manifest_entry **entries, size_t *count)
{
	const json_t *list;
	size_t i;

	if (take_list(input, object, field, sizeof(**entries), &list,
	    entries) != 0)
		return -1;
	*count = json_array_size(list);
	for (i = 0; i < *count; i++) {
		if (take_entry(input, json_array_get(list, i),
		    &(*entries)[i]) != 0)
			return -1;
	}
	return 0;
}

static int
take_chunk(const struct input *input, const json_t *object,
    struct manifest_chunk *chunk)
{
	const char *key = json_get_text(object, "key");
	const char *codec = json_get_text(object, "codec");
	struct key_parts parts;

	if (key == NULL)
		return wrong(input, "chunk", "key");
	if (codec == NULL)
		return wrong(input, "chunk", "codec");
	if (strcmp(codec, "none") != 0)
		return feature_refuse(input->name, codec, input->error);
	chunk->key = strdup(key);
	if (chunk->key == NULL)
		return no_memory(input);
	key_parse(key, &parts);
	memcpy(chunk->digest, parts.digest, SHA256_SIZE);
	return take_number(input, object, "chunk", "size_bytes", INT64_MAX,
	    &chunk->size);
}

static int
take_chunks(const struct input *input, const json_t *object)
{
	struct manifest *manifest = input->manifest;
	const json_t *list;
	size_t i;

	if (take_list(input, object, "chunks", sizeof(*manifest->chunks),
	    &list, &manifest->chunks) != 0)
		return -1;
	manifest->chunk_count = json_array_size(list);
	for (i = 0; i < manifest->chunk_count; i++) {
		if (take_chunk(input, json_array_get(list, i),
		    &manifest->chunks[i]) != 0)
			return -1;
	}
	return 0;
}

static int
take_records(const struct input *input, const json_t *object)
{
	struct manifest *manifest = input->manifest;
	const json_t *list;
	size_t i;

	if (take_list(input, object, "records", sizeof(*manifest->records),
	    &list, &manifest->records) != 0)
		return -1;
	manifest->record_count = json_array_size(list);
	for (i = 0; i < manifest->record_count; i++) {
		const json_t *item = json_array_get(list, i);
		struct manifest_record *record = &manifest->records[i];
		uint64_t entry;

		if (take_number(input, item, "record", "entry", UINT32_MAX,
		    &entry) != 0 ||
		    take_name(input, item, "record", "name",
		    &record->name) != 0 ||
		    take_number(input, item, "record", "offset", INT64_MAX,
		    &record->offset) != 0 ||
		    take_number(input, item, "record", "length", INT64_MAX,
		    &record->length) != 0)
			return -1;
		record->entry = (uint32_t)entry;
	}
	return 0;
}

static int
take_keeps(const struct input *input, const json_t *object)
{
	struct manifest *manifest = input->manifest;
	const json_t *list;
	size_t i;

	if (take_list(input, object, "keeps", sizeof(*manifest->keeps), &list,
	    &manifest->keeps) != 0)
		return -1;
	manifest->keep_count = json_array_size(list);
	for (i = 0; i < manifest->keep_count; i++) {
		const json_t *item = json_array_get(list, i);

		if (take_name(input, item, "keep", "key",
		    &manifest->keeps[i].key) != 0 ||
		    take_name(input, item, "keep", "name",
		    &manifest->keeps[i].name) != 0)
			return -1;
	}
	return 0;
}

static int
take_resume(const struct input *input, const json_t *object)
{
	const char *text = json_get_text(object, "resume");

	if (text == NULL)
		return json_object_get(object, "resume") == NULL ? 0 :
		    wrong(input, "head", "resume");
	if (strcmp(text, "self") == 0)
		text = "";
	else if (*text == '\0')
		return wrong(input, "head", "resume");
	input->manifest->resume = strdup(text);
	return input->manifest->resume != NULL ? 0 : no_memory(input);
}

/* The term and attempt inside must be those of the key. */
static int
take_origin(const struct input *input, const json_t *object,
    const struct key_parts *parts)
{
	struct manifest *manifest = input->manifest;
	const char *random = json_get_text(object, "term_random");
	uint64_t node, nodes, term;
	char key[KEY_SIZE];

	if (take_number(input, object, "head", "node", UINT32_MAX, &node) ||
	    take_number(input, object, "head", "nodes", UINT32_MAX, &nodes) ||
	    take_number(input, object, "head", "term", UINT32_MAX, &term) ||
	    take_number(input, object, "head", "attempt",
	    KEY_ATTEMPT_MAXIMUM, &manifest->attempt) ||
	    take_number(input, object, "head", "save_attempt", INT64_MAX,
	    &manifest->save_attempt))
		return -1;
	manifest->term = parts->term;
	manifest->nodes = (uint32_t)nodes;
	key_term(&parts->term, key);
	/* "node-0000/term-00000003-9f2c5d1e0a7b4c68/": the random part. */
	if (random == NULL || strlen(random) != 16 ||
	    strncmp(key + strlen(key) - 17, random, 16) != 0 ||
	    node != parts->term.node || term != parts->term.number ||
	    manifest->attempt != parts->attempt)
		return error_set(input->error, ERROR_DAMAGED, CAUSE_OTHER,
		    input->name, "the manifest belongs to another key");
	return 0;
}

static int
take_step(const struct input *input, const json_t *object)
{
	struct manifest *manifest = input->manifest;

	if (json_object_get(object, "step") == NULL)
		return 0;
	manifest->has_step = true;
	return take_number(input, object, "head", "step", INT64_MAX,
	    &manifest->step);
}

static int
take_head(const struct input *input, const json_t *object)
{
	struct manifest *manifest = input->manifest;
	const char *role = json_get_text(object, "role");
	json_t *environment = json_object_get(object, "environment");

	if (role == NULL || role_parse(role, &manifest->role) != 0)
		return wrong(input, "head", "role");
	if (!json_is_boolean(json_object_get(object, "proven")))
		return wrong(input, "head", "proven");
	manifest->proven = json_is_true(json_object_get(object, "proven"));
	if (json_get_time(object, "completed", &manifest->completed) != 0)
		return wrong(input, "head", "completed");
	if (json_get_time(object, "committed", &manifest->committed) != 0)
		return wrong(input, "head", "committed");
	if (environment != NULL && !json_is_object(environment))
		return wrong(input, "head", "environment");
	manifest->environment = json_incref(environment);
	if (take_name(input, object, "head", "name", &manifest->name) != 0 ||
	    take_name(input, object, "head", "series",
	    &manifest->series) != 0 ||
	    take_name(input, object, "head", "layout",
	    &manifest->layout) != 0 ||
	    take_name(input, object, "head", "reason",
	    &manifest->reason) != 0 ||
	    take_number(input, object, "head", "target_bytes", INT64_MAX,
	    &manifest->target) != 0 ||
	    take_number(input, object, "head", "size_bytes", INT64_MAX,
	    &manifest->size) != 0 ||
	    take_number(input, object, "head", "new_bytes", INT64_MAX,
	    &manifest->new_size) != 0)
		return -1;
	return take_step(input, object);
}

static int
take_features(const struct input *input, const json_t *object)
{
	const char *feature;
	uint64_t format;

	if (json_get_u64(object, "format", &format) != 0)
		return wrong(input, "head", "format");
	if (format != MANIFEST_FORMAT) {
		error_set(input->error, ERROR_FAILED, CAUSE_FEATURE,
		    input->name, "is written in format %" PRIu64 ", this "
		    "ckptsync knows format %d", format, MANIFEST_FORMAT);
		return error_cure(input->error, "use a newer ckptsync");
	}
	feature = feature_unknown(object, "needs_reader");
	if (feature != NULL)
		return feature_refuse(input->name, feature, input->error);
	feature = feature_unknown(object, "needs_writer");
	if (feature == NULL)
		return 0;
	input->manifest->needs_writer = strdup(feature);
	return input->manifest->needs_writer != NULL ? 0 : no_memory(input);
}

static int
take_key(const struct input *input, const uint8_t digest[SHA256_SIZE])
{
	memcpy(input->manifest->digest, digest, SHA256_SIZE);
	input->manifest->key = strdup(input->name);
	return input->manifest->key != NULL ? 0 : no_memory(input);
}

static int
take_all(const struct input *input, const json_t *object,
    const struct key_parts *parts)
{
	struct manifest *manifest = input->manifest;

	if (take_features(input, object) != 0 ||
	    take_head(input, object) != 0 ||
	    take_origin(input, object, parts) != 0 ||
	    take_chunks(input, object) != 0 ||
	    take_entries(input, object, "entries", &manifest->entries,
	    &manifest->entry_count) != 0 ||
	    take_entries(input, object, "companions", &manifest->companions,
	    &manifest->companion_count) != 0 ||
	    take_entries(input, object, "pointers", &manifest->pointers,
	    &manifest->pointer_count) != 0 ||
	    take_records(input, object) != 0 ||
	    take_keeps(input, object) != 0 || take_resume(input, object) != 0)
		return -1;
	return manifest_check(manifest, input->name, input->error);
}

struct manifest *
manifest_read(const char *key, const void *data, size_t length,
    struct error *error)
{
	struct input input = { .name = key, .error = error };
	struct key_parts parts;
	uint8_t digest[SHA256_SIZE];
	json_t *object;

	key_parse(key, &parts);
	if (parts.kind != KEY_MANIFEST) {
		error_set(error, ERROR_DAMAGED, CAUSE_OTHER, key,
		    "is not the key of a manifest");
		return NULL;
	}
	sha256_of(data, length, digest);
	if (memcmp(digest, parts.digest, SHA256_SIZE) != 0) {
		error_set(error, ERROR_DAMAGED, CAUSE_OTHER, key,
		    "the manifest's bytes do not fit the hash in its name");
		return NULL;
	}
	if (length > MANIFEST_SIZE_MAXIMUM) {
		error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, key,
		    "the manifest has %zu bytes", length);
		return NULL;
	}
	object = json_read(data, length, key, error);
	if (object == NULL)
		return NULL;
	input.manifest = manifest_new();
	if (input.manifest == NULL || take_key(&input, digest) != 0 ||
	    take_all(&input, object, &parts) != 0) {
		if (input.manifest == NULL)
			no_memory(&input);
		manifest_free(input.manifest);
		input.manifest = NULL;
	}
	json_decref(object);
	return input.manifest;
}
