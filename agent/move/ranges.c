#include "move/ranges.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/manifest.h"
#include "move/match.h"

/* Ranges that lie further apart are never one GET. */
#define GAP_MAXIMUM UINT64_C(65536)

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

/* Where the last wish began, since most wishes follow each other. */
struct cursor {
	size_t entry;
	size_t extent;
	uint64_t start;		/* of that extent, in the file */
};

/* Called with an extent that a wish touches, which begins at ${start}. */
typedef void (*extent_visit)(struct ranges *ranges, size_t number,
    const struct ranges_wish *wish, const struct manifest_extent *extent,
    uint64_t start);

static void
visit_extents(struct ranges *ranges, struct cursor *cursor,
    const struct ranges_wish *wishes, size_t number, extent_visit visit)
{
	const struct ranges_wish *wish = &wishes[number];
	const struct manifest_entry *entry;
	uint64_t start;
	size_t i;

	entry = &ranges->manifest->entries[wish->entry];
	assert(wish->offset <= entry->size &&
	    wish->length <= entry->size - wish->offset);
	if (wish->length == 0)
		return;
	if (cursor->entry != wish->entry || cursor->start > wish->offset)
		*cursor = (struct cursor){ .entry = wish->entry };
	while (cursor->extent < entry->extent_count && cursor->start +
	    entry->extents[cursor->extent].length <= wish->offset)
		cursor->start += entry->extents[cursor->extent++].length;
	start = cursor->start;
	for (i = cursor->extent; i < entry->extent_count &&
	    start < wish->offset + wish->length; i++) {
		visit(ranges, number, wish, &entry->extents[i], start);
		start += entry->extents[i].length;
	}
}

static void
visit_all(struct ranges *ranges, const struct ranges_wish *wishes,
    size_t count, extent_visit visit)
{
	struct cursor cursor = { .entry = SIZE_MAX };
	size_t i;

	for (i = 0; i < count; i++)
		visit_extents(ranges, &cursor, wishes, i, visit);
}

static void
count_extent(struct ranges *ranges, size_t number,
    const struct ranges_wish *wish, const struct manifest_extent *extent,
    uint64_t start)
{
	(void)number;
	(void)wish;
	(void)extent;
	(void)start;
	ranges->proof_count++;
}

static void
add_extent(struct ranges *ranges, size_t number,
    const struct ranges_wish *wish, const struct manifest_extent *extent,
    uint64_t start)
{
	const uint8_t *digest = match_digest(ranges->manifest, extent);
	const struct manifest_chunk *chunk =
	    &ranges->manifest->chunks[extent->chunk];
	uint64_t first = wish->offset > start ? wish->offset : start;
	uint64_t end = wish->offset + wish->length;

	if (end > start + extent->length)
		end = start + extent->length;
	ranges->portions[ranges->portion_count++] = (struct ranges_portion){
		.chunk = extent->chunk,
		.offset = extent->offset + (first - start),
		.length = end - first,
		.wish = number,
		.at = first - wish->offset
	};
	ranges->proofs[ranges->proof_count++] = digest != NULL ?
	    (struct ranges_proof){
		.chunk = extent->chunk,
		.offset = extent->offset,
		.length = extent->length,
		.digest = digest
	    } : (struct ranges_proof){
		.chunk = extent->chunk,
		.length = chunk->size,
		.digest = chunk->digest
	    };
}

static int
compare_places(uint32_t chunk_a, uint64_t offset_a, uint64_t length_a,
    uint32_t chunk_b, uint64_t offset_b, uint64_t length_b)
{
	if (chunk_a != chunk_b)
		return chunk_a < chunk_b ? -1 : 1;
	if (offset_a != offset_b)
		return offset_a < offset_b ? -1 : 1;
	return (length_a > length_b) - (length_a < length_b);
}

static int
compare_proofs(const void *a, const void *b)
{
	const struct ranges_proof *left = a, *right = b;

	return compare_places(left->chunk, left->offset, left->length,
	    right->chunk, right->offset, right->length);
}

static int
compare_portions(const void *a, const void *b)
{
	const struct ranges_portion *left = a, *right = b;

	return compare_places(left->chunk, left->offset, left->length,
	    right->chunk, right->offset, right->length);
}

