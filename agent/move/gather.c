#include "move/gather.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "format/convert.h"

/* Elements of one tile; a transposed matrix of 4 bytes each is turned in
 * squares of 724, so runs of 2.9 KiB are read and written. */
#define TILE ((size_t)2 << 20)

/* What one read brings at most. */
#define SPAN ((size_t)8 << 20)

/* Converting doubles a tile at most (16 bits to 32). */
#define CONVERTED (2 * TILE)

/* A read costs about as much as so many bytes more in a longer one. */
#define READ_COST UINT64_C(2048)

struct gather {
	uint8_t *span;
	uint8_t *tile;
	uint8_t *converted;
};

/* One dimension of a box; its steps are in elements. */
struct axis {
	uint64_t size;
	uint64_t from;		/* step in the file */
	uint64_t to;		/* step in the tensor */
	uint64_t dense;		/* step in the tile */
};

struct box {
	struct axis axes[TENSOR_DIMENSIONS_MAXIMUM];	/* the outermost first */
	unsigned count;
	uint64_t from;		/* bytes: where it begins in the file */
	uint64_t to;		/* elements: where in the tensor */
};

/* Where a copy comes from and goes to. */
struct job {
	struct gather *gather;
	const struct source *source;
	enum tensor_type type;
	enum tensor_type output;
	unsigned width;
	int fd;
	uint64_t place;
};

/* Indices of some axes, counted up. */
struct counter {
	const struct axis *axes[TENSOR_DIMENSIONS_MAXIMUM];
	uint64_t at[TENSOR_DIMENSIONS_MAXIMUM];
	unsigned count;
	uint64_t from, to, dense;	/* of the index, in elements */
};

