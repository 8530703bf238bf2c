#include "move/weights.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "base/unit.h"
#include "format/slice.h"
#include "store/manifest.h"
#include "move/draft.h"
#include "move/fetcher.h"
#include "move/gather.h"

#define BLOCK ((size_t)1 << 20)

/* In the scratch each file begins at a multiple of this. */
#define PLACE UINT64_C(65536)

/* Free space that is left for others. */
#define MARGIN (UINT64_C(1) << 20)

/* The CRC-32 of a run of bytes of an item in OUT. */
struct sum {
	size_t item;
	uint64_t at;		/* in OUT */
	uint64_t length;
	uint32_t checksum;
};

struct run {
	struct weights *weights;
	struct weights_plan *plan;
	const char *path;
	struct draft *draft;
	struct gather *gather;
	uint8_t *block;

	/* Where gathering reads: the local files; or what was fetched, each
	 * file's bytes at their own offsets in a part of a sparse file. */
	const struct source **sources;
	int scratch;
	struct source_file scratch_file;
	struct source scratch_source;
	struct slice *slices;		/* of the scratch, one for each file */
	struct source *parts;
	uint64_t *left;			/* bytes of each item still to come */
	bool *shared;			/* others need bytes of that item too */

	struct sum *sums;		/* one for each portion, then each bit */
	size_t sum_count;
};

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

static int
write_out(const struct run *run, int fd, uint64_t offset, const void *data,
    size_t length, struct error *error)
{
	if (path_write_all_at(fd, data, length, (off_t)offset) == 0)
		return 0;
	return error_set_errno(error, errno, run->path, "cannot write");
}

static uint32_t
add_checksum(uint32_t checksum, const void *data, size_t length)
{
	return (uint32_t)crc32_z(checksum, data, length);
}

/* All bytes of a turned item are there: put it in order. */
static int
turn(struct run *run, size_t item, struct error *error)
{
	const struct weights_plan *plan = run->plan;
	const struct tensor *tensor = &plan->model->tensors[item];
	const struct tensor_piece *piece;
	size_t i;

	if (gather_tensor(run->gather, run->sources, tensor,
	    plan->outline->types[item], draft_fd(run->draft),
	    plan->outline->places[item], error) == -1)
		return error_prefix(error, "%s", tensor->name);
	if (run->scratch < 0 || run->shared[item])
		return 0;
	/* Its room on the disk is for the next ones. */
	for (i = 0; i < tensor->piece_count; i++) {
		piece = &tensor->pieces[i];
		(void)fallocate(run->scratch,
		    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		    (off_t)(run->slices[piece->file].offset + piece->offset),
		    (off_t)gather_span(tensor, piece));
	}
	return 0;
}

/* On a thread of the backend. */
static int
take(void *context, const struct ranges_portion *portion, uint64_t at,
    const void *data, size_t length, struct error *error)
{
	struct run *run = context;
	const struct weights_bit *bit = &run->plan->bits[portion->wish];
	struct sum *sum;

	if (bit->turned)
		return write_out(run, run->scratch,
		    run->slices[bit->file].offset + bit->from + portion->at +
		    at, data, length, error);
	if (run->sums != NULL) {
		sum = &run->sums[portion - run->plan->ranges.portions];
		sum->checksum = add_checksum(at == 0 ? 0 : sum->checksum,
		    data, length);
	}
	return write_out(run, draft_fd(run->draft), bit->to + portion->at +
	    at, data, length, error);
}

/* ${length} bytes of ${bit} are there and right. */
static int
arrive(struct run *run, const struct weights_bit *bit, uint64_t length,
    struct error *error)
{
	run->weights->progress.done += length;
	if (!bit->turned)
		return 0;
	assert(run->left[bit->item] >= length);
	run->left[bit->item] -= length;
	return run->left[bit->item] > 0 ? 0 : turn(run, bit->item, error);
}

static int
done(void *context, const struct range *range, struct error *error)
{
	struct run *run = context;
	const struct ranges_portion *portion;
	size_t i;

	for (i = 0; i < range->portion_count; i++) {
		portion = &range->portions[i];
		if (arrive(run, &run->plan->bits[portion->wish],
		    portion->length, error) == -1)
			return -1;
	}
	return 0;
}

