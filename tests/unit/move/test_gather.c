#include "move/gather.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "format/convert.h"
#include "kit/kit.h"

#define DIMENSIONS 5

/* A tensor of one piece, and the file that it lies in. */
struct sample {
	struct tensor tensor;
	struct tensor_piece piece;
	uint64_t shape[DIMENSIONS];
	uint64_t start[DIMENSIONS];
	uint64_t size[DIMENSIONS];
	uint64_t stride[DIMENSIONS];
	uint8_t *file;
	size_t length;
	struct source_memory memory;
	struct source source;
};

static uint64_t seed = 1;

static uint64_t
some(uint64_t below)
{
	uint64_t number;

	kit_random(&number, sizeof(number), seed++);
	return number % below;
}

static void
fill(struct sample *sample, enum tensor_type type, unsigned dimensions)
{
	unsigned i, width = tensor_type_width(type);
	uint64_t span = 1;

	sample->tensor = (struct tensor){
		.name = (char *)"x", .type = type, .dimensions = dimensions,
		.shape = sample->shape, .pieces = &sample->piece,
		.piece_count = 1, .bytes = width
	};
	sample->piece = (struct tensor_piece){
		.offset = some(100), .start = sample->start,
		.size = sample->size, .stride = sample->stride
	};
	for (i = 0; i < dimensions; i++) {
		sample->tensor.bytes *= sample->shape[i];
		if (sample->size[i] > 0)
			span += (sample->size[i] - 1) * sample->stride[i];
	}
	sample->length = (size_t)(sample->piece.offset + span * width);
	sample->file = malloc(sample->length);
	assert_non_null(sample->file);
	kit_random(sample->file, sample->length, seed++);
	sample->memory = (struct source_memory){
		sample->file, sample->length
	};
	sample->source = source_from_memory(&sample->memory);
}

/* The tensor, element for element, into ${out}. */
static void
expect(const struct sample *sample, enum tensor_type type, uint8_t *out)
{
	unsigned dimensions = sample->tensor.dimensions, i;
	unsigned width = tensor_type_width(sample->tensor.type);
	uint64_t at[DIMENSIONS] = { 0 }, from, to;

	do {
		from = to = 0;
		for (i = 0; i < dimensions; i++) {
			from += at[i] * sample->stride[i];
			to = to * sample->shape[i] + sample->start[i] + at[i];
		}
		if (type == sample->tensor.type)
			memcpy(out + to * width, sample->file +
			    sample->piece.offset + from * width, width);
		else
			convert_elements(sample->tensor.type, type,
			    sample->file + sample->piece.offset + from *
			    width, out + to * tensor_type_width(type), 1);
		for (i = dimensions; i > 0; i--) {
			if (++at[i - 1] < sample->size[i - 1])
				break;
			at[i - 1] = 0;
		}
	} while (i > 0);
}

static void
check(const struct sample *sample, enum tensor_type type)
{
	const struct source *source = &sample->source;
	size_t length = (size_t)(sample->tensor.bytes /
	    tensor_type_width(sample->tensor.type) * tensor_type_width(type));
	uint8_t *wanted = calloc(1, length + 1), *got = calloc(1, length + 1);
	struct error error = ERROR_INIT;
	struct gather *gather = gather_new(&error);
	char *folder = kit_scratch(), path[4096];
	int fd;

	assert_non_null(gather);
	assert_true(wanted != NULL && got != NULL);
	snprintf(path, sizeof(path), "%s/out", folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)length + 7), 0);
	assert_ok(gather_tensor(gather, &source, &sample->tensor, type, fd, 7,
	    &error), error);
	assert_int_equal(pread(fd, got, length, 7), length);
	expect(sample, type, wanted);
	assert_memory_equal(got, wanted, length);
	close(fd);
	gather_free(gather);
	kit_scratch_remove(folder);
	free(folder);
	free(wanted);
	free(got);
}

/* Any order of dimensions, steps, offsets, parts. */
static void
test_random_boxes(void **state)
{
	static const enum tensor_type types[] = { TENSOR_U8, TENSOR_F16,
		TENSOR_F32, TENSOR_F64, TENSOR_C128 };
	struct sample sample;
	unsigned round, i, j, dimensions;
	uint64_t step, order[DIMENSIONS], swap;

	(void)state;
	for (round = 0; round < 300; round++) {
		memset(&sample, 0, sizeof(sample));
		dimensions = (unsigned)some(DIMENSIONS + 1);
		for (i = 0; i < dimensions; i++) {
			order[i] = i;
			sample.size[i] = 1 + some(round % 3 == 0 ? 4 : 14);
			sample.start[i] = some(3);
			sample.shape[i] = sample.start[i] + sample.size[i] +
			    some(3);
		}
		for (i = 0; i + 1 < dimensions; i++) {
			j = i + (unsigned)some(dimensions - i);
			swap = order[i];
			order[i] = order[j];
			order[j] = swap;
		}
		for (i = 0, step = 1 + some(3); i < dimensions; i++) {
			sample.stride[order[i]] = some(8) == 0 ? 0 : step;
			step *= sample.size[order[i]];
			step += some(4);
		}
		fill(&sample, types[round % 5], dimensions);
		check(&sample, sample.tensor.type);
		if (sample.tensor.type == TENSOR_F32)
			check(&sample, TENSOR_BF16);
		if (sample.tensor.type == TENSOR_F16)
			check(&sample, TENSOR_F32);
		free(sample.file);
	}
}

