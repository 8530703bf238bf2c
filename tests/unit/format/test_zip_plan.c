#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/source.h"
#include "format/model.h"
#include "format/zip.h"
#include "format/zip_directory.h"
#include "format/zip_plan.h"
#include "kit/kit.h"
#include "pickler.h"
#include "zipper.h"

#define RUNS_MAXIMUM 100000
#define FIVE_GIB (UINT64_C(5) << 30)

/* What was emitted; between the runs lie zeros. */
struct written {
	uint64_t size;
	struct {
		uint64_t offset;
		size_t length;
		char *data;
	} *runs;
	size_t count;
};

static int
keep(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	struct written *written = context;

	(void)error;
	assert_true(written->count < RUNS_MAXIMUM);
	if (written->count > 0)
		assert_true(offset >=
		    written->runs[written->count - 1].offset +
		    written->runs[written->count - 1].length);
	assert_true(offset + length <= written->size);
	written->runs[written->count].offset = offset;
	written->runs[written->count].length = length;
	written->runs[written->count++].data = data;
	return 0;
}

static int
read_written(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	struct written *written = context;
	size_t low = 0, high = written->count;

	(void)error;
	memset(data, 0, length);
	/* The first run that ends behind the offset. */
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (written->runs[middle].offset +
		    written->runs[middle].length <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < written->count &&
	    written->runs[low].offset < offset + length; low++) {
		uint64_t start = written->runs[low].offset;
		uint64_t from = start > offset ? start : offset;
		uint64_t end = start + written->runs[low].length;

		if (end > offset + length)
			end = offset + length;
		memcpy((char *)data + (from - offset),
		    written->runs[low].data + (from - start),
		    (size_t)(end - from));
	}
	return 0;
}

static struct source
seal(const struct zip_plan *plan, const uint32_t *checksums,
    struct written *written)
{
	struct error error = ERROR_INIT;

	written->size = zip_plan_size(plan);
	written->count = 0;
	written->runs = calloc(RUNS_MAXIMUM, sizeof(*written->runs));
	assert_ok(zip_plan_seal(plan, checksums, keep, written, &error),
	    error);
	return (struct source){ .size = written->size,
		.read_at = read_written, .context = written,
		.name = "written" };
}

static void
forget(struct written *written)
{
	for (size_t i = 0; i < written->count; i++)
		free(written->runs[i].data);
	free(written->runs);
}

static void
add_planned(struct zip_plan *plan, const char *name, const char *data,
    uint64_t length, uint64_t *place)
{
	struct error error = ERROR_INIT;

	assert_ok(zip_plan_add(plan, name, strlen(name), data, length, place,
	    &error), error);
	assert_int_equal(*place % 64, 0);
}

/* Our own reader and libarchive find each record where it was planned. */
static void
check(const struct source *source, const char *const *names,
    const uint64_t *places, const uint64_t *lengths, size_t count)
{
	struct zip_directory directory;
	struct zip zip;
	struct error error = ERROR_INIT;

	assert_ok(zip_directory_read(source, &directory, &error), error);
	assert_int_equal(directory.count, count);
	for (size_t i = 0; i < count; i++) {
		const struct zip_record *record = zip_directory_find(
		    &directory, names[i], strlen(names[i]));
		uint64_t place;

		assert_non_null(record);
		assert_true(record->stored);
		assert_int_equal(record->length, lengths[i]);
		assert_ok(zip_directory_place(&directory, record, &place,
		    &error), error);
		assert_int_equal(place, places[i]);
	}
	zip_directory_free(&directory);
	assert_ok(zip_list(source, &zip, &error), error);
	assert_int_equal(zip.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(zip.members[i].name, names[i]);
		assert_true(zip.members[i].stored);
		assert_int_equal(zip.members[i].length, lengths[i]);
		if (lengths[i] > 0)
			assert_int_equal(zip.members[i].offset, places[i]);
	}
	zip_free(&zip);
}

/* A record over 4 GiB, and some behind it. */
static void
test_large_records(void **state)
{
	static const char *const names[] = { "a/data.pkl", "a/data/0",
		"a/data/1", "a/data/2", "a/data/3", "a/version" };
	static const uint64_t lengths[] = { 5, FIVE_GIB, 100, 0,
		UINT32_MAX, 2 };
	const uint32_t checksums[] = { 1, 2, 0, 4 };
	struct zip_plan *plan = zip_plan_new();
	struct written written;
	struct source source;
	uint64_t places[6];

	(void)state;
	for (size_t i = 0; i < 6; i++)
		add_planned(plan, names[i], i == 0 ? "five!" : i == 5 ?
		    "3\n" : NULL, lengths[i], &places[i]);
	source = seal(plan, checksums, &written);
	assert_true(places[2] > FIVE_GIB);
	check(&source, names, places, lengths, 6);
	forget(&written);
	zip_plan_free(plan);
}

