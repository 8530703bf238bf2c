#include "store/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct manifest *
manifest_new(void)
{
	return calloc(1, sizeof(struct manifest));
}

/* The digest of an extent's own bytes, or NULL when it is not known. */
static const uint8_t *
extent_digest(const struct manifest *manifest,
    const struct manifest_extent *extent)
{
	const struct manifest_chunk *chunk = &manifest->chunks[extent->chunk];

	if (extent->has_digest)
		return extent->digest;
	if (extent->offset == 0 && extent->length == chunk->size)
		return chunk->digest;
	return NULL;
}

static bool
same_extent(const struct manifest *a, const struct manifest_extent *of_a,
    const struct manifest *b, const struct manifest_extent *of_b)
{
	const uint8_t *digest_a = extent_digest(a, of_a);
	const uint8_t *digest_b = extent_digest(b, of_b);

	if (of_a->length != of_b->length)
		return false;
	if (digest_a != NULL && digest_b != NULL)
		return memcmp(digest_a, digest_b, SHA256_SIZE) == 0;
	return of_a->offset == of_b->offset &&
	    memcmp(a->chunks[of_a->chunk].digest,
	    b->chunks[of_b->chunk].digest, SHA256_SIZE) == 0;
}

static bool
same_entry(const struct manifest *a, const struct manifest_entry *of_a,
    const struct manifest *b, const struct manifest_entry *of_b)
{
	size_t i;

	if (of_a->kind != of_b->kind || strcmp(of_a->path, of_b->path) != 0)
		return false;
	if (of_a->kind == MANIFEST_LINK || of_a->kind == MANIFEST_HARD_LINK)
		return strcmp(of_a->target, of_b->target) == 0;
	if (of_a->mode != of_b->mode)
		return false;
	if (of_a->kind == MANIFEST_FOLDER)
		return true;
	if (of_a->size != of_b->size ||
	    of_a->extent_count != of_b->extent_count)
		return false;
	for (i = 0; i < of_a->extent_count; i++) {
		if (!same_extent(a, &of_a->extents[i], b, &of_b->extents[i]))
			return false;
	}
	return true;
}

bool
manifest_same_content(const struct manifest *a, const struct manifest *b)
{
	size_t i;

	if (strcmp(a->name, b->name) != 0 || a->entry_count != b->entry_count)
		return false;
	for (i = 0; i < a->entry_count; i++) {
		if (!same_entry(a, &a->entries[i], b, &b->entries[i]))
			return false;
	}
	return true;
}

char *
manifest_id(const struct manifest *manifest, char text[MANIFEST_ID_SIZE])
{
	char node[16] = "";

	if (manifest->term.node != 0)
		snprintf(node, sizeof(node), "n%" PRIu32 "-",
		    manifest->term.node);
	snprintf(text, MANIFEST_ID_SIZE, "%s%" PRIu32 "-%" PRIu64, node,
	    manifest->term.number, manifest->attempt);
	return text;
}

static void
free_entries(struct manifest_entry *entries, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		free(entries[i].path);
		free(entries[i].target);
		free(entries[i].extents);
	}
	free(entries);
}

void
manifest_free(struct manifest *manifest)
{
	size_t i;

	if (manifest == NULL)
		return;
	free_entries(manifest->entries, manifest->entry_count);
	free_entries(manifest->companions, manifest->companion_count);
	free_entries(manifest->pointers, manifest->pointer_count);
	for (i = 0; i < manifest->chunk_count; i++)
		free(manifest->chunks[i].key);
	free(manifest->chunks);
	for (i = 0; i < manifest->record_count; i++)
		free(manifest->records[i].name);
	free(manifest->records);
	for (i = 0; i < manifest->keep_count; i++) {
		free(manifest->keeps[i].key);
		free(manifest->keeps[i].name);
	}
	free(manifest->keeps);
	free(manifest->name);
	free(manifest->series);
	free(manifest->layout);
	free(manifest->reason);
	free(manifest->resume);
	free(manifest->needs_writer);
	free(manifest->key);
	json_decref(manifest->environment);
	free(manifest);
}
