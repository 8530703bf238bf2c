#include "store/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "store/feature.h"
#include "store/manifest_check.h"

/*
 * The lists are written element by element, so that memory holds one element
 * as JSON and not the whole manifest.
 */
struct output {
	struct buffer *buffer;
	size_t start;		/* length of buffer before the manifest */
	const char *name;
	struct error *error;	/* filled once something failed */
};

static int
no_memory(const struct output *output)
{
	return error_set(output->error, ERROR_FAILED, CAUSE_MEMORY,
	    output->name, "out of memory");
}

static int
append(const char *data, size_t length, void *context)
{
	struct output *output = context;

	if (length > MANIFEST_SIZE_MAXIMUM -
	    (output->buffer->length - output->start)) {
		error_set(output->error, ERROR_FAILED, CAUSE_LIMIT,
		    output->name, "the manifest is larger than %" PRIu64
		    " MiB", MANIFEST_SIZE_MAXIMUM >> 20);
		return error_cure(output->error, "leave out what need not be"
		    " kept (--exclude, --companions)");
	}
	return buffer_append(output->buffer, data, length, output->error);
}

static int
append_text(struct output *output, const char *text)
{
	return append(text, strlen(text), output);
}

/* Write ${value} and give it back; NULL means that memory ran out. */
static int
append_value(struct output *output, json_t *value)
{
	int result = -1;

	if (value == NULL)
		return no_memory(output);
	error_clear(output->error);
	if (json_dump_callback(value, append, output,
	    JSON_COMPACT | JSON_ENCODE_ANY) == 0)
		result = 0;
	else if (output->error->class == ERROR_NONE)
		no_memory(output);
	json_decref(value);
	return result;
}

