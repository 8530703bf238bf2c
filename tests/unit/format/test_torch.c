#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/source.h"
#include "format/format.h"
#include "kit/kit.h"

/*
 * A writer of zips, also wrong ones.  What it makes is kept in memory; `skip`
 * moves on without bytes, for files larger than memory.
 */
struct member {
	const char *name;
	size_t name_length;	/* 0: strlen */
	const void *data;	/* NULL: not written */
	uint64_t length;
	uint16_t extra;		/* bytes of an extra field in the local header */
	int64_t shift;		/* added to its offset in the directory */
	uint16_t method;
	bool wide;		/* zip64 sizes and offset */
};

struct zipper {
	char bytes[1 << 20];
	size_t length;
	char directory[1 << 20];
	size_t directory_length;
	uint64_t hole;		/* bytes not kept, before ${bytes} from `from` */
	size_t from;
	uint64_t count;
};

static void
put(char *to, size_t *at, uint64_t number, int width)
{
	for (int i = 0; i < width; i++)
		to[(*at)++] = i < 8 ? (char)(number >> (8 * i)) : 0;
}

static void
put_bytes(char *to, size_t *at, const void *bytes, size_t length)
{
	memcpy(to + *at, bytes, length);
	*at += length;
}

static uint64_t
offset_of(const struct zipper *zipper)
{
	return zipper->length + zipper->hole;
}

static void
add_local(struct zipper *zipper, const struct member *member, size_t name)
{
	char *to = zipper->bytes;
	size_t *at = &zipper->length;

	put(to, at, 0x04034b50, 4);
	put(to, at, 0, 2);
	put(to, at, 0x0808, 2);		/* a descriptor follows; UTF-8 */
	put(to, at, member->method, 2);
	put(to, at, 0, 4);		/* time */
	put(to, at, 0, 4);		/* checksum and sizes: later */
	put(to, at, 0, 8);
	put(to, at, name, 2);
	put(to, at, member->extra, 2);
	put_bytes(to, at, member->name, name);
	for (int i = 0; i < member->extra; i++)
		put(to, at, i == 0 ? 'F' : i == 1 ? 'B' : i == 2 ?
		    (uint8_t)(member->extra - 4) : i == 3 ?
		    (member->extra - 4) >> 8 : 'Z', 1);
	if (member->data != NULL)
		put_bytes(to, at, member->data, (size_t)member->length);
}

static void
add_directory(struct zipper *zipper, const struct member *member, size_t name,
    uint64_t offset)
{
	char *to = zipper->directory;
	size_t *at = &zipper->directory_length;

	put(to, at, 0x02014b50, 4);
	put(to, at, 0, 4);
	put(to, at, 0x0808, 2);
	put(to, at, member->method, 2);
	put(to, at, 0, 4);
	put(to, at, 0, 4);
	put(to, at, member->wide ? UINT32_MAX : member->length, 4);
	put(to, at, member->wide ? UINT32_MAX : member->length, 4);
	put(to, at, name, 2);
	put(to, at, member->wide ? 28 : 0, 2);
	put(to, at, 0, 2 + 2 + 2 + 4);
	put(to, at, member->wide ? UINT32_MAX : offset, 4);
	put_bytes(to, at, member->name, name);
	if (member->wide) {
		put(to, at, 1, 2);
		put(to, at, 24, 2);
		put(to, at, member->length, 8);
		put(to, at, member->length, 8);
		put(to, at, offset, 8);
	}
	zipper->count++;
}

static void
add(struct zipper *zipper, struct member member)
{
	size_t name = member.name_length != 0 ? member.name_length :
	    strlen(member.name);
	uint64_t start = offset_of(zipper);

	add_local(zipper, &member, name);
	if (member.data == NULL && member.length > 0) {
		zipper->from = zipper->length;
		zipper->hole += member.length;
	}
	/* The descriptor: signature, checksum, sizes. */
	put(zipper->bytes, &zipper->length, 0x08074b50, 4);
	put(zipper->bytes, &zipper->length, 0, 4);
	put(zipper->bytes, &zipper->length, member.length,
	    member.wide ? 8 : 4);
	put(zipper->bytes, &zipper->length, member.length,
	    member.wide ? 8 : 4);
	add_directory(zipper, &member, name, start + (uint64_t)member.shift);
}

static void
add_text(struct zipper *zipper, const char *name, const char *text)
{
	add(zipper, (struct member){ .name = name, .data = text,
	    .length = strlen(text), .extra = 4 });
}

