#include "store/known.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "store/manifest.h"

/* Bytes within a chunk that have a digest of their own. */
struct known_part {
	uint8_t digest[SHA256_SIZE];
	uint64_t offset, length;
	uint32_t names;		/* extents of valid manifests that say so */
	struct known_chunk *chunk;
	struct known_part *next;	/* in its bucket */
	struct known_part *sibling;	/* of the same chunk */
};

struct known {
	uint64_t seed;		/* so that nobody can choose digests that
				 * all fall into one bucket */
	struct known_chunk **chunks;
	size_t chunk_count, chunk_buckets;
	struct known_part **parts;
	size_t part_count, part_buckets;
};

#define BUCKETS_MINIMUM 256

struct known *
known_new(void)
{
	struct known *known = calloc(1, sizeof(*known));

	if (known == NULL)
		return NULL;
	known->seed = random_bits() | 1;
	known->chunk_buckets = known->part_buckets = BUCKETS_MINIMUM;
	known->chunks = calloc(BUCKETS_MINIMUM, sizeof(*known->chunks));
	known->parts = calloc(BUCKETS_MINIMUM, sizeof(*known->parts));
	if (known->chunks == NULL || known->parts == NULL) {
		known_free(known);
		return NULL;
	}
	return known;
}

static size_t
bucket_of(const struct known *known, const uint8_t digest[SHA256_SIZE],
    size_t buckets)
{
	uint64_t words[SHA256_SIZE / 8], hash = known->seed;
	size_t i;

	memcpy(words, digest, sizeof(words));
	for (i = 0; i < SHA256_SIZE / 8; i++) {
		hash = (hash ^ words[i]) * known->seed;
		hash ^= hash >> 29;
	}
	return (size_t)(hash % buckets);
}

/* More buckets; without memory the lists only get longer. */
static void
grow_chunks(struct known *known)
{
	size_t buckets = known->chunk_buckets * 2, i, at;
	struct known_chunk **chunks = calloc(buckets, sizeof(*chunks));
	struct known_chunk *chunk, *next;

	if (chunks == NULL)
		return;
	for (i = 0; i < known->chunk_buckets; i++) {
		for (chunk = known->chunks[i]; chunk != NULL; chunk = next) {
			next = chunk->next;
			at = bucket_of(known, chunk->digest, buckets);
			chunk->next = chunks[at];
			chunks[at] = chunk;
		}
	}
	free(known->chunks);
	known->chunks = chunks;
	known->chunk_buckets = buckets;
}

static void
grow_parts(struct known *known)
{
	size_t buckets = known->part_buckets * 2, i, at;
	struct known_part **parts = calloc(buckets, sizeof(*parts));
	struct known_part *part, *next;

	if (parts == NULL)
		return;
	for (i = 0; i < known->part_buckets; i++) {
		for (part = known->parts[i]; part != NULL; part = next) {
			next = part->next;
			at = bucket_of(known, part->digest, buckets);
			part->next = parts[at];
			parts[at] = part;
		}
	}
	free(known->parts);
	known->parts = parts;
	known->part_buckets = buckets;
}

struct known_chunk *
known_get(struct known *known, const struct term *term, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE])
{
	struct known_chunk *chunk;

	chunk = known->chunks[bucket_of(known, digest, known->chunk_buckets)];
	while (chunk != NULL && (chunk->attempt != attempt ||
	    !term_same(&chunk->term, term) ||
	    memcmp(chunk->digest, digest, SHA256_SIZE) != 0))
		chunk = chunk->next;
	return chunk;
}

struct known_chunk *
known_add(struct known *known, const struct term *term, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE], uint64_t size)
{
	struct known_chunk *chunk = known_get(known, term, attempt, digest);
	size_t at;

	if (chunk != NULL)
		return chunk;
	chunk = calloc(1, sizeof(*chunk));
	if (chunk == NULL)
		return NULL;
	chunk->term = *term;
	chunk->attempt = attempt;
	chunk->size = size;
	memcpy(chunk->digest, digest, SHA256_SIZE);
	if (known->chunk_count >= known->chunk_buckets)
		grow_chunks(known);
	at = bucket_of(known, digest, known->chunk_buckets);
	chunk->next = known->chunks[at];
	known->chunks[at] = chunk;
	known->chunk_count++;
	return chunk;
}

