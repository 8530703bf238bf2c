#include "store/manifest_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "store/manifest.h"
#include "store/manifest_paths.h"

struct check {
	const struct manifest *manifest;
	const char *name;
	struct error *error;
};

static int damaged(const struct check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int
damaged(const struct check *check, const char *format, ...)
{
	char text[512];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	return error_set(check->error, ERROR_DAMAGED, CAUSE_OTHER,
	    check->name, "%s", text);
}

static int
check_head(const struct check *check)
{
	const struct manifest *manifest = check->manifest;

	if (manifest->name == NULL || !path_is_harmless(manifest->name))
		return damaged(check, "the checkpoint's name \"%s\" is not a "
		    "harmless path", manifest->name ? manifest->name : "");
	if (manifest->series == NULL || manifest->layout == NULL ||
	    manifest->reason == NULL)
		return damaged(check, "series, layout or reason is missing");
	if (manifest->term.number == 0 ||
	    manifest->term.number > KEY_TERM_MAXIMUM ||
	    manifest->term.node > KEY_NODE_MAXIMUM ||
	    manifest->attempt == 0 || manifest->attempt > KEY_ATTEMPT_MAXIMUM)
		return damaged(check, "node, term or attempt is out of range");
	if (manifest->nodes == 0 || manifest->nodes > KEY_NODE_MAXIMUM + 1)
		return damaged(check, "number of nodes %" PRIu32
		    " is out of range", manifest->nodes);
	return 0;
}

/* Only a term that came before can have been adopted from. */
static bool
is_from_our_past(const struct manifest *manifest, const struct term *term)
{
	return term->node == manifest->term.node &&
	    (term->number < manifest->term.number ||
	    term_same(term, &manifest->term));
}

static int
compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts ${keys}. */
static int
check_distinct(const struct check *check, const char **keys, size_t count)
{
	size_t i;

	if (count < 2)
		return 0;
	qsort(keys, count, sizeof(*keys), compare_text);
	for (i = 1; i < count; i++) {
		if (strcmp(keys[i - 1], keys[i]) == 0)
			return damaged(check, "names %s twice", keys[i]);
	}
	return 0;
}

static int
check_chunk(const struct check *check, const struct manifest_chunk *chunk)
{
	struct key_parts parts;

	key_parse(chunk->key, &parts);
	if (parts.kind != KEY_CHUNK ||
	    !is_from_our_past(check->manifest, &parts.term))
		return damaged(check, "\"%s\" is not a chunk of this node",
		    chunk->key);
	if (memcmp(parts.digest, chunk->digest, SHA256_SIZE) != 0)
		return damaged(check, "chunk %s has another digest",
		    chunk->key);
	if (chunk->size == 0 || chunk->size > INT64_MAX)
		return damaged(check, "chunk %s has the size %" PRIu64,
		    chunk->key, chunk->size);
	return 0;
}

static int
check_chunks(const struct check *check)
{
	const struct manifest *manifest = check->manifest;
	const char **keys;
	size_t i;
	int result = -1;

	keys = calloc(manifest->chunk_count + 1, sizeof(*keys));
	if (keys == NULL)
		return error_set(check->error, ERROR_FAILED, CAUSE_MEMORY,
		    check->name, "out of memory");
	for (i = 0; i < manifest->chunk_count; i++) {
		if (check_chunk(check, &manifest->chunks[i]) != 0)
			goto out;
		keys[i] = manifest->chunks[i].key;
	}
	result = check_distinct(check, keys, manifest->chunk_count);
out:
	free(keys);
	return result;
}

/* Extents must tile the file: none empty, all inside their chunks. */
static int
check_extents(const struct check *check, const struct manifest_entry *entry)
{
	const struct manifest *manifest = check->manifest;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < entry->extent_count; i++) {
		const struct manifest_extent *extent = &entry->extents[i];
		uint64_t size;

		if (extent->chunk >= manifest->chunk_count)
			return damaged(check, "%s: extent %zu names chunk %"
			    PRIu32 " of %zu", entry->path, i, extent->chunk,
			    manifest->chunk_count);
		size = manifest->chunks[extent->chunk].size;
		if (extent->length == 0 || extent->offset > size ||
		    extent->length > size - extent->offset)
			return damaged(check, "%s: extent %zu does not lie "
			    "in its chunk", entry->path, i);
		if (extent->length > entry->size - sum)
			return damaged(check, "%s: extents give more than the"
			    " %" PRIu64 " bytes of the file", entry->path,
			    entry->size);
		sum += extent->length;
	}
	if (sum != entry->size)
		return damaged(check, "%s: extents give %" PRIu64 " of %"
		    PRIu64 " bytes", entry->path, sum, entry->size);
	return 0;
}