/* More than one tile, read and written across. */
static void
test_large_transposed(void **state)
{
	static const uint64_t shapes[][3] = {
		{ 1, 1500, 1300 }, { 7, 700, 500 }, { 3000, 2, 300 },
		{ 100000, 3, 5 }
	};
	struct sample sample;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		memset(&sample, 0, sizeof(sample));
		memcpy(sample.shape, shapes[i], sizeof(shapes[i]));
		memcpy(sample.size, shapes[i], sizeof(shapes[i]));
		/* The last dimension moves slowest in the file. */
		sample.stride[0] = 1;
		sample.stride[1] = shapes[i][0];
		sample.stride[2] = shapes[i][0] * shapes[i][1];
		fill(&sample, TENSOR_F32, 3);
		check(&sample, TENSOR_F32);
		check(&sample, TENSOR_F16);
		free(sample.file);
	}
}

/* Steps that are wider than any block that is read. */
static void
test_wide_steps(void **state)
{
	struct sample sample;

	(void)state;
	memset(&sample, 0, sizeof(sample));
	sample.shape[0] = sample.size[0] = 4;
	sample.shape[1] = sample.size[1] = 3;
	sample.stride[0] = 3 << 20;
	sample.stride[1] = 5;
	fill(&sample, TENSOR_F64, 2);
	check(&sample, TENSOR_F64);
	assert_int_equal(gather_span(&sample.tensor, &sample.piece),
	    (3 * (3 << 20) + 2 * 5 + 1) * 8);
	free(sample.file);
}

static void
test_what_is_a_run(void **state)
{
	struct sample sample;
	uint64_t place;

	(void)state;
	memset(&sample, 0, sizeof(sample));
	sample.shape[0] = 10;
	sample.shape[1] = sample.size[1] = 4;
	sample.shape[2] = sample.size[2] = 1;
	sample.start[0] = 3;
	sample.size[0] = 5;
	sample.stride[0] = 4;
	sample.stride[1] = 1;
	sample.stride[2] = 999;
	fill(&sample, TENSOR_F32, 3);
	assert_true(gather_is_run(&sample.tensor, &sample.piece, TENSOR_F32,
	    &place));
	assert_int_equal(place, 3 * 4 * 4);
	assert_false(gather_is_run(&sample.tensor, &sample.piece, TENSOR_BF16,
	    &place));
	sample.size[1] = 3;
	assert_false(gather_is_run(&sample.tensor, &sample.piece, TENSOR_F32,
	    &place));
	/* One row of it is a run again. */
	sample.size[0] = 1;
	assert_true(gather_is_run(&sample.tensor, &sample.piece, TENSOR_F32,
	    &place));
	sample.stride[1] = 2;
	assert_false(gather_is_run(&sample.tensor, &sample.piece, TENSOR_F32,
	    &place));
	sample.size[1] = 0;
	assert_int_equal(gather_span(&sample.tensor, &sample.piece), 0);
	free(sample.file);
}

/* A source that fails says so. */
static int
refuse(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	(void)context;
	(void)offset;
	(void)data;
	(void)length;
	return error_set(error, ERROR_FAILED, CAUSE_CHANGED, "file",
	    "became shorter");
}

static void
test_failing_source(void **state)
{
	struct error error = ERROR_INIT;
	struct gather *gather = gather_new(&error);
	const struct source *source;
	struct sample sample;

	(void)state;
	memset(&sample, 0, sizeof(sample));
	sample.shape[0] = sample.size[0] = 10;
	sample.stride[0] = 2;
	fill(&sample, TENSOR_F32, 1);
	sample.source.read_at = refuse;
	source = &sample.source;
	assert_int_equal(gather_tensor(gather, &source, &sample.tensor,
	    TENSOR_F32, -1, 0, &error), -1);
	assert_int_equal(error.cause, CAUSE_CHANGED);
	gather_free(gather);
	free(sample.file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_boxes),
		cmocka_unit_test(test_large_transposed),
		cmocka_unit_test(test_wide_steps),
		cmocka_unit_test(test_what_is_a_run),
		cmocka_unit_test(test_failing_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
