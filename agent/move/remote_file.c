#include "move/remote_file.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/manifest.h"
#include "move/fetcher.h"
#include "move/ranges.h"

/* Of a longer extent only the bytes around the wanted ones are kept. */
#define KEPT_WHOLE (UINT64_C(8) << 20)

/* One miss fetches no more at a time. */
#define STEP_MAXIMUM (UINT64_C(8) << 20)

/* Who reads on where the last fetch ended is read ahead for: twice as much
 * every time, and never a piece that is longer than headers are cut to. */
#define AHEAD_MINIMUM (UINT64_C(64) << 10)
#define AHEAD_MAXIMUM (UINT64_C(1) << 20)
#define AHEAD_PIECE (UINT64_C(64) << 10)

#define SLACK UINT64_C(4096)

/* Bytes of a file that were fetched and are right. */
struct block {
	size_t entry;
	uint64_t offset;
	uint64_t length;
	uint8_t *data;
	struct block *next;	/* used before this one */
};

struct remote_file {
	struct remote_file_set *set;
	size_t entry;
	struct source source;
	uint64_t *starts;	/* of each extent, in the file; made when it is
				 * read first */
	uint64_t last;		/* where the last fetch ended */
	uint64_t ahead;
};

struct remote_file_set {
	struct backend *backend;
	const struct manifest *manifest;
	const _Atomic bool *cancel;
	_Atomic uint64_t *fetched;
	struct remote_file *files;	/* one for each entry */
	struct block *blocks;		/* the last used one first */
	size_t cached;
};

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

static void
block_free(struct block *block)
{
	if (block == NULL)
		return;
	free(block->data);
	free(block);
}

/* The block with the byte at ${offset}, put in front; NULL: none. */
static struct block *
find_block(struct remote_file_set *set, size_t entry, uint64_t offset)
{
	struct block **place, *block;

	for (place = &set->blocks; (block = *place) != NULL;
	    place = &block->next) {
		if (block->entry != entry || offset < block->offset ||
		    offset - block->offset >= block->length)
			continue;
		*place = block->next;
		block->next = set->blocks;
		set->blocks = block;
		return block;
	}
	return NULL;
}

static void
keep_block(struct remote_file_set *set, struct block *block)
{
	struct block **place;
	size_t sum = 0;

	block->next = set->blocks;
	set->blocks = block;
	for (place = &set->blocks; *place != NULL; place = &(*place)->next) {
		if (sum + (*place)->length <= REMOTE_FILE_CACHE) {
			sum += (size_t)(*place)->length;
			continue;
		}
		while ((block = *place) != NULL) {
			*place = block->next;
			block_free(block);
		}
		return;
	}
}

static int
take(void *context, const struct ranges_portion *portion, uint64_t at,
    const void *data, size_t length, struct error *error)
{
	struct block *block = context;

	(void)error;
	assert(portion->at + at + length <= block->length);
	memcpy(block->data + portion->at + at, data, length);
	return 0;
}

static struct block *
fetch_block(struct remote_file_set *set, size_t entry, uint64_t start,
    uint64_t end, struct error *error)
{
	struct ranges_wish wish = {
		.entry = entry, .offset = start, .length = end - start
	};
	struct ranges ranges;
	struct fetcher fetcher = {
		.backend = set->backend,
		.ranges = &ranges,
		.cancel = set->cancel,
		.fetched = set->fetched,
		.take = take
	};
	struct block *block = calloc(1, sizeof(*block));
	int result = -1;

	if (block == NULL || (block->data = malloc((size_t)wish.length)) ==
	    NULL) {
		block_free(block);
		out_of_memory(error);
		return NULL;
	}
	block->entry = entry;
	block->offset = start;
	block->length = wish.length;
	fetcher.context = block;
	if (ranges_make(set->manifest, &wish, 1, SLACK, &ranges, error) == 0)
		result = fetcher_run(&fetcher, error);
	ranges_free(&ranges);
	if (result == 0)
		return block;
	block_free(block);
	return NULL;
}

static int
find_starts(struct remote_file *file, struct error *error)
{
	const struct manifest_entry *entry =
	    &file->set->manifest->entries[file->entry];
	uint64_t start = 0;
	size_t i;

	if (file->starts != NULL)
		return 0;
	file->starts = malloc((entry->extent_count + 1) *
	    sizeof(*file->starts));
	if (file->starts == NULL)
		return out_of_memory(error);
	for (i = 0; i < entry->extent_count; i++) {
		file->starts[i] = start;
		start += entry->extents[i].length;
	}
	file->starts[i] = start;
	return 0;
}

