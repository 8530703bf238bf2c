#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "format/cutter.h"
#include "format/format.h"
#include "kit/kit.h"

#define MIB ((uint64_t)1 << 20)

/* A piece of a file. */
struct piece {
	uint64_t offset;
	uint64_t length;
	bool small;
};

struct pieces {
	struct piece *list;
	size_t count;
};

static void
add_piece(struct pieces *pieces, uint64_t offset, uint64_t length, bool small)
{
	pieces->list = realloc(pieces->list,
	    (pieces->count + 1) * sizeof(*pieces->list));
	pieces->list[pieces->count++] = (struct piece){ offset, length,
		small };
}

/*
 * Cut ${size} bytes handed over in parts of at most ${part} bytes (0: of
 * changing size).  ${data} NULL: the cutter must not look at them.
 */
static struct pieces
cut(const struct format_report *report, const uint8_t *data, uint64_t size,
    uint64_t target, size_t part)
{
	struct error error = ERROR_INIT;
	struct cutter *cutter = cutter_new(report, size, target, &error);
	struct pieces pieces = { NULL, 0 };
	uint64_t at = 0, start = 0;
	size_t number = 0;

	assert_non_null(cutter);
	while (at < size) {
		size_t length = part != 0 ? part : 1 + number++ * 7919 % 300000;
		bool ends = false, small = false;
		size_t taken;

		if (length > size - at)
			length = (size_t)(size - at);
		taken = cutter_take(cutter, data == NULL ? NULL : data + at,
		    length, &ends, &small);
		assert_in_range(taken, 1, length);
		at += taken;
		assert_true(ends || taken == length);
		if (ends) {
			add_piece(&pieces, start, at - start, small);
			start = at;
		}
	}
	assert_int_equal(start, size);
	cutter_free(cutter);
	return pieces;
}

static void
expect_same(const struct pieces *a, const struct pieces *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_int_equal(a->list[i].offset, b->list[i].offset);
		assert_int_equal(a->list[i].length, b->list[i].length);
		assert_int_equal(a->list[i].small, b->list[i].small);
	}
}

static void
test_target(void **state)
{
	const uint64_t gib = UINT64_C(1) << 30;

	(void)state;
	assert_int_equal(cutter_target(0), 8 * MIB);
	assert_int_equal(cutter_target(64 * gib), 8 * MIB);
	assert_int_equal(cutter_target(64 * gib + 1), 9 * MIB);
	assert_int_equal(cutter_target(128 * gib), 16 * MIB);
	assert_int_equal(cutter_target(512 * gib), 64 * MIB);
	assert_int_equal(cutter_target(UINT64_MAX), 64 * MIB);
}

/* The rule of cutter.h without records, written as plainly as it can be. */
static struct pieces
cut_naively(const uint8_t *data, uint64_t size, uint64_t target)
{
	uint64_t gear[256], state = UINT64_C(0x636b707473796e63);
	struct pieces pieces = { NULL, 0 };
	uint64_t start = 0;
	int bits = 0;

	for (int i = 0; i < 256; i++) {
		uint64_t z;

		state += UINT64_C(0x9e3779b97f4a7c15);
		z = state;
		z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
		gear[i] = z ^ (z >> 31);
	}
	while (target / 4 >> (bits + 1) != 0)
		bits++;
	if (size < target / 8) {
		add_piece(&pieces, 0, size, true);
		return pieces;
	}
	while (start < size) {
		uint64_t hash = 0, length = target / 4;

		while (start + length < size && length < target) {
			int wanted = length < target / 2 ? bits + 2 : bits - 2;

			hash = (hash << 1) + gear[data[start + length]];
			length++;
			if (hash >> (64 - wanted) == 0)
				break;
		}
		if (start + length > size)
			length = size - start;
		add_piece(&pieces, start, length, length < target / 8);
		start += length;
	}
	return pieces;
}

static void
test_content_against_twin(void **state)
{
	const uint64_t size = 60 * MIB + 12345;
	uint8_t *data = malloc(size);
	static const uint64_t targets[] = { MIB, 3 * MIB, 8 * MIB, 13 * MIB };

	(void)state;
	kit_random(data, size, 7);
	/* A run without content: cut at the target. */
	memset(data + 20 * MIB, 0, 6 * MIB);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		struct pieces twin = cut_naively(data, size, targets[i]);

		for (size_t part = 0; part <= 9 * MIB; part = part * 300 + 999) {
			struct pieces pieces = cut(NULL, data, size,
			    targets[i], part);

			expect_same(&twin, &pieces);
			free(pieces.list);
		}
		free(twin.list);
	}
	free(data);
}