struct gather *
gather_new(struct error *error)
{
	struct gather *gather = calloc(1, sizeof(*gather));

	_Static_assert(SPAN + TILE + CONVERTED == GATHER_MEMORY,
	    "what the header promises");
	if (gather != NULL) {
		gather->span = malloc(SPAN);
		gather->tile = malloc(TILE);
		gather->converted = malloc(CONVERTED);
	}
	if (gather == NULL || gather->span == NULL || gather->tile == NULL ||
	    gather->converted == NULL) {
		gather_free(gather);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	return gather;
}

/* To the next index; false behind the last. */
static bool
count_up(struct counter *counter)
{
	const struct axis *axis;
	unsigned i;

	for (i = counter->count; i-- > 0;) {
		axis = counter->axes[i];
		if (++counter->at[i] < axis->size) {
			counter->from += axis->from;
			counter->to += axis->to;
			counter->dense += axis->dense;
			return true;
		}
		counter->at[i] = 0;
		counter->from -= axis->from * (axis->size - 1);
		counter->to -= axis->to * (axis->size - 1);
		counter->dense -= axis->dense * (axis->size - 1);
	}
	return false;
}

static void
add_axis(struct counter *counter, const struct axis *axis)
{
	counter->axes[counter->count] = axis;
	counter->at[counter->count++] = 0;
}

/* The box of ${piece}, dimensions that go on in each other made one; false
 * when it is empty. */
static bool
make_box(const struct tensor *tensor, const struct tensor_piece *piece,
    struct box *box)
{
	struct axis *last;
	uint64_t to = 1;
	unsigned i, j;

	box->count = 0;
	box->from = piece->offset;
	box->to = 0;
	/* From the innermost out, then turned round. */
	for (i = tensor->dimensions; i-- > 0; to *= tensor->shape[i]) {
		if (piece->size[i] == 0)
			return false;
		box->to += piece->start[i] * to;
		if (piece->size[i] == 1)
			continue;
		last = &box->axes[box->count - (box->count > 0)];
		if (box->count > 0 &&
		    piece->stride[i] == last->from * last->size &&
		    to == last->to * last->size) {
			last->size *= piece->size[i];
			continue;
		}
		box->axes[box->count++] = (struct axis){
			.size = piece->size[i],
			.from = piece->stride[i],
			.to = to
		};
	}
	for (i = 0, j = box->count; i + 1 < j; i++) {
		struct axis other = box->axes[i];

		box->axes[i] = box->axes[--j];
		box->axes[j] = other;
	}
	return true;
}

uint64_t
gather_span(const struct tensor *tensor, const struct tensor_piece *piece)
{
	uint64_t last = 0;
	unsigned i;

	for (i = 0; i < tensor->dimensions; i++) {
		if (piece->size[i] == 0)
			return 0;
		last += (piece->size[i] - 1) * piece->stride[i];
	}
	return (last + 1) * tensor_type_width(tensor->type);
}

bool
gather_is_run(const struct tensor *tensor, const struct tensor_piece *piece,
    enum tensor_type type, uint64_t *place)
{
	struct box box;

	if (type != tensor->type || !make_box(tensor, piece, &box))
		return false;
	*place = box.to * tensor_type_width(type);
	return box.count == 0 || (box.count == 1 && box.axes[0].from == 1 &&
	    box.axes[0].to == 1);
}

static uint64_t
count_elements(const struct box *box)
{
	uint64_t count = 1;
	unsigned i;

	for (i = 0; i < box->count; i++)
		count *= box->axes[i].size;
	return count;
}

/* The axis along which the file is read: the shortest step that is one. */
static unsigned
find_inner(const struct box *box)
{
	unsigned i, inner = box->count - 1;

	for (i = 0; i < box->count; i++)
		if (box->axes[i].from != 0 && (box->axes[inner].from == 0 ||
		    box->axes[i].from < box->axes[inner].from))
			inner = i;
	return inner;
}

/*
 * Which axis to halve: what is neither read nor written along, then the
 * longer of these two, so that reads and writes stay long.
 */
static unsigned
choose_axis(const struct box *box)
{
	unsigned i, read = find_inner(box), write = box->count - 1;

	for (i = 0; i < box->count; i++)
		if (i != read && i != write && box->axes[i].size > 1)
			return i;
	return box->axes[read].size > box->axes[write].size ? read : write;
}

/*
 * Choose the axes whose elements one read brings together, as long as that is
 * cheaper than a read for each index: ${inner} gets them, ${outer} the others.
 * Return the bytes of one read.
 */
static uint64_t
choose_reads(const struct job *job, const struct box *box,
    struct counter *inner, struct counter *outer)
{
	bool taken[TENSOR_DIMENSIONS_MAXIMUM] = { false };
	uint64_t span = job->width, longer;
	const struct axis *axis;
	unsigned i, round, best;

	for (round = 0; round < box->count; round++) {
		best = box->count;
		for (i = 0; i < box->count; i++)
			if (!taken[i] && (best == box->count ||
			    box->axes[i].from < box->axes[best].from))
				best = i;
		axis = &box->axes[best];
		if (axis->from > SPAN / job->width / axis->size)
			break;
		longer = span + axis->from * (axis->size - 1) * job->width;
		if (longer > SPAN || READ_COST + longer >
		    axis->size * (READ_COST + span))
			break;
		taken[best] = true;
		span = longer;
		/* Counted slowest first: the shortest step goes last. */
		memmove(&inner->axes[1], &inner->axes[0],
		    inner->count * sizeof(inner->axes[0]));
		inner->axes[0] = axis;
		inner->at[inner->count++] = 0;
	}
	for (i = 0; i < box->count; i++)
		if (!taken[i])
			add_axis(outer, &box->axes[i]);
	return span;
}

/* ${count} elements of the width, with steps in elements. */
static void
pick(uint8_t *to, uint64_t to_step, const uint8_t *from, uint64_t from_step,
    uint64_t count, unsigned width)
{
	uint64_t i;

	if (to_step == 1 && from_step == 1) {
		memcpy(to, from, (size_t)(count * width));
		return;
	}
	to_step *= width;
	from_step *= width;
	switch (width) {
	case 1:
		for (i = 0; i < count; i++)
			to[i * to_step] = from[i * from_step];
		break;
	case 2:
		for (i = 0; i < count; i++)
			memcpy(to + i * to_step, from + i * from_step, 2);
		break;
	case 4:
		for (i = 0; i < count; i++)
			memcpy(to + i * to_step, from + i * from_step, 4);
		break;
	case 8:
		for (i = 0; i < count; i++)
			memcpy(to + i * to_step, from + i * from_step, 8);
		break;
	default:
		for (i = 0; i < count; i++)
			memcpy(to + i * to_step, from + i * from_step, width);
	}
}

/* Fill the tile with the box. */
static int
load_tile(const struct job *job, struct box *box, struct error *error)
{
	struct counter inner = { .count = 0 }, outer = { .count = 0 };
	static const struct axis point = { .size = 1 };
	const struct axis *row = &point;
	uint64_t span, dense = 1;
	uint8_t *tile;
	unsigned i;

	for (i = box->count; i-- > 0; dense *= box->axes[i].size)
		box->axes[i].dense = dense;
	span = choose_reads(job, box, &inner, &outer);
	if (inner.count > 0)
		row = inner.axes[--inner.count];
	do {
		if (source_read(job->source, box->from + outer.from *
		    job->width, job->gather->span, (size_t)span, error) == -1)
			return -1;
		do {
			tile = job->gather->tile +
			    (outer.dense + inner.dense) * job->width;
			pick(tile, row->dense, job->gather->span + inner.from *
			    job->width, row->from, row->size, job->width);
		} while (count_up(&inner));
	} while (count_up(&outer));
	return 0;
}

/* Write the tile to its place. */
static int
store_tile(const struct job *job, const struct box *box, struct error *error)
{
	unsigned width = tensor_type_width(job->output), i, rows;
	const uint8_t *data = job->gather->tile;
	struct counter counter = { .count = 0 };
	uint64_t run = 1;

	if (job->output != job->type) {
		convert_elements(job->type, job->output, data,
		    job->gather->converted, (size_t)count_elements(box));
		data = job->gather->converted;
	}
	for (rows = box->count; rows > 0 &&
	    box->axes[rows - 1].to == run; rows--)
		run *= box->axes[rows - 1].size;
	for (i = 0; i < rows; i++)
		add_axis(&counter, &box->axes[i]);
	do {
		if (path_write_all_at(job->fd, data + counter.dense * width,
		    (size_t)(run * width), (off_t)(job->place +
		    (box->to + counter.to) * width)) == -1)
			return error_set_errno(error, errno, NULL,
			    "cannot write a tensor");
	} while (count_up(&counter));
	return 0;
}

static int
copy_box(const struct job *job, const struct box *box, struct error *error)
{
	struct box half = *box;
	struct axis *axis;
	uint64_t size;

	if (count_elements(box) * job->width <= TILE)
		return load_tile(job, &half, error) == -1 ? -1 :
		    store_tile(job, &half, error);
	axis = &half.axes[choose_axis(box)];
	size = axis->size;
	axis->size = size / 2;
	if (copy_box(job, &half, error) == -1)
		return -1;
	half.from += axis->size * axis->from * job->width;
	half.to += axis->size * axis->to;
	axis->size = size - size / 2;
	return copy_box(job, &half, error);
}

int
gather_tensor(struct gather *gather, const struct source *const *sources,
    const struct tensor *tensor, enum tensor_type type, int fd,
    uint64_t place, struct error *error)
{
	struct job job = {
		.gather = gather,
		.type = tensor->type,
		.output = type,
		.width = tensor_type_width(tensor->type),
		.fd = fd,
		.place = place
	};
	struct box box;
	size_t i;

	assert(tensor->dimensions <= TENSOR_DIMENSIONS_MAXIMUM);
	assert(type == tensor->type || convert_possible(tensor->type, type));
	for (i = 0; i < tensor->piece_count; i++) {
		if (!make_box(tensor, &tensor->pieces[i], &box))
			continue;
		job.source = sources[tensor->pieces[i].file];
		if (copy_box(&job, &box, error) == -1)
			return -1;
	}
	return 0;
}

void
gather_free(struct gather *gather)
{
	if (gather == NULL)
		return;
	free(gather->span);
	free(gather->tile);
	free(gather->converted);
	free(gather);
}