/* What is here already, as if it came now. */
static int
take_cached(struct run *run, struct error *error)
{
	struct weights_plan *plan = run->plan;
	const struct weights_bit *bit;
	struct sum *sum;
	size_t i;

	for (i = 0; i < plan->bit_count; i++) {
		bit = &plan->bits[i];
		if (bit->data == NULL)
			continue;
		if (write_out(run, bit->turned ? run->scratch :
		    draft_fd(run->draft), bit->turned ?
		    run->slices[bit->file].offset + bit->from : bit->to,
		    bit->data, (size_t)bit->length, error) == -1)
			return -1;
		if (run->sums != NULL) {
			sum = &run->sums[plan->ranges.portion_count + i];
			sum->checksum = add_checksum(0, bit->data,
			    (size_t)bit->length);
		}
		if (arrive(run, bit, bit->length, error) == -1)
			return -1;
	}
	return 0;
}

static int
fetch(struct run *run, struct error *error)
{
	struct weights *weights = run->weights;
	struct fetcher fetcher = {
		.backend = weights->backend,
		.ranges = &run->plan->ranges,
		.in_flight = weights->in_flight,
		.cancel = &weights->cancel,
		.fetched = &weights->progress.moved,
		.take = take,
		.done = done,
		.context = run
	};

	if (take_cached(run, error) == -1)
		return -1;
	return fetcher_run(&fetcher, error);
}

/* A bit of a local file. */
static int
copy_bit(struct run *run, const struct weights_bit *bit, struct sum *sum,
    struct error *error)
{
	struct weights *weights = run->weights;
	uint64_t at;
	size_t step;

	for (at = 0; at < bit->length; at += step) {
		step = bit->length - at < BLOCK ?
		    (size_t)(bit->length - at) : BLOCK;
		if (weights->cancel)
			return error_set(error, ERROR_FAILED, CAUSE_CANCELLED,
			    NULL, "cancelled");
		if (source_read(run->sources[bit->file], bit->from + at,
		    run->block, step, error) == -1 ||
		    write_out(run, draft_fd(run->draft), bit->to + at,
		    run->block, step, error) == -1)
			return -1;
		if (sum != NULL)
			sum->checksum = add_checksum(sum->checksum,
			    run->block, step);
		weights->progress.done += step;
	}
	return 0;
}

static int
copy_local(struct run *run, struct error *error)
{
	struct weights_plan *plan = run->plan;
	const struct weights_bit *bit;
	size_t i;

	for (i = 0; i < plan->bit_count; i++) {
		bit = &plan->bits[i];
		if (!bit->turned) {
			if (copy_bit(run, bit, run->sums != NULL ?
			    &run->sums[i] : NULL, error) == -1)
				return -1;
			continue;
		}
		if (run->weights->cancel)
			return error_set(error, ERROR_FAILED, CAUSE_CANCELLED,
			    NULL, "cancelled");
		if (arrive(run, bit, bit->length, error) == -1)
			return -1;
	}
	return 0;
}

/* What of each item has to come, and whether others need the same bytes. */
static void
count_left(struct run *run)
{
	const struct weights_plan *plan = run->plan;
	const struct weights_bit *bit, *longest = NULL;
	size_t i;

	for (i = 0; i < plan->bit_count; i++) {
		bit = &plan->bits[i];
		if (!bit->turned)
			continue;
		run->left[bit->item] += bit->length;
		if (longest != NULL && longest->file == bit->file &&
		    longest->from + longest->length > bit->from) {
			run->shared[longest->item] = true;
			run->shared[bit->item] = true;
		}
		if (longest == NULL || longest->file != bit->file ||
		    longest->from + longest->length < bit->from + bit->length)
			longest = bit;
	}
}

/* The largest item that has to lie in the scratch. */
static uint64_t
largest_left(const struct run *run)
{
	uint64_t largest = 0;
	size_t i;

	for (i = 0; i < run->plan->items; i++)
		if (run->left[i] > largest)
			largest = run->left[i];
	return largest;
}

/* How long a file is with room for every file at its own offsets; where each
 * begins. */