/* ${object} when all went well, else NULL with the object given back. */
static json_t *
finish(json_t *object, int failed)
{
	if (failed == 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *
make_extent(const struct manifest_extent *extent)
{
	char hex[SHA256_HEX_SIZE];
	json_t *list = json_array();
	int failed = 0;

	failed |= json_array_append_new(list, json_integer(extent->chunk));
	failed |= json_array_append_new(list,
	    json_integer((json_int_t)extent->offset));
	failed |= json_array_append_new(list,
	    json_integer((json_int_t)extent->length));
	if (extent->has_digest)
		failed |= json_array_append_new(list,
		    json_string(sha256_hex(extent->digest, hex)));
	return finish(list, failed);
}

/* All of an entry but its extents. */
static json_t *
make_entry(const struct manifest_entry *entry)
{
	static const char *const kinds[] = {
		[MANIFEST_FILE] = "file", [MANIFEST_FOLDER] = "folder",
		[MANIFEST_LINK] = "link", [MANIFEST_HARD_LINK] = "hard_link" };
	json_t *object = json_object();
	int failed = 0;

	failed |= json_object_set_new(object, "kind",
	    json_string(kinds[entry->kind]));
	failed |= json_set_name(object, "path", entry->path);
	if (entry->kind == MANIFEST_LINK || entry->kind == MANIFEST_HARD_LINK) {
		failed |= json_set_name(object, "target", entry->target);
		return finish(object, failed);
	}
	failed |= json_set_u64(object, "mode", entry->mode);
	failed |= json_set_time(object, "modified", entry->modified);
	if (entry->kind == MANIFEST_FILE)
		failed |= json_set_u64(object, "size_bytes", entry->size);
	return finish(object, failed);
}

/* Take back the brace that closed the object written last, to go on in it. */
static void
reopen(struct output *output)
{
	output->buffer->data[--output->buffer->length] = '\0';
}

static int
write_entry(struct output *output, const struct manifest_entry *entry)
{
	size_t i;

	if (append_value(output, make_entry(entry)) != 0)
		return -1;
	if (entry->kind != MANIFEST_FILE)
		return 0;
	reopen(output);
	if (append_text(output, ",\"extents\":[") != 0)
		return -1;
	for (i = 0; i < entry->extent_count; i++) {
		if ((i > 0 && append_text(output, ",") != 0) ||
		    append_value(output, make_extent(&entry->extents[i])) != 0)
			return -1;
	}
	return append_text(output, "]}");
}

static int
write_entries(struct output *output, const char *field,
    const struct manifest_entry *entries, size_t count)
{
	size_t i;

	if (append_text(output, ",\"") != 0 ||
	    append_text(output, field) != 0 ||
	    append_text(output, "\":[") != 0)
		return -1;
	for (i = 0; i < count; i++) {
		if ((i > 0 && append_text(output, ",") != 0) ||
		    write_entry(output, &entries[i]) != 0)
			return -1;
	}
	return append_text(output, "]");
}

static int
write_chunks(struct output *output, const struct manifest *manifest)
{
	size_t i;

	if (append_text(output, ",\"chunks\":[") != 0)
		return -1;
	for (i = 0; i < manifest->chunk_count; i++) {
		const struct manifest_chunk *chunk = &manifest->chunks[i];
		json_t *object = json_object();
		int failed = 0;

		failed |= json_object_set_new(object, "key",
		    json_string(chunk->key));
		failed |= json_set_u64(object, "size_bytes", chunk->size);
		failed |= json_object_set_new(object, "codec",
		    json_string("none"));
		if ((i > 0 && append_text(output, ",") != 0) ||
		    append_value(output, finish(object, failed)) != 0)
			return -1;
	}
	return append_text(output, "]");
}

static int
write_records(struct output *output, const struct manifest *manifest)
{
	size_t i;

	if (append_text(output, ",\"records\":[") != 0)
		return -1;
	for (i = 0; i < manifest->record_count; i++) {
		const struct manifest_record *record = &manifest->records[i];
		json_t *object = json_object();
		int failed = 0;

		failed |= json_set_u64(object, "entry", record->entry);
		failed |= json_set_name(object, "name", record->name);
		failed |= json_set_u64(object, "offset", record->offset);
		failed |= json_set_u64(object, "length", record->length);
		if ((i > 0 && append_text(output, ",") != 0) ||
		    append_value(output, finish(object, failed)) != 0)
			return -1;
	}
	return append_text(output, "]");
}

static json_t *
make_keeps(const struct manifest *manifest)
{
	json_t *list = json_array();
	int failed = 0;
	size_t i;

	for (i = 0; i < manifest->keep_count; i++) {
		json_t *object = json_object();

		failed |= json_object_set_new(object, "key",
		    json_string(manifest->keeps[i].key));
		failed |= json_set_name(object, "name",
		    manifest->keeps[i].name);
		failed |= json_array_append_new(list, object);
	}
	return finish(list, failed);
}

/* Who wrote it, when, and what stays valid beside it. */
static int
set_truth(json_t *object, const struct manifest *manifest)
{
	char random[17];
	int failed = 0;

	snprintf(random, sizeof(random), "%016" PRIx64, manifest->term.random);
	failed |= json_set_u64(object, "node", manifest->term.node);
	failed |= json_set_u64(object, "nodes", manifest->nodes);
	failed |= json_set_u64(object, "term", manifest->term.number);
	failed |= json_object_set_new(object, "term_random",
	    json_string(random));
	failed |= json_set_u64(object, "attempt", manifest->attempt);
	failed |= json_set_u64(object, "save_attempt", manifest->save_attempt);
	failed |= json_set_time(object, "completed", manifest->completed);
	failed |= json_set_time(object, "committed", manifest->committed);
	failed |= json_object_set_new(object, "keeps", make_keeps(manifest));
	if (manifest->resume != NULL)
		failed |= json_object_set_new(object, "resume",
		    json_string(*manifest->resume == '\0' ? "self" :
		    manifest->resume));
	return failed;
}

static json_t *
make_head(const struct manifest *manifest)
{
	json_t *object = json_object();
	int failed = 0;

	failed |= json_set_u64(object, "format", MANIFEST_FORMAT);
	failed |= feature_write(object);
	failed |= json_set_name(object, "name", manifest->name);
	failed |= json_set_name(object, "series", manifest->series);
	failed |= json_set_name(object, "layout", manifest->layout);
	failed |= json_object_set_new(object, "role",
	    json_string(role_text(manifest->role)));
	if (manifest->has_step)
		failed |= json_set_u64(object, "step", manifest->step);
	failed |= json_object_set_new(object, "proven",
	    json_boolean(manifest->proven));
	failed |= json_set_name(object, "reason", manifest->reason);
	failed |= set_truth(object, manifest);
	failed |= json_set_u64(object, "target_bytes", manifest->target);
	failed |= json_set_u64(object, "size_bytes", manifest->size);
	failed |= json_set_u64(object, "new_bytes", manifest->new_size);
	if (manifest->environment != NULL)
		failed |= json_object_set(object, "environment",
		    manifest->environment);
	return finish(object, failed);
}

static int
check_numbers(const struct output *output, const struct manifest *manifest)
{
	/* The rest of the numbers is bounded by what manifest_check looks at. */
	if (manifest->step > INT64_MAX || manifest->save_attempt > INT64_MAX ||
	    manifest->target > INT64_MAX || manifest->new_size > INT64_MAX)
		return error_set(output->error, ERROR_FAILED, CAUSE_LIMIT,
		    output->name, "a number is too large for a manifest");
	return 0;
}

int
manifest_write(const struct manifest *manifest, struct buffer *buffer,
    struct error *error)
{
	struct output output = { .buffer = buffer, .start = buffer->length,
		.name = manifest->name, .error = error };

	if (manifest_check(manifest, manifest->name, error) != 0 ||
	    check_numbers(&output, manifest) != 0 ||
	    append_value(&output, make_head(manifest)) != 0)
		return -1;
	reopen(&output);
	if (write_entries(&output, "entries", manifest->entries,
	    manifest->entry_count) != 0 ||
	    write_chunks(&output, manifest) != 0 ||
	    write_records(&output, manifest) != 0 ||
	    write_entries(&output, "companions", manifest->companions,
	    manifest->companion_count) != 0 ||
	    write_entries(&output, "pointers", manifest->pointers,
	    manifest->pointer_count) != 0)
		return -1;
	return append_text(&output, "}\n");
}