static void
test_too_large(void **state)
{
	struct zip_plan *plan = zip_plan_new();
	struct error error = ERROR_INIT;
	uint64_t place;

	(void)state;
	add_planned(plan, "a/data/0", NULL, INT64_MAX - 64, &place);
	assert_int_equal(zip_plan_add(plan, "a/data/1", 8, NULL, 1, &place,
	    &error), -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	zip_plan_free(plan);
}

/* More records than an end record can say. */
static void
test_many_records(void **state)
{
	enum { COUNT = 70000 };
	struct zip_plan *plan = zip_plan_new();
	uint32_t *checksums = calloc(COUNT, sizeof(*checksums));
	struct zip_directory directory;
	struct written written;
	struct source source;
	struct error error = ERROR_INIT;
	uint64_t place;
	char name[32];

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		sprintf(name, "archive/data/%d", i);
		add_planned(plan, name, NULL, 1, &place);
	}
	source = seal(plan, checksums, &written);
	assert_ok(zip_directory_read(&source, &directory, &error), error);
	assert_int_equal(directory.count, COUNT);
	zip_directory_free(&directory);
	forget(&written);
	free(checksums);
	zip_plan_free(plan);
}

/* libarchive checks the checksums when it reads the contents. */
static void
test_checksums(void **state)
{
	struct zip_plan *plan = zip_plan_new();
	uint32_t checksum = (uint32_t)crc32_z(0, (const uint8_t *)"mine", 4);
	struct written written;
	struct archive *archive = archive_read_new();
	struct archive_entry *entry;
	uint64_t place;
	char *file, content[8];

	(void)state;
	add_planned(plan, "a/data.pkl", "ours", 4, &place);
	add_planned(plan, "a/data/0", NULL, 4, &place);
	seal(plan, &checksum, &written);
	file = calloc(1, (size_t)written.size);
	for (size_t i = 0; i < written.count; i++)
		memcpy(file + written.runs[i].offset, written.runs[i].data,
		    written.runs[i].length);
	memcpy(file + place, "mine", 4);
	archive_read_support_format_zip_seekable(archive);
	assert_int_equal(archive_read_open_memory(archive, file,
	    (size_t)written.size), ARCHIVE_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(archive_read_next_header(archive, &entry),
		    ARCHIVE_OK);
		assert_int_equal(archive_read_data(archive, content,
		    sizeof(content)), 4);
		assert_memory_equal(content, i == 0 ? "ours" : "mine", 4);
	}
	assert_int_equal(archive_read_next_header(archive, &entry),
	    ARCHIVE_EOF);
	archive_read_free(archive);
	free(file);
	forget(&written);
	zip_plan_free(plan);
}

/* A file of torch with a storage of 5 GiB, and one behind it. */
static void
test_torch_over_4_gib(void **state)
{
	struct zipper *zipper = new_zipper();
	struct holed holed = { .zipper = zipper };
	struct source source = { .read_at = read_holed, .context = &holed,
		.name = "large" };
	struct model_file file = { "large.pt", &source };
	struct model_options options = { .key = NULL };
	struct pickler pickler = { .length = 0 };
	struct model model;
	struct error error = ERROR_INIT;
	uint64_t places[2], place;
	int64_t large = FIVE_GIB / 4;

	(void)state;
	pickler_put(&pickler, "\x80\2}(");
	pickler_text(&pickler, "large.weight");
	pickler_tensor(&pickler, "0", large);
	pickler_text(&pickler, "small.weight");
	pickler_tensor(&pickler, "1", 4);
	pickler_put(&pickler, "u.");
	add(zipper, (struct member){ .name = "x/data.pkl",
	    .data = pickler.bytes, .length = pickler.length, .extra = 24 });
	places[0] = offset_of(zipper) + 30 + 8 + 40;
	add(zipper, (struct member){ .name = "x/data/0", .length = FIVE_GIB,
	    .extra = 40, .wide = true });
	places[1] = offset_of(zipper) + 30 + 8 + 40;
	add(zipper, (struct member){ .name = "x/data/1", .length = 16,
	    .data = "sixteen bytes...", .extra = 40, .wide = true });
	finish(zipper, true);
	source.size = offset_of(zipper);
	assert_ok(model_read(&file, 1, &options, &model, &error), error);
	assert_int_equal(model.count, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(tensor_is_run(&model.tensors[i], &place));
		assert_int_equal(place, places[i]);
	}
	assert_int_equal(model.tensors[0].bytes, FIVE_GIB);
	/* Nothing but the structure is read. */
	assert_true(holed.read < 32768);
	model_free(&model);
	free(zipper);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large_records),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_many_records),
		cmocka_unit_test(test_checksums),
		cmocka_unit_test(test_torch_over_4_gib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