static int
lay_out(struct run *run, uint64_t *end, struct error *error)
{
	const struct weights *weights = run->weights;
	uint64_t size;
	size_t i;

	run->slices = calloc(weights->count + 1, sizeof(*run->slices));
	run->parts = calloc(weights->count + 1, sizeof(*run->parts));
	if (run->slices == NULL || run->parts == NULL)
		return out_of_memory(error);
	*end = 0;
	for (i = 0; i < weights->count; i++) {
		size = weights->files[i].source->size;
		if (size > INT64_MAX - *end - PLACE)
			return error_set(error, ERROR_FAILED, CAUSE_LIMIT,
			    run->path, "the checkpoint is too large");
		run->slices[i].whole = &run->scratch_source;
		run->slices[i].offset = *end;
		*end = (*end + size + PLACE - 1) / PLACE * PLACE;
	}
	return 0;
}

/* A sparse file for what has to be gathered. */
static int
make_scratch(struct run *run, struct error *error)
{
	const struct weights *weights = run->weights;
	uint64_t end = 0;
	size_t i;

	if (lay_out(run, &end, error) == -1 ||
	    (run->scratch = draft_scratch(run->path, error)) < 0)
		return -1;
	if (ftruncate(run->scratch, (off_t)end) != 0)
		return error_set_errno(error, errno, run->path,
		    "cannot make a sparse file beside it");
	run->scratch_file = (struct source_file){
		.fd = run->scratch, .name = run->path
	};
	run->scratch_source = source_from_file(&run->scratch_file, end);
	for (i = 0; i < weights->count; i++) {
		run->parts[i] = slice_source(&run->slices[i],
		    weights->files[i].source->size);
		run->sources[i] = &run->parts[i];
	}
	return 0;
}

/* Everything before the first byte moves. */
static int
prepare(struct run *run, struct error *error)
{
	struct weights *weights = run->weights;
	struct weights_plan *plan = run->plan;
	size_t i;

	run->sources = calloc(weights->count + 1, sizeof(*run->sources));
	run->left = calloc(plan->items + 1, sizeof(*run->left));
	run->shared = calloc(plan->items + 1, sizeof(*run->shared));
	run->block = malloc(BLOCK);
	if (run->sources == NULL || run->left == NULL ||
	    run->shared == NULL || run->block == NULL)
		return out_of_memory(error);
	for (i = 0; i < weights->count; i++)
		run->sources[i] = weights->files[i].source;
	count_left(run);
	if (largest_left(run) > 0 && ((run->gather = gather_new(error)) == NULL ||
	    (weights->backend != NULL && make_scratch(run, error) == -1)))
		return -1;
	run->sum_count = plan->ranges.portion_count + plan->bit_count;
	if (!plan->outline->needs_checksums)
		return 0;
	run->sums = calloc(run->sum_count + 1, sizeof(*run->sums));
	return run->sums == NULL ? out_of_memory(error) : 0;
}

/* Whether the disk has room for OUT and what is gathered meanwhile. */
static int
check_room(const struct run *run, struct error *error)
{
	char wanted[UNIT_TEXT_SIZE], there[UNIT_TEXT_SIZE];
	uint64_t needed = run->plan->size + MARGIN, room;
	struct statvfs status;

	if (run->scratch >= 0)
		needed += largest_left(run);
	if (fstatvfs(draft_fd(run->draft), &status) != 0)
		return error_set_errno(error, errno, run->path,
		    "cannot ask for free space");
	room = (uint64_t)status.f_bavail * status.f_frsize;
	if (needed <= room)
		return 0;
	return error_set(error, ERROR_FAILED, CAUSE_NO_SPACE, run->path,
	    "it needs %s, but only %s are free",
	    unit_size_text(needed, wanted), unit_size_text(room, there));
}

static int
compare_sums(const void *a, const void *b)
{
	const struct sum *left = a, *right = b;

	if (left->item != right->item)
		return left->item < right->item ? -1 : 1;
	return (left->at > right->at) - (left->at < right->at);
}

/* Say of every sum what it is of, and sort them by that; turned ones are
 * left out. */
static void
sort_sums(struct run *run)
{
	const struct weights_plan *plan = run->plan;
	const struct ranges_portion *portion;
	const struct weights_bit *bit;
	size_t i, kept = 0, portions = plan->ranges.portion_count;
	struct sum *sum;

	for (i = 0; i < run->sum_count; i++) {
		portion = i < portions ? &plan->ranges.portions[i] : NULL;
		bit = &plan->bits[portion != NULL ? portion->wish :
		    i - portions];
		/* A bit that was fetched has its portions. */
		if (bit->turned || (portion == NULL && bit->data == NULL &&
		    run->weights->backend != NULL))
			continue;
		sum = &run->sums[kept++];
		sum->checksum = run->sums[i].checksum;
		sum->item = bit->item;
		sum->at = bit->to + (portion != NULL ? portion->at : 0);
		sum->length = portion != NULL ? portion->length : bit->length;
	}
	run->sum_count = kept;
	qsort(run->sums, kept, sizeof(*run->sums), compare_sums);
}