/* The extent that holds the byte at ${offset}. */
static size_t
find_extent(const struct remote_file *file, uint64_t offset)
{
	size_t low = 0, middle;
	size_t high = file->set->manifest->entries[file->entry].extent_count;

	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (file->starts[middle] <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/*
 * What to fetch when the bytes from ${offset} to ${end} are wanted and the
 * first of them is not there: [*${start}, *${stop}).
 */
static void
choose(struct remote_file *file, uint64_t offset, uint64_t end,
    uint64_t *start, uint64_t *stop)
{
	const uint64_t *starts = file->starts;
	size_t count = file->set->manifest->entries[file->entry].extent_count;
	size_t i = find_extent(file, offset);
	uint64_t length = starts[i + 1] - starts[i], limit;

	*start = starts[i];
	*stop = starts[i + 1];
	if (length > KEPT_WHOLE) {
		*start = offset;
		if (*stop - offset > STEP_MAXIMUM)
			*stop = offset + STEP_MAXIMUM;
		return;
	}
	limit = *start + STEP_MAXIMUM;
	for (i++; i < count && *stop < end && starts[i + 1] <= limit; i++)
		*stop = starts[i + 1];
	if (*start != file->last)
		file->ahead = 0;
	else
		file->ahead = file->ahead == 0 ? AHEAD_MINIMUM :
		    file->ahead * 2;
	if (file->ahead > AHEAD_MAXIMUM)
		file->ahead = AHEAD_MAXIMUM;
	limit = *stop + file->ahead;
	for (; i < count && starts[i + 1] <= limit &&
	    starts[i + 1] - starts[i] <= AHEAD_PIECE; i++)
		*stop = starts[i + 1];
	file->last = *stop;
}

/* Small pieces that follow each other come together. */
static uint64_t
find_edge(void *context, uint64_t offset)
{
	struct remote_file *file = context;
	size_t count = file->set->manifest->entries[file->entry].extent_count;
	struct error error = ERROR_INIT;
	uint64_t edge;
	size_t i;

	if (offset >= file->source.size || find_starts(file, &error) == -1)
		return UINT64_MAX;
	i = find_extent(file, offset);
	edge = file->starts[++i];
	while (i < count && edge - offset < AHEAD_MAXIMUM &&
	    file->starts[i + 1] - file->starts[i] <= AHEAD_PIECE)
		edge = file->starts[++i];
	return edge;
}

static int
read_at(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	struct remote_file *file = context;
	struct remote_file_set *set = file->set;
	uint64_t start, stop, step;
	uint8_t *to = data;
	struct block *block;

	if (find_starts(file, error) == -1)
		return -1;
	while (length > 0) {
		block = find_block(set, file->entry, offset);
		if (block == NULL) {
			choose(file, offset, offset + length, &start, &stop);
			block = fetch_block(set, file->entry, start, stop,
			    error);
			if (block == NULL)
				return -1;
			keep_block(set, block);
		}
		step = block->length - (offset - block->offset);
		if (step > length)
			step = length;
		memcpy(to, block->data + (offset - block->offset),
		    (size_t)step);
		to += step;
		offset += step;
		length -= (size_t)step;
	}
	return 0;
}

struct remote_file_set *
remote_file_set_new(struct backend *backend, const struct manifest *manifest,
    const _Atomic bool *cancel, _Atomic uint64_t *fetched,
    struct error *error)
{
	struct remote_file_set *set = calloc(1, sizeof(*set));
	struct remote_file *file;
	size_t i;

	if (set != NULL)
		set->files = calloc(manifest->entry_count + 1,
		    sizeof(*set->files));
	if (set == NULL || set->files == NULL) {
		free(set);
		out_of_memory(error);
		return NULL;
	}
	set->backend = backend;
	set->manifest = manifest;
	set->cancel = cancel;
	set->fetched = fetched;
	for (i = 0; i < manifest->entry_count; i++) {
		file = &set->files[i];
		file->set = set;
		file->entry = i;
		file->last = UINT64_MAX;
		file->source = (struct source){
			.size = manifest->entries[i].size,
			.read_at = read_at,
			.find_edge = find_edge,
			.context = file,
			.name = manifest->entries[i].path
		};
	}
	return set;
}

const struct source *
remote_file_source(struct remote_file_set *set, size_t entry)
{
	assert(set->manifest->entries[entry].kind == MANIFEST_FILE);
	return &set->files[entry].source;
}

const void *
remote_file_cached(const struct remote_file_set *set, size_t entry,
    uint64_t offset, uint64_t *length)
{
	const struct block *block;
	uint64_t left;

	for (block = set->blocks; block != NULL; block = block->next) {
		if (block->entry != entry)
			continue;
		if (block->offset <= offset &&
		    offset - block->offset < block->length) {
			left = block->length - (offset - block->offset);
			if (left < *length)
				*length = left;
			return block->data + (offset - block->offset);
		}
	}
	for (block = set->blocks; block != NULL; block = block->next)
		if (block->entry == entry && block->offset > offset &&
		    block->offset - offset < *length)
			*length = block->offset - offset;
	return NULL;
}

void
remote_file_set_free(struct remote_file_set *set)
{
	struct block *block;
	size_t i;

	if (set == NULL)
		return;
	while ((block = set->blocks) != NULL) {
		set->blocks = block->next;
		block_free(block);
	}
	for (i = 0; i < set->manifest->entry_count; i++)
		free(set->files[i].starts);
	free(set->files);
	free(set);
}
