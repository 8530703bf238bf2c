#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "zipper.h"

static void
test_end_records(void **state)
{
	struct zipper *zipper = new_zipper();

	(void)state;
	add_text(zipper, "a/b", "x");
	expect(zipper, FORMAT_TORN, "no zip end record");

	/* Promises more than it has. */
	zipper = new_zipper();
	add_text(zipper, "a/b", "x");
	zipper->count = 65535;
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "promises 65535 members");

	zipper = new_zipper();
	add_text(zipper, "a/b", "x");
	zipper->count = UINT64_MAX;
	finish(zipper, true);
	expect(zipper, FORMAT_TORN, "promises 18446744073709551615 members");

	/* Promises less. */
	zipper = new_zipper();
	add_text(zipper, "a/b", "x");
	add_text(zipper, "a/c", "x");
	zipper->count = 1;
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "more members than the 1");

	/* A directory that ends behind the end. */
	zipper = new_zipper();
	add_text(zipper, "a/b", "x");
	add_end(zipper, 1, 4000000000, 4000000000);
	expect(zipper, FORMAT_TORN, "past its end records");

	zipper = new_zipper();
	add_text(zipper, "a/b", "x");
	add_end64(zipper, 1, UINT64_MAX, UINT64_MAX, zipper->length);
	add_end(zipper, 1, 0, 0);
	expect(zipper, FORMAT_TORN, "past its end records");

	zipper = new_zipper();
	add_text(zipper, "a/b", "x");
	add_end64(zipper, 1, 46, 0, UINT64_MAX - 3);
	add_end(zipper, 1, 0, 0);
	expect(zipper, FORMAT_TORN, "zip64 end record is not there");

	zipper = new_zipper();
	add_text(zipper, "a/b", "x");
	add_end64(zipper, 1, 46, 0, 1);
	add_end(zipper, 1, 0, 0);
	expect(zipper, FORMAT_TORN, "zip64 end record is damaged");
}

static void
test_around_the_zip(void **state)
{
	struct zipper *zipper = new_zipper();

	(void)state;
	/* Behind other bytes: what torch.save twice into one file gives. */
	add_text(zipper, "a/first", "x");
	finish(zipper, false);
	zipper->count = zipper->directory_length = 0;
	zipper->hole -= zipper->length;
	add_text(zipper, "a/second", "x");
	finish(zipper, false);
	expect(zipper, FORMAT_UNPROVEN, "behind 133 other bytes");

	/* With a comment. */
	zipper = new_zipper();
	add_text(zipper, "a/b", "x");
	finish(zipper, false);
	zipper->bytes[zipper->length - 2] = 7;
	put_bytes(zipper->bytes, &zipper->length, "comment", 7);
	expect_named(zipper, "x.zip", FORMAT_WHOLE, "zip (1)");

	/* A shard of many zips: only .metadata tells. */
	zipper = new_zipper();
	add_text(zipper, "a/b", "x");
	expect_named(zipper, "__0_0.distcp", FORMAT_UNPROVEN,
	    "no structure that is known");
}