static int
check_entry(const struct check *check, const struct manifest_entry *entry)
{
	if (entry->path == NULL || !path_is_harmless(entry->path))
		return damaged(check, "\"%s\" is not a harmless path",
		    entry->path ? entry->path : "");
	/* There a restore stages its files; no watcher ever sees them. */
	if (strncmp(entry->path, ".ckptsync-", 10) == 0)
		return damaged(check, "\"%s\" is not a harmless path: it is "
		    "one of our own", entry->path);
	if ((entry->mode & ~(mode_t)07777) != 0)
		return damaged(check, "%s: mode %o", entry->path,
		    (unsigned)entry->mode);
	if (entry->kind == MANIFEST_FILE) {
		if (entry->size > INT64_MAX)
			return damaged(check, "%s: size %" PRIu64,
			    entry->path, entry->size);
		return check_extents(check, entry);
	}
	if (entry->size != 0 || entry->extent_count != 0)
		return damaged(check, "%s: only a file has bytes",
		    entry->path);
	if (entry->kind != MANIFEST_FOLDER && entry->target == NULL)
		return damaged(check, "%s: link without a target",
		    entry->path);
	return 0;
}

static int
check_entries(const struct check *check, const struct manifest_entry *entries,
    size_t count, uint64_t *size)
{
	size_t i;

	*size = 0;
	for (i = 0; i < count; i++) {
		if (check_entry(check, &entries[i]) != 0)
			return -1;
		if (entries[i].size > INT64_MAX - *size)
			return damaged(check, "sizes add up to too much");
		*size += entries[i].size;
	}
	return 0;
}

static int
check_records(const struct check *check)
{
	const struct manifest *manifest = check->manifest;
	size_t i;

	for (i = 0; i < manifest->record_count; i++) {
		const struct manifest_record *record = &manifest->records[i];
		const struct manifest_entry *entry;

		if (record->entry >= manifest->entry_count ||
		    record->name == NULL)
			return damaged(check, "record %zu names no file", i);
		entry = &manifest->entries[record->entry];
		if (entry->kind != MANIFEST_FILE ||
		    record->offset > entry->size ||
		    record->length > entry->size - record->offset)
			return damaged(check, "record \"%s\" does not lie in "
			    "%s", record->name, entry->path);
	}
	return 0;
}

static int
check_keeps(const struct check *check, const char **keys)
{
	const struct manifest *manifest = check->manifest;
	struct key_parts parts;
	bool resume_found = false;
	size_t i;

	for (i = 0; i < manifest->keep_count; i++) {
		const struct manifest_keep *keep = &manifest->keeps[i];

		key_parse(keep->key, &parts);
		if (parts.kind != KEY_MANIFEST || keep->name == NULL ||
		    !is_from_our_past(manifest, &parts.term) ||
		    (term_same(&parts.term, &manifest->term) &&
		    parts.attempt >= manifest->attempt))
			return damaged(check, "keeps \"%s\", which is no "
			    "earlier manifest of this node", keep->key);
		if (manifest->resume != NULL &&
		    strcmp(manifest->resume, keep->key) == 0)
			resume_found = true;
		keys[i] = keep->key;
	}
	if (manifest->resume != NULL && *manifest->resume != '\0' &&
	    !resume_found)
		return damaged(check, "the resume point \"%s\" is not kept",
		    manifest->resume);
	return check_distinct(check, keys, manifest->keep_count);
}

static int
check_truth(const struct check *check)
{
	const char **keys;
	int result;

	keys = calloc(check->manifest->keep_count + 1, sizeof(*keys));
	if (keys == NULL)
		return error_set(check->error, ERROR_FAILED, CAUSE_MEMORY,
		    check->name, "out of memory");
	result = check_keeps(check, keys);
	free(keys);
	return result;
}

int
manifest_check(const struct manifest *manifest, const char *name,
    struct error *error)
{
	const struct check check = { manifest, name, error };
	uint64_t size, others;

	if (check_head(&check) != 0 || check_chunks(&check) != 0 ||
	    check_entries(&check, manifest->entries, manifest->entry_count,
	    &size) != 0 ||
	    check_entries(&check, manifest->companions,
	    manifest->companion_count, &others) != 0 ||
	    check_entries(&check, manifest->pointers,
	    manifest->pointer_count, &others) != 0 ||
	    check_records(&check) != 0 || check_truth(&check) != 0)
		return -1;
	if (size != manifest->size)
		return damaged(&check, "says %" PRIu64 " bytes, its files "
		    "have %" PRIu64, manifest->size, size);
	return manifest_paths_check(manifest, name, error);
}