static int
compare_numbers(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* Two wishes in one extent need it once. */
static void
drop_twins(struct ranges *ranges)
{
	size_t i, kept = 0;

	for (i = 0; i < ranges->proof_count; i++)
		if (kept == 0 || compare_proofs(&ranges->proofs[kept - 1],
		    &ranges->proofs[i]) != 0)
			ranges->proofs[kept++] = ranges->proofs[i];
	ranges->proof_count = kept;
}

/*
 * The gap before proof number ${index} (> 0), of which *${end} is where those
 * before it end; UINT64_MAX when it lies in another chunk.  Moves *${end} on.
 */
static uint64_t
gap_before(const struct ranges *ranges, size_t index, uint64_t *end)
{
	const struct ranges_proof *proof = &ranges->proofs[index];
	uint64_t gap = UINT64_MAX;

	if (index > 0 && proof[-1].chunk == proof->chunk)
		gap = proof->offset > *end ? proof->offset - *end : 0;
	if (gap == UINT64_MAX || proof->offset + proof->length > *end)
		*end = proof->offset + proof->length;
	return gap;
}

/* The largest gap that is fetched along, within ${slack} for all of them. */
static int
choose_gap(const struct ranges *ranges, uint64_t slack, uint64_t *largest,
    struct error *error)
{
	uint64_t *gaps, gap, end = 0, sum = 0;
	size_t i, j, count = 0;

	*largest = 0;
	gaps = malloc((ranges->proof_count + 1) * sizeof(*gaps));
	if (gaps == NULL)
		return out_of_memory(error);
	for (i = 0; i < ranges->proof_count; i++) {
		gap = gap_before(ranges, i, &end);
		if (gap > 0 && gap <= GAP_MAXIMUM)
			gaps[count++] = gap;
	}
	qsort(gaps, count, sizeof(*gaps), compare_numbers);
	/* All gaps of one length or none. */
	for (i = 0; i < count; i = j) {
		for (j = i; j < count && gaps[j] == gaps[i]; j++)
			sum += gaps[j];
		if (sum > slack)
			break;
		*largest = gaps[i];
	}
	free(gaps);
	return 0;
}

static void
add_range(struct ranges *ranges, size_t first, size_t count, uint64_t end,
    size_t *portion)
{
	const struct ranges_proof *proof = &ranges->proofs[first];
	struct range *range = &ranges->all[ranges->count++];

	*range = (struct range){
		.chunk = &ranges->manifest->chunks[proof->chunk],
		.offset = proof->offset,
		.length = end - proof->offset,
		.proofs = proof,
		.proof_count = count,
		.portions = &ranges->portions[*portion]
	};
	while (*portion < ranges->portion_count &&
	    ranges->portions[*portion].chunk == proof->chunk &&
	    ranges->portions[*portion].offset < end) {
		range->portion_count++;
		++*portion;
	}
	ranges->bytes += range->length;
}

static void
add_ranges(struct ranges *ranges, uint64_t largest)
{
	uint64_t end = 0, before, gap;
	size_t i, first = 0, portion = 0;

	for (i = 0; i < ranges->proof_count; i++) {
		before = end;
		gap = gap_before(ranges, i, &end);
		if (i > 0 && gap > largest) {
			add_range(ranges, first, i - first, before, &portion);
			first = i;
		}
	}
	if (ranges->proof_count > 0)
		add_range(ranges, first, ranges->proof_count - first, end,
		    &portion);
	assert(portion == ranges->portion_count);
}

int
ranges_make(const struct manifest *manifest,
    const struct ranges_wish *wishes, size_t count, uint64_t slack,
    struct ranges *ranges, struct error *error)
{
	uint64_t largest;

	memset(ranges, 0, sizeof(*ranges));
	ranges->manifest = manifest;
	visit_all(ranges, wishes, count, count_extent);
	ranges->proofs = calloc(ranges->proof_count + 1,
	    sizeof(*ranges->proofs));
	ranges->portions = calloc(ranges->proof_count + 1,
	    sizeof(*ranges->portions));
	ranges->all = calloc(ranges->proof_count + 1, sizeof(*ranges->all));
	if (ranges->proofs == NULL || ranges->portions == NULL ||
	    ranges->all == NULL)
		return out_of_memory(error);
	ranges->proof_count = 0;
	visit_all(ranges, wishes, count, add_extent);
	qsort(ranges->proofs, ranges->proof_count, sizeof(*ranges->proofs),
	    compare_proofs);
	qsort(ranges->portions, ranges->portion_count,
	    sizeof(*ranges->portions), compare_portions);
	drop_twins(ranges);
	if (choose_gap(ranges, slack, &largest, error) == -1)
		return -1;
	add_ranges(ranges, largest);
	return 0;
}

void
ranges_free(struct ranges *ranges)
{
	free(ranges->proofs);
	free(ranges->portions);
	free(ranges->all);
	memset(ranges, 0, sizeof(*ranges));
}