/* Only the end record, saying what the caller wants. */
static void
add_end(struct zipper *zipper, uint64_t count, uint64_t length,
    uint64_t offset)
{
	char *to = zipper->bytes;
	size_t *at = &zipper->length;

	put(to, at, 0x06054b50, 4);
	put(to, at, 0, 4);
	put(to, at, count, 2);
	put(to, at, count, 2);
	put(to, at, length, 4);
	put(to, at, offset, 4);
	put(to, at, 0, 2);
}

static void
add_end64(struct zipper *zipper, uint64_t count, uint64_t length,
    uint64_t offset, uint64_t record)
{
	char *to = zipper->bytes;
	size_t *at = &zipper->length;

	put(to, at, 0x06064b50, 4);
	put(to, at, 44, 8);
	put(to, at, 0x002d031e, 4);
	put(to, at, 0, 8);
	put(to, at, count, 8);
	put(to, at, count, 8);
	put(to, at, length, 8);
	put(to, at, offset, 8);
	put(to, at, 0x07064b50, 4);
	put(to, at, 0, 4);
	put(to, at, record, 8);
	put(to, at, 1, 4);
}

/* The directory and the end as they should be. */
static void
finish(struct zipper *zipper, bool wide)
{
	uint64_t offset = offset_of(zipper);
	size_t length = zipper->directory_length;

	put_bytes(zipper->bytes, &zipper->length, zipper->directory, length);
	if (wide)
		add_end64(zipper, zipper->count, length, offset,
		    offset_of(zipper));
	add_end(zipper, zipper->count, length, wide ? UINT32_MAX : offset);
}

static struct zipper *
new_zipper(void)
{
	return calloc(1, sizeof(struct zipper));
}

/* Inspect what was made, and free it. */
static void
expect_named(struct zipper *zipper, const char *name,
    enum format_verdict verdict, const char *reason)
{
	char *bytes = malloc(zipper->length);
	struct source_memory memory = { bytes, zipper->length };
	struct source source = source_from_memory(&memory);
	struct format_report report;
	struct error error = ERROR_INIT;

	memcpy(bytes, zipper->bytes, zipper->length);
	assert_ok(format_inspect(&source, name, &report, &error), error);
	if (report.verdict != verdict || strstr(report.reason, reason) == NULL)
		fail_msg("verdict %d: %s; expected %d: %s", report.verdict,
		    report.reason, verdict, reason);
	format_report_free(&report);
	free(bytes);
	free(zipper);
}

static void
expect(struct zipper *zipper, enum format_verdict verdict, const char *reason)
{
	expect_named(zipper, "last.pt", verdict, reason);
}

/* A pickle that names one storage; returned in static memory. */
static const struct member *
pickle(const char *type, const char *key, uint32_t elements)
{
	static char bytes[8192];
	static struct member member;
	size_t at = 0;

	put_bytes(bytes, &at, "\x80\2(X\7\0\0\0storagectorch\n", 22);
	put_bytes(bytes, &at, type, strlen(type));
	put_bytes(bytes, &at, "\nX", 2);
	put(bytes, &at, strlen(key), 4);
	put_bytes(bytes, &at, key, strlen(key));
	put_bytes(bytes, &at, "X\3\0\0\0cpuJ", 9);
	put(bytes, &at, elements, 4);
	put_bytes(bytes, &at, "tQ.", 3);
	member = (struct member){ .name = "a/data.pkl", .data = bytes,
		.length = at, .extra = 20 };
	return &member;
}

static void
test_storages(void **state)
{
	struct zipper *zipper = new_zipper();

	(void)state;
	add(zipper, *pickle("FloatStorage", "0", 3));
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, true);
	expect(zipper, FORMAT_WHOLE, "all storages");

	zipper = new_zipper();
	add(zipper, *pickle("FloatStorage", "0", 4));
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, true);
	expect(zipper, FORMAT_TORN,
	    "a/data/0 has 12 bytes, data.pkl says 4 elements of 4");

	zipper = new_zipper();
	add(zipper, *pickle("FloatStorage", "1", 3));
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "names a/data/1, which is not there");

	/* The folder of another prefix is not its own. */
	zipper = new_zipper();
	add(zipper, *pickle("HalfStorage", "0", 3));
	add_text(zipper, "b/data/0", "twelve bytes");
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "names a/data/0, which is not there");

	/* A type of the future: it must be there, with any length. */
	zipper = new_zipper();
	add(zipper, *pickle("FutureStorage", "0", 1 << 30));
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, false);
	expect(zipper, FORMAT_WHOLE, "all storages");

	zipper = new_zipper();
	add(zipper, *pickle("FutureStorage", "", 3));
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, false);
	expect(zipper, FORMAT_WHOLE, "all storages");
}

