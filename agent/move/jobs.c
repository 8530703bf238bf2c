#include "move/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "move/match.h"

/* A chunk is fetched whole when no more than this comes along: asking twice
 * costs more. */
#define BESIDE_MAXIMUM UINT64_C(262144)

/* Ranges that are closer are fetched as one. */
#define GAP_MAXIMUM UINT64_C(65536)

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

static int
compare_places(const void *a, const void *b)
{
	const struct job_place *left = a, *right = b;
	int order = strcmp(left->chunk->key, right->chunk->key);

	if (order != 0)
		return order;
	if (left->offset != right->offset)
		return left->offset < right->offset ? -1 : 1;
	return (left->length > right->length) -
	    (left->length < right->length);
}

static size_t
count_extents(const struct selection *selection)
{
	size_t i, count = 0;

	for (i = 0; i < selection->part_count; i++)
		if (selection->parts[i].content != NULL)
			count += selection->parts[i].content->extent_count;
	return count;
}

static void
add_places(const struct selection *selection, size_t number,
    struct jobs *jobs)
{
	const struct part *part = &selection->parts[number];
	const struct manifest_extent *extent;
	uint64_t offset = 0;
	size_t i;

	for (i = 0; i < part->content->extent_count; i++,
	    offset += extent->length) {
		extent = &part->content->extents[i];
		if (part->origins[i].staged ||
		    part->origins[i].from != ORIGIN_STORE)
			continue;
		jobs->places[jobs->place_count++] = (struct job_place){
			.chunk = &part->manifest->chunks[extent->chunk],
			.manifest = part->manifest,
			.offset = extent->offset,
			.length = extent->length,
			.digest = match_digest(part->manifest, extent),
			.part = number,
			.file_offset = offset,
			.origin = &part->origins[i]
		};
	}
}

static void
add_job(struct jobs *jobs, size_t first, size_t count, bool whole,
    uint64_t offset, uint64_t end)
{
	jobs->all[jobs->count++] = (struct job){
		.chunk = jobs->places[first].chunk,
		.manifest = jobs->places[first].manifest,
		.whole = whole,
		.offset = offset,
		.length = end - offset,
		.places = &jobs->places[first],
		.count = count
	};
	jobs->bytes += end - offset;
}

/* The places from ${first} to ${last} are of one chunk; is it better fetched
 * whole? */
static bool
is_better_whole(const struct jobs *jobs, size_t first, size_t last)
{
	const struct job_place *place;
	uint64_t wanted = 0, end = 0, size = jobs->places[first].chunk->size;
	size_t i;

	for (i = first; i < last; i++) {
		place = &jobs->places[i];
		if (place->digest == NULL)
			return true;
		if (place->offset + place->length <= end)
			continue;
		wanted += place->offset + place->length -
		    (place->offset > end ? place->offset : end);
		end = place->offset + place->length;
	}
	return size - wanted <= BESIDE_MAXIMUM;
}

static void
add_chunk(struct jobs *jobs, size_t first, size_t last)
{
	const struct job_place *place;
	uint64_t start, end;
	size_t i, begin = first;

	if (is_better_whole(jobs, first, last)) {
		add_job(jobs, first, last - first, true, 0,
		    jobs->places[first].chunk->size);
		return;
	}
	start = jobs->places[first].offset;
	end = start;
	for (i = first; i < last; i++) {
		place = &jobs->places[i];
		if (place->offset > end && place->offset - end > GAP_MAXIMUM) {
			add_job(jobs, begin, i - begin, false, start, end);
			begin = i;
			start = place->offset;
		}
		if (place->offset + place->length > end)
			end = place->offset + place->length;
	}
	add_job(jobs, begin, last - begin, false, start, end);
}

int
jobs_make(const struct selection *selection, struct jobs *jobs,
    struct error *error)
{
	size_t i, j, first, count = count_extents(selection);
	const struct item *item;

	memset(jobs, 0, sizeof(*jobs));
	jobs->places = calloc(count + 1, sizeof(*jobs->places));
	jobs->all = calloc(count + 1, sizeof(*jobs->all));
	if (jobs->places == NULL || jobs->all == NULL) {
		jobs_free(jobs);
		return out_of_memory(error);
	}
	for (i = 0; i < selection->item_count; i++) {
		item = &selection->items[i];
		for (j = 0; !item->settled && j < item->count; j++)
			if (selection->parts[item->first + j].content != NULL)
				add_places(selection, item->first + j, jobs);
	}
	qsort(jobs->places, jobs->place_count, sizeof(*jobs->places),
	    compare_places);
	for (i = 0; i < jobs->place_count; i = j) {
		first = i;
		for (j = i + 1; j < jobs->place_count &&
		    strcmp(jobs->places[j].chunk->key,
		    jobs->places[first].chunk->key) == 0; j++)
			continue;
		add_chunk(jobs, first, j);
	}
	return 0;
}

void
jobs_free(struct jobs *jobs)
{
	free(jobs->places);
	free(jobs->all);
	memset(jobs, 0, sizeof(*jobs));
}