static void
test_hostile_members(void **state)
{
	struct zipper *zipper = new_zipper();

	(void)state;
	/* One lies over the next. */
	add(zipper, (struct member){ .name = "a/data.pkl", .data =
	    "\x80\2N.", .length = 4 });
	add_directory(zipper, &(struct member){ .name = "a/b",
	    .length = 60 }, 3, zipper->length);
	add_local(zipper, &(struct member){ .name = "a/b", .length = 4,
	    .data = "1234" }, 3);
	add_text(zipper, "a/c", "more than sixty bytes from the start of b");
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "no header of its own");

	/* Longer than the file. */
	zipper = new_zipper();
	add_directory(zipper, &(struct member){ .name = "a/b",
	    .length = 5000, }, 3, 0);
	add_local(zipper, &(struct member){ .name = "a/b", .length = 4,
	    .data = "1234" }, 3);
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "before the central directory");

	zipper = new_zipper();
	add_directory(zipper, &(struct member){ .name = "a/b",
	    .length = UINT64_MAX / 2, .wide = true }, 3, 0);
	add_local(zipper, &(struct member){ .name = "a/b", .length = 4,
	    .data = "1234" }, 3);
	finish(zipper, true);
	expect(zipper, FORMAT_TORN, "");

	/* Where there is no header. */
	zipper = new_zipper();
	add(zipper, (struct member){ .name = "a/b", .data = "x", .length = 1,
	    .shift = 1 });
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "Damaged Zip archive");

	zipper = new_zipper();
	add(zipper, (struct member){ .name = "a/b", .data = "x", .length = 1,
	    .shift = 3000000000 });
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "");

	/* Twice the same place. */
	zipper = new_zipper();
	add_text(zipper, "a/b", "x");
	add_directory(zipper, &(struct member){ .name = "a/b",
	    .length = 1 }, 3, 0);
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "has 1 members and promises 2");
}

/* Names are kept as they are, whatever the locale and the bytes. */
static void
test_foreign_names(void **state)
{
	struct zipper *zipper = new_zipper();
	struct holed holed = { .zipper = zipper };
	struct source source = { .read_at = read_holed, .context = &holed,
		.name = "names" };
	struct format_report report;
	struct error error = ERROR_INIT;

	(void)state;
	add_text(zipper, "a/gr\xc3\xb6\xc3\x9f" "e", "x");
	add_text(zipper, "a/\xff\xfe", "y");
	finish(zipper, false);
	source.size = offset_of(zipper);
	assert_ok(format_inspect(&source, "a.npz", &report, &error), error);
	assert_int_equal(report.verdict, FORMAT_WHOLE);
	assert_int_equal(report.record_count, 2);
	assert_string_equal(report.records[0].name,
	    "a/gr\xc3\xb6\xc3\x9f" "e");
	assert_string_equal(report.records[1].name, "a/\xff\xfe");
	format_report_free(&report);
	free(zipper);
}

static void
test_hostile_names(void **state)
{
	struct zipper *zipper = new_zipper();
	char *name = malloc(6000);

	(void)state;
	add(zipper, (struct member){ .name = "a/b\0c", .name_length = 5,
	    .data = "x", .length = 1 });
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "holds a NUL");

	zipper = new_zipper();
	add_text(zipper, "a/b", "x");
	add_text(zipper, "a/b", "y");
	add(zipper, *pickle("FloatStorage", "0", 3));
	finish(zipper, false);
	expect(zipper, FORMAT_UNPROVEN, "two members of the zip are named");

	memset(name, 'n', 5999);
	name[5999] = '\0';
	zipper = new_zipper();
	add_text(zipper, name, "x");
	finish(zipper, false);
	expect_named(zipper, "x.npz", FORMAT_UNPROVEN, "longer than 4096");

	zipper = new_zipper();
	add(zipper, *pickle("FloatStorage", name, 3));
	finish(zipper, false);
	expect(zipper, FORMAT_WHOLE, "not checked");
	free(name);
}

/* Over 4 GiB: sizes and offsets from the zip64 fields. */
static void
test_zip64(void **state)
{
	struct zipper *zipper = new_zipper();
	struct holed holed = { .zipper = zipper };
	struct source source = { .read_at = read_holed, .context = &holed,
		.name = "large" };
	const uint64_t large = UINT64_C(5) << 30;
	struct format_report report;
	struct error error = ERROR_INIT;

	(void)state;
	add(zipper, *pickle("LongStorage", "0", (uint32_t)(large / 8)));
	add(zipper, (struct member){ .name = "a/data/0", .length = large,
	    .extra = 33, .wide = true });
	add(zipper, (struct member){ .name = "a/data/1", .data = "tail",
	    .length = 4, .extra = 7, .wide = true });
	finish(zipper, true);
	source.size = offset_of(zipper);
	assert_ok(format_inspect(&source, "a.pt", &report, &error), error);
	assert_string_equal(report.reason, "all members of the zip (3) and "
	    "all storages that data.pkl names are there");
	assert_int_equal(report.record_count, 3);
	assert_int_equal(report.records[1].length, large);
	assert_int_equal(report.records[1].offset, zipper->holes[0].from);
	assert_string_equal(report.records[2].name, "a/data/1");
	assert_true(report.records[2].offset > large);
	assert_memory_equal(zipper->bytes + (report.records[2].offset - large),
	    "tail", 4);
	assert_true(holed.read < 400000);
	format_report_free(&report);
	free(zipper);
}