bool
known_may_use(const struct known_chunk *chunk)
{
	return !chunk->sent && (chunk->valid > 0 || chunk->own ||
	    chunk->leftover || chunk->users > 0);
}

struct known_chunk *
known_find(struct known *known, const uint8_t digest[SHA256_SIZE],
    uint64_t length, uint64_t *offset)
{
	struct known_chunk *chunk;
	struct known_part *part;

	chunk = known->chunks[bucket_of(known, digest, known->chunk_buckets)];
	for (; chunk != NULL; chunk = chunk->next) {
		if (chunk->size == length && known_may_use(chunk) &&
		    memcmp(chunk->digest, digest, SHA256_SIZE) == 0) {
			*offset = 0;
			return chunk;
		}
	}
	part = known->parts[bucket_of(known, digest, known->part_buckets)];
	for (; part != NULL; part = part->next) {
		if (part->length == length && known_may_use(part->chunk) &&
		    memcmp(part->digest, digest, SHA256_SIZE) == 0) {
			*offset = part->offset;
			return part->chunk;
		}
	}
	return NULL;
}

static struct known_part *
find_part(struct known *known, const struct known_chunk *chunk,
    const struct manifest_extent *extent)
{
	struct known_part *part;

	part = known->parts[bucket_of(known, extent->digest,
	    known->part_buckets)];
	while (part != NULL && (part->chunk != chunk ||
	    part->offset != extent->offset ||
	    part->length != extent->length ||
	    memcmp(part->digest, extent->digest, SHA256_SIZE) != 0))
		part = part->next;
	return part;
}

static int
name_part(struct known *known, struct known_chunk *chunk,
    const struct manifest_extent *extent)
{
	struct known_part *part = find_part(known, chunk, extent);
	size_t at;

	if (part != NULL) {
		part->names++;
		return 0;
	}
	part = calloc(1, sizeof(*part));
	if (part == NULL)
		return -1;
	memcpy(part->digest, extent->digest, SHA256_SIZE);
	part->offset = extent->offset;
	part->length = extent->length;
	part->names = 1;
	part->chunk = chunk;
	part->sibling = chunk->parts;
	chunk->parts = part;
	if (known->part_count >= known->part_buckets)
		grow_parts(known);
	at = bucket_of(known, part->digest, known->part_buckets);
	part->next = known->parts[at];
	known->parts[at] = part;
	known->part_count++;
	return 0;
}

static void
drop_part(struct known *known, struct known_part *part)
{
	struct known_part **place;

	place = &known->parts[bucket_of(known, part->digest,
	    known->part_buckets)];
	while (*place != part)
		place = &(*place)->next;
	*place = part->next;
	place = &part->chunk->parts;
	while (*place != part)
		place = &(*place)->sibling;
	*place = part->sibling;
	known->part_count--;
	free(part);
}

/* How far naming has come: what is behind it is still to do. */
struct naming {
	struct known *known;
	const struct manifest *manifest;
	struct known_chunk **chunks;	/* of the manifest, by index */
	size_t left;		/* chunks and extents to undo; SIZE_MAX: all */
};

static int
name_entries(struct naming *naming, const struct manifest_entry *entries,
    size_t count, size_t *done)
{
	size_t i, j;

	for (i = 0; i < count; i++) {
		for (j = 0; j < entries[i].extent_count; j++) {
			const struct manifest_extent *extent =
			    &entries[i].extents[j];

			if (extent->has_digest && name_part(naming->known,
			    naming->chunks[extent->chunk], extent) != 0)
				return -1;
			++*done;
		}
	}
	return 0;
}

static void
unname_entries(struct naming *naming, const struct manifest_entry *entries,
    size_t count)
{
	struct known_part *part;
	size_t i, j;

	for (i = 0; i < count; i++) {
		for (j = 0; j < entries[i].extent_count; j++) {
			const struct manifest_extent *extent =
			    &entries[i].extents[j];

			if (naming->left == 0)
				return;
			naming->left--;
			if (!extent->has_digest)
				continue;
			part = find_part(naming->known,
			    naming->chunks[extent->chunk], extent);
			if (part != NULL && --part->names == 0)
				drop_part(naming->known, part);
		}
	}
}

