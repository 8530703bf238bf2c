#include "unit/format/zipper.h"

#include <stdbool.h>

#include "format/shard.h"

/* Zips behind each other in memory. */
struct file {
	char bytes[400000];
	size_t length;
};

static char content[20000];

static void
add_blob(struct file *file, size_t length, bool wide)
{
	struct zipper *zipper = new_zipper();

	assert_non_null(zipper);
	add(zipper, (struct member){ .name = "archive/data.pkl",
	    .data = "\x80\2N.", .length = 4, .extra = 18 });
	add(zipper, (struct member){ .name = "archive/data/0",
	    .data = content, .length = length, .extra = 30 });
	add(zipper, (struct member){ .name = "archive/version",
	    .data = "3\n", .length = 2, .extra = 20 });
	finish(zipper, wide);
	assert_true(file->length + zipper->length <= sizeof(file->bytes));
	memcpy(file->bytes + file->length, zipper->bytes, zipper->length);
	file->length += zipper->length;
	free(zipper);
}

static struct format_report
inspect(const struct file *file)
{
	struct source_memory memory = { file->bytes, file->length };
	struct source source = source_from_memory(&memory);
	struct format_report report;
	struct error error = ERROR_INIT;

	assert_ok(format_inspect(&source, "a/__0_0.distcp", &report, &error),
	    error);
	assert_int_equal(report.kind, FORMAT_UNKNOWN);
	assert_int_equal(report.verdict, FORMAT_UNPROVEN);
	return report;
}

static size_t
count_records(const struct file *file)
{
	struct format_report report = inspect(file);
	size_t i, count = report.record_count;
	uint64_t at = 0;

	for (i = 0; i < count; i++) {
		assert_true(report.records[i].offset >= at);
		at = report.records[i].offset + report.records[i].length;
	}
	assert_true(at <= file->length);
	format_report_free(&report);
	return count;
}

static struct file *
make_file(void)
{
	struct file *file = calloc(1, sizeof(*file));

	assert_non_null(file);
	kit_random(content, sizeof(content), 1);
	add_blob(file, 20000, true);
	add_blob(file, 100, false);
	add_blob(file, 5000, false);
	add_blob(file, 19999, true);
	return file;
}

static void
test_storages(void **state)
{
	static const size_t lengths[] = { 20000, 5000, 19999 };
	struct file *file = make_file();
	struct format_report report = inspect(file);
	size_t i;

	(void)state;
	assert_int_equal(report.record_count, 3);
	for (i = 0; i < 3; i++) {
		assert_string_equal(report.records[i].name, "archive/data/0");
		assert_int_equal(report.records[i].length, lengths[i]);
		assert_memory_equal(file->bytes + report.records[i].offset,
		    content, lengths[i]);
	}
	assert_non_null(strstr(report.reason, "distributed checkpoint"));
	format_report_free(&report);
	free(file);
}

/* Something else in front, between or behind: cut as an unknown file. */
static void
test_something_else(void **state)
{
	struct file *file = make_file();
	size_t length = file->length;

	(void)state;
	file->length -= 1;
	assert_int_equal(count_records(file), 0);
	file->length = length;
	memcpy(file->bytes + file->length, "more", 4);
	file->length += 4;
	assert_int_equal(count_records(file), 0);
	add_blob(file, 6000, false);
	assert_int_equal(count_records(file), 0);
	file->length = length;
	memmove(file->bytes + 7, file->bytes, length);
	memcpy(file->bytes, "PK\3\4...", 7);
	file->length += 7;
	assert_int_equal(count_records(file), 0);
	free(file);
}

/* Every byte of it another, every cut: never more than the file has. */
static void
test_hostile(void **state)
{
	struct file *file = make_file();
	size_t i, length = file->length;

	(void)state;
	for (i = 0; i < length; i += i < 300 || i > length - 600 ? 1 : 37) {
		file->bytes[i] = (char)(file->bytes[i] ^ 0xff);
		(void)count_records(file);
		file->bytes[i] = (char)(file->bytes[i] ^ 0xff);
	}
	for (i = 4; i < length; i += 101) {
		file->length = i;
		assert_true(count_records(file) <= 3);
	}
	free(file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storages),
		cmocka_unit_test(test_something_else),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