/* The same on disk, through a descriptor. */
static void
test_zip64_on_disk(void **state)
{
	char *folder = kit_scratch(), path[512];
	struct zipper *zipper = new_zipper();
	struct source_file opened = { .name = "large.ckpt" };
	struct format_report report;
	struct error error = ERROR_INIT;
	struct source source;
	size_t from, rest;

	(void)state;
	add(zipper, *pickle("ByteStorage", "0", 1));
	add(zipper, (struct member){ .name = "a/data/0",
	    .length = UINT64_C(9) << 30, .wide = true });
	finish(zipper, true);
	from = zipper->holes[0].from;
	rest = zipper->length - from;
	snprintf(path, sizeof(path), "%s/large.ckpt", folder);
	opened.fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(opened.fd >= 0);
	assert_int_equal(pwrite(opened.fd, zipper->bytes, from, 0), from);
	assert_int_equal(pwrite(opened.fd, zipper->bytes + from, rest,
	    (off_t)(from + zipper->hole)), rest);
	source = source_from_file(&opened, offset_of(zipper));
	/* Where holes are known, nine unwritten GiB are no proof. */
	assert_ok(format_inspect(&source, path, &report, &error), error);
	assert_int_not_equal(report.verdict, FORMAT_TORN);
	format_report_free(&report);
	source.find_hole = NULL;
	assert_ok(format_inspect(&source, path, &report, &error), error);
	assert_int_equal(report.verdict, FORMAT_WHOLE);
	assert_int_equal(report.records[1].length, UINT64_C(9) << 30);
	format_report_free(&report);
	source.size--;
	assert_ok(format_inspect(&source, path, &report, &error), error);
	assert_int_equal(report.verdict, FORMAT_TORN);
	format_report_free(&report);
	close(opened.fd);
	free(zipper);
	kit_scratch_remove(folder);
	free(folder);
}

/* Headers that lie in each other's extra fields make no reader read for ever. */
static void
test_bounded_reading(void **state)
{
	struct zipper *zipper = new_zipper();
	struct holed holed = { .zipper = zipper };
	struct source source = { .read_at = read_holed, .context = &holed,
		.name = "hostile" };
	struct format_report report;
	struct error error = ERROR_INIT;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		add_directory(zipper, &(struct member){ .name = "a/b" }, 3,
		    zipper->length);
		/* An extra field that the next headers lie in. */
		add_local(zipper, &(struct member){ .name = "a/b" }, 3);
		memcpy(zipper->bytes + zipper->length - 3 - 2, "\xff\xff", 2);
		put_bytes(zipper->bytes, &zipper->length, "FB\xfb\xff", 4);
	}
	memset(zipper->bytes + zipper->length, 0, 70000);
	zipper->length += 70000;
	finish(zipper, false);
	source.size = zipper->length;
	assert_ok(format_inspect(&source, "a.pt", &report, &error), error);
	assert_int_equal(report.verdict, FORMAT_TORN);
	assert_string_equal(report.reason, "its parts lie over each other");
	assert_true(holed.read < 3 * source.size + (8 << 20));
	format_report_free(&report);
	free(zipper);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end_records),
		cmocka_unit_test(test_around_the_zip),
		cmocka_unit_test(test_hostile_members),
		cmocka_unit_test(test_foreign_names),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_zip64),
		cmocka_unit_test(test_zip64_on_disk),
		cmocka_unit_test(test_bounded_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