static void
test_content_sizes(void **state)
{
	const uint64_t size = 128 * MIB, target = 2 * MIB;
	uint8_t *data = malloc(size);
	struct pieces pieces;

	(void)state;
	kit_random(data, size, 8);
	pieces = cut(NULL, data, size, target, 1 << 20);
	for (size_t i = 0; i + 1 < pieces.count; i++) {
		assert_in_range(pieces.list[i].length, target / 4, target);
		assert_false(pieces.list[i].small);
	}
	/* About half the target. */
	assert_in_range(size / pieces.count, target * 4 / 10, target * 6 / 10);
	free(pieces.list);
	free(data);
}

/* Where random bytes are cut must be so for ever: old chunks are found by it. */
static void
test_content_is_fixed(void **state)
{
	const uint64_t size = 40 * MIB;
	uint8_t *data = malloc(size), digest[SHA256_SIZE];
	char text[SHA256_HEX_SIZE];
	struct pieces pieces;
	struct sha256 *sha256;
	struct error error = ERROR_INIT;

	(void)state;
	/* Bytes by a rule that stands here, not in the kit. */
	for (uint64_t i = 0, x = 1; i < size; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		data[i] = (uint8_t)(x >> 32);
	}
	pieces = cut(NULL, data, size, 8 * MIB, 65536);
	sha256 = sha256_new(&error);
	for (size_t i = 0; i < pieces.count; i++) {
		char line[64];

		snprintf(line, sizeof(line), "%llu\n",
		    (unsigned long long)pieces.list[i].length);
		sha256_add(sha256, line, strlen(line));
	}
	sha256_end(sha256, digest);
	sha256_free(sha256);
	assert_string_equal(sha256_hex(digest, text),
	    "8f324743788d86b1dde2804e9659068053bc3e72acf8e2321467f11c2df65838");
	free(pieces.list);
	free(data);
}

static void
test_small_files(void **state)
{
	uint8_t *data = calloc(1, 2 * MIB);
	struct pieces pieces;

	(void)state;
	pieces = cut(NULL, data, 1, 8 * MIB, 0);
	assert_int_equal(pieces.count, 1);
	assert_true(pieces.list[0].small);
	free(pieces.list);
	pieces = cut(NULL, data, MIB - 1, 8 * MIB, 1000);
	assert_int_equal(pieces.count, 1);
	assert_true(pieces.list[0].small);
	free(pieces.list);
	pieces = cut(NULL, data, MIB, 8 * MIB, 1000);
	assert_int_equal(pieces.count, 1);
	assert_false(pieces.list[0].small);
	free(pieces.list);
	free(data);
}

/* How many bytes of ${data} lie in pieces that ${other} has as well. */
static uint64_t
reused(const struct pieces *pieces, const uint8_t *data,
    const struct pieces *others, const uint8_t *other)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < pieces->count; i++) {
		const struct piece *a = &pieces->list[i];

		for (size_t j = 0; j < others->count; j++) {
			const struct piece *b = &others->list[j];

			if (a->length == b->length && memcmp(data + a->offset,
			    other + b->offset, a->length) == 0) {
				sum += a->length;
				break;
			}
		}
	}
	return sum;
}

/* Bytes put in front, or in the middle, cost the pieces around them. */
static void
test_content_reuse(void **state)
{
	const uint64_t size = 64 * MIB, target = 2 * MIB;
	static const uint64_t places[] = { 0, 1, 31 * MIB + 17 };
	uint8_t *data = malloc(size), *grown = malloc(size + 100);
	struct pieces before, after;

	(void)state;
	kit_random(data, size, 9);
	before = cut(NULL, data, size, target, 0);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		memcpy(grown, data, places[i]);
		memset(grown + places[i], 'x', 100);
		memcpy(grown + places[i] + 100, data + places[i],
		    size - places[i]);
		after = cut(NULL, grown, size + 100, target, 0);
		assert_true(reused(&after, grown, &before, data) >
		    size - 6 * target);
		free(after.list);
	}
	free(before.list);
	free(data);
	free(grown);
}

/* Records of these lengths with ${gap} bytes before each. */
static struct format_report
make_records(uint64_t first, uint64_t gap, const uint64_t *lengths,
    size_t count)
{
	struct format_report report = { .verdict = FORMAT_WHOLE };
	uint64_t at = first;

	report.records = calloc(count, sizeof(*report.records));
	report.record_count = count;
	for (size_t i = 0; i < count; i++) {
		report.records[i].name = strdup("r");
		report.records[i].offset = at;
		report.records[i].length = lengths[i];
		at += lengths[i] + gap;
	}
	return report;
}