static void
test_refused_pickles(void **state)
{
	struct zipper *zipper = new_zipper();

	(void)state;
	/* A persistent id of protocol 0. */
	add_text(zipper, "a/data.pkl", "\x80\2Pid\n.");
	finish(zipper, false);
	expect(zipper, FORMAT_WHOLE, "storages were not checked");

	zipper = new_zipper();
	add_text(zipper, "a/data.pkl", "\x80\2N");
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "ends in the middle");

	zipper = new_zipper();
	add_text(zipper, "a/data.pkl", "\x80\2t.");
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "the pickle is damaged");
}

static void
test_without_pickle(void **state)
{
	struct zipper *zipper = new_zipper();

	(void)state;
	add_text(zipper, "a/version", "3\n");
	finish(zipper, true);
	expect(zipper, FORMAT_TORN, "without data.pkl");

	/* As 2.8 leaves it, under a name that says nothing. */
	zipper = new_zipper();
	add_text(zipper, "a/.format_version", "1");
	add_text(zipper, "a/.storage_alignment", "64");
	add_text(zipper, "a/byteorder", "little");
	add_text(zipper, "a/version", "3\n");
	add_text(zipper, "a/.data/serialization_id", "00");
	finish(zipper, true);
	expect_named(zipper, "state", FORMAT_TORN, "without data.pkl");

	zipper = new_zipper();
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, true);
	expect(zipper, FORMAT_TORN, "without data.pkl");

	zipper = new_zipper();
	add_text(zipper, "a/.data/extern_modules", "torch");
	finish(zipper, true);
	expect(zipper, FORMAT_WHOLE, "all members of the zip (1)");

	zipper = new_zipper();
	add_text(zipper, "metadata.json", "{}");
	add_text(zipper, "model.weights.h5", "x");
	finish(zipper, false);
	expect_named(zipper, "model.keras", FORMAT_WHOLE, "zip (2)");

	/* numpy.savez without an array. */
	zipper = new_zipper();
	finish(zipper, false);
	expect_named(zipper, "none.npz", FORMAT_WHOLE, "zip (0)");
}

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

/* A zip with a hole of zeros instead of its large members. */
struct holed {
	const struct zipper *zipper;
	uint64_t read;
	uint64_t limit;		/* 0: none */
};

static int
read_holed(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	struct holed *holed = context;
	const struct zipper *zipper = holed->zipper;
	char *to = data;

	(void)error;
	assert_true(length <= 65536);
	holed->read += length;
	for (size_t i = 0; i < length; i++) {
		uint64_t at = offset + i;

		if (at < zipper->from)
			to[i] = zipper->bytes[at];
		else if (at < zipper->from + zipper->hole)
			to[i] = 0;
		else
			to[i] = zipper->bytes[at - zipper->hole];
	}
	return 0;
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
	assert_int_equal(report.records[1].offset, zipper->from);
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
	size_t rest;

	(void)state;
	add(zipper, *pickle("ByteStorage", "0", 1));
	add(zipper, (struct member){ .name = "a/data/0",
	    .length = UINT64_C(9) << 30, .wide = true });
	finish(zipper, true);
	rest = zipper->length - zipper->from;
	snprintf(path, sizeof(path), "%s/large.ckpt", folder);
	opened.fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(opened.fd >= 0);
	assert_int_equal(pwrite(opened.fd, zipper->bytes, zipper->from, 0),
	    zipper->from);
	assert_int_equal(pwrite(opened.fd, zipper->bytes + zipper->from, rest,
	    (off_t)(zipper->from + zipper->hole)), rest);
	source = source_from_file(&opened, offset_of(zipper));
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
	zipper->from = zipper->length;
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
		cmocka_unit_test(test_storages),
		cmocka_unit_test(test_refused_pickles),
		cmocka_unit_test(test_without_pickle),
		cmocka_unit_test(test_end_records),
		cmocka_unit_test(test_around_the_zip),
		cmocka_unit_test(test_hostile_members),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_zip64),
		cmocka_unit_test(test_zip64_on_disk),
		cmocka_unit_test(test_bounded_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