static void
unname_parts(struct naming *naming)
{
	const struct manifest *manifest = naming->manifest;

	unname_entries(naming, manifest->entries, manifest->entry_count);
	unname_entries(naming, manifest->companions,
	    manifest->companion_count);
	unname_entries(naming, manifest->pointers, manifest->pointer_count);
}

static int
name_parts(struct naming *naming)
{
	const struct manifest *manifest = naming->manifest;
	size_t done = 0;

	if (name_entries(naming, manifest->entries, manifest->entry_count,
	    &done) == 0 && name_entries(naming, manifest->companions,
	    manifest->companion_count, &done) == 0 &&
	    name_entries(naming, manifest->pointers, manifest->pointer_count,
	    &done) == 0)
		return 0;
	naming->left = done;
	unname_parts(naming);
	return -1;
}

/* Fill naming->chunks; with ${add}, those that are not known are made. */
static int
find_chunks(struct naming *naming, bool add)
{
	const struct manifest *manifest = naming->manifest;
	struct key_parts parts;
	size_t i;

	naming->chunks = calloc(manifest->chunk_count + 1,
	    sizeof(*naming->chunks));
	for (i = 0; naming->chunks != NULL && i < manifest->chunk_count; i++) {
		const struct manifest_chunk *chunk = &manifest->chunks[i];

		key_parse(chunk->key, &parts);
		assert(parts.kind == KEY_CHUNK);
		naming->chunks[i] = add ? known_add(naming->known, &parts.term,
		    parts.attempt, parts.digest, chunk->size) :
		    known_get(naming->known, &parts.term, parts.attempt,
		    parts.digest);
		if (naming->chunks[i] == NULL)
			break;
	}
	if (naming->chunks != NULL && i == manifest->chunk_count)
		return 0;
	free(naming->chunks);
	return -1;
}

int
known_name(struct known *known, const struct manifest *manifest)
{
	struct naming naming = { .known = known, .manifest = manifest,
		.left = SIZE_MAX };
	size_t i;
	int result;

	if (find_chunks(&naming, true) != 0)
		return -1;
	result = name_parts(&naming);
	for (i = 0; result == 0 && i < manifest->chunk_count; i++)
		naming.chunks[i]->valid++;
	free(naming.chunks);
	return result;
}

void
known_unname(struct known *known, const struct manifest *manifest)
{
	struct known_chunk *chunk;
	struct key_parts parts;
	struct naming naming = { .known = known, .manifest = manifest,
		.left = SIZE_MAX };
	size_t i;

	/* Without memory its parts stay known as long as their chunks do. */
	if (find_chunks(&naming, false) == 0) {
		unname_parts(&naming);
		free(naming.chunks);
	}
	for (i = 0; i < manifest->chunk_count; i++) {
		key_parse(manifest->chunks[i].key, &parts);
		chunk = known_get(known, &parts.term, parts.attempt,
		    parts.digest);
		assert(chunk != NULL && chunk->valid > 0);
		chunk->valid--;
	}
}

void
known_forget(struct known *known, struct known_chunk *chunk)
{
	struct known_chunk **place;

	assert(chunk->valid == 0 && chunk->users == 0);
	while (chunk->parts != NULL)
		drop_part(known, chunk->parts);
	place = &known->chunks[bucket_of(known, chunk->digest,
	    known->chunk_buckets)];
	while (*place != chunk)
		place = &(*place)->next;
	*place = chunk->next;
	known->chunk_count--;
	free(chunk);
}

void
known_each(struct known *known, void (*visit)(void *context,
    struct known_chunk *chunk), void *context)
{
	struct known_chunk *chunk;
	size_t i;

	for (i = 0; i < known->chunk_buckets; i++) {
		for (chunk = known->chunks[i]; chunk != NULL;
		    chunk = chunk->next)
			visit(context, chunk);
	}
}

void
known_free(struct known *known)
{
	struct known_chunk *chunk;
	struct known_part *part;
	size_t i;

	if (known == NULL)
		return;
	for (i = 0; known->parts != NULL && i < known->part_buckets; i++) {
		while ((part = known->parts[i]) != NULL) {
			known->parts[i] = part->next;
			free(part);
		}
	}
	for (i = 0; known->chunks != NULL && i < known->chunk_buckets; i++) {
		while ((chunk = known->chunks[i]) != NULL) {
			known->chunks[i] = chunk->next;
			free(chunk);
		}
	}
	free(known->parts);
	free(known->chunks);
	free(known);
}