static void
test_records(void **state)
{
	const uint64_t lengths[] = { MIB - 1, 16384, 16383, MIB, 20 * MIB, 5 };
	const uint64_t target = 8 * MIB;
	struct format_report report = make_records(100, 60, lengths, 6);
	const uint64_t at = 100;
	const struct piece wanted[] = {
		{ 0, 100, true },				/* header */
		{ at, MIB - 1, true },
		{ at + MIB - 1, 60, true },			/* gap */
		{ at + MIB + 59, 16384, true },
		{ at + MIB + 16443, 60 + 16383 + 60, true },	/* tiny */
		{ at + MIB + 32946, MIB, false },
		{ at + 2 * MIB + 32946, 60, true },
		{ at + 2 * MIB + 33006, target, false },
		{ at + 10 * MIB + 33006, target, false },
		{ at + 18 * MIB + 33006, 4 * MIB, false },
		{ at + 22 * MIB + 33006, 60 + 5 + 935, true },
	};
	const uint64_t size = at + 22 * MIB + 33006 + 1000;

	(void)state;
	for (size_t part = 1; part < 40 * MIB; part = part * 37 + 11) {
		struct pieces pieces = cut(&report, NULL, size, target, part);

		assert_int_equal(pieces.count,
		    sizeof(wanted) / sizeof(wanted[0]));
		for (size_t i = 0; i < pieces.count; i++) {
			assert_int_equal(pieces.list[i].offset,
			    wanted[i].offset);
			assert_int_equal(pieces.list[i].length,
			    wanted[i].length);
			assert_int_equal(pieces.list[i].small,
			    wanted[i].small);
		}
		free(pieces.list);
	}
	format_report_free(&report);
}

/* A long run without large records: small pieces of 64 KiB. */
static void
test_long_gaps(void **state)
{
	const uint64_t lengths[] = { 100, 100, 16384, 10 * MIB + 5 };
	struct format_report report = make_records(200000, 70000, lengths, 4);
	struct pieces pieces = cut(&report, NULL, 12 * MIB, 8 * MIB, 0);
	uint64_t at = 0;

	(void)state;
	for (size_t i = 0; i < pieces.count; i++) {
		assert_int_equal(pieces.list[i].offset, at);
		at += pieces.list[i].length;
		if (at <= report.records[2].offset)
			assert_true(pieces.list[i].length <= 65536 &&
			    pieces.list[i].small);
	}
	assert_int_equal(pieces.list[0].length, 65536);
	/* The end of a large record is small, when it is. */
	for (size_t i = 0; i < pieces.count; i++)
		if (pieces.list[i].offset ==
		    report.records[3].offset + 8 * MIB) {
			assert_int_equal(pieces.list[i].length, 2 * MIB + 5);
			assert_false(pieces.list[i].small);
		}
	free(pieces.list);
	format_report_free(&report);
}

/* A longer header costs only itself. */
static void
test_record_reuse(void **state)
{
	enum { COUNT = 40 };
	uint64_t lengths[COUNT], size = 0;
	struct format_report before, after;
	struct pieces old, new;
	uint8_t *data, *grown;

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		lengths[i] = i % 3 == 0 ? 3 * MIB : i % 3 == 1 ? 30000 : 500;
		size += lengths[i] + 64;
	}
	before = make_records(1000, 64, lengths, COUNT);
	after = make_records(1777, 64, lengths, COUNT);
	data = malloc(size + 1000);
	grown = malloc(size + 1777);
	kit_random(data, size + 1000, 3);
	kit_random(grown, 1777, 4);
	memcpy(grown + 1777, data + 1000, size);
	old = cut(&before, data, size + 1000, 8 * MIB, 0);
	new = cut(&after, grown, size + 1777, 8 * MIB, 0);
	assert_int_equal(reused(&new, grown, &old, data), size);
	free(old.list);
	free(new.list);
	free(data);
	free(grown);
	format_report_free(&before);
	format_report_free(&after);
}

/* Without room between, at both ends, and a record that is the whole file. */
static void
test_record_edges(void **state)
{
	const uint64_t lengths[] = { 20000, 10, 10, 3 * MIB };
	struct format_report report = make_records(0, 0, lengths, 4);
	struct pieces pieces = cut(&report, NULL, 3 * MIB + 20020, 8 * MIB, 0);

	(void)state;
	assert_int_equal(pieces.count, 3);
	assert_int_equal(pieces.list[1].length, 20);
	assert_int_equal(pieces.list[2].length, 3 * MIB);
	free(pieces.list);
	format_report_free(&report);

	report = make_records(0, 0, &lengths[1], 1);
	pieces = cut(&report, NULL, 10, 8 * MIB, 0);
	assert_int_equal(pieces.count, 1);
	assert_true(pieces.list[0].small);
	free(pieces.list);
	format_report_free(&report);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_content_against_twin),
		cmocka_unit_test(test_content_sizes),
		cmocka_unit_test(test_content_is_fixed),
		cmocka_unit_test(test_small_files),
		cmocka_unit_test(test_content_reuse),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_long_gaps),
		cmocka_unit_test(test_record_reuse),
		cmocka_unit_test(test_record_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