/* Of what was gathered, from OUT itself. */
static int
read_checksum(struct run *run, size_t item, uint32_t *checksum,
    struct error *error)
{
	const struct weights_plan *plan = run->plan;
	const struct tensor *tensor = &plan->model->tensors[item];
	struct source_file file = {
		.fd = draft_fd(run->draft), .name = run->path
	};
	struct source source = source_from_file(&file, plan->size);
	uint64_t length, at;
	size_t step;

	length = tensor->bytes / tensor_type_width(tensor->type) *
	    tensor_type_width(plan->outline->types[item]);
	for (at = 0; at < length; at += step) {
		step = length - at < BLOCK ? (size_t)(length - at) : BLOCK;
		if (source_read(&source, plan->outline->places[item] + at,
		    run->block, step, error) == -1)
			return -1;
		*checksum = add_checksum(*checksum, run->block, step);
	}
	return 0;
}

static int
seal(struct run *run, struct error *error)
{
	struct weights_plan *plan = run->plan;
	bool *turned = calloc(plan->items + 1, sizeof(*turned));
	uint32_t *checksums = calloc(plan->items + 1, sizeof(*checksums));
	const struct sum *sum;
	int result = 0;
	size_t i;

	if (turned == NULL || checksums == NULL)
		result = out_of_memory(error);
	for (i = 0; result == 0 && i < plan->bit_count; i++)
		turned[plan->bits[i].item] = plan->bits[i].turned;
	if (result == 0)
		sort_sums(run);
	for (i = 0; result == 0 && i < run->sum_count; i++) {
		sum = &run->sums[i];
		checksums[sum->item] = (uint32_t)crc32_combine(
		    checksums[sum->item], sum->checksum, (off_t)sum->length);
	}
	for (i = 0; result == 0 && i < plan->items; i++)
		if (turned[i])
			result = read_checksum(run, i, &checksums[i], error);
	if (result == 0)
		result = model_outline_seal(plan->outline, checksums, error);
	free(turned);
	free(checksums);
	return result;
}

/* What is no tensor: header, pickle, zip records. */
static int
write_literals(struct run *run, struct error *error)
{
	const struct model_outline *outline = run->plan->outline;
	size_t i;

	if (outline->needs_checksums && seal(run, error) == -1)
		return -1;
	for (i = 0; i < outline->literal_count; i++) {
		assert(outline->literals[i].offset +
		    outline->literals[i].length <= outline->size);
		if (write_out(run, draft_fd(run->draft),
		    outline->literals[i].offset, outline->literals[i].data,
		    outline->literals[i].length, error) == -1)
			return -1;
	}
	return 0;
}

static void
begin_progress(const struct run *run)
{
	struct progress *progress = &run->weights->progress;
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < run->plan->bit_count; i++)
		total += run->plan->bits[i].length;
	progress->total = total;
	progress->done = 0;
	progress->started = clock_monotonic();
}

static void
clean_up(struct run *run)
{
	if (run->scratch >= 0)
		close(run->scratch);
	draft_free(run->draft);
	gather_free(run->gather);
	free(run->block);
	free(run->sources);
	free(run->slices);
	free(run->parts);
	free(run->left);
	free(run->shared);
	free(run->sums);
}

int
weights_run(struct weights *weights, struct weights_plan *plan,
    const char *path, bool replace, struct error *error)
{
	struct run run = {
		.weights = weights, .plan = plan, .path = path, .scratch = -1
	};
	int result = -1;

	begin_progress(&run);
	if (prepare(&run, error) == 0 &&
	    (run.draft = draft_new(path, error)) != NULL &&
	    check_room(&run, error) == 0 &&
	    draft_reserve(run.draft, plan->size, error) == 0)
		result = weights->backend != NULL ? fetch(&run, error) :
		    copy_local(&run, error);
	if (result == 0)
		result = write_literals(&run, error);
	if (result == 0 && weights->check != NULL)
		result = weights->check(weights->check_context, error);
	if (result == 0)
		result = draft_publish(run.draft, replace, error);
	clean_up(&run);
	return result;
}
