#include <stdio.h>
#include <stdlib.h>

#include "hostile.h"

/* A pickle of a state dict with one tensor in storage "0". */
static struct member
good_pickle(void)
{
	static struct pickler pickler;

	pickler.length = 0;
	pickler_put(&pickler, "\x80\2}");
	pickler_text(&pickler, "w");
	pickler_tensor(&pickler, "0", 4);
	pickler_put(&pickler, "s.");
	return (struct member){ .name = "a/data.pkl", .data = pickler.bytes,
		.length = pickler.length, .extra = 24 };
}

static const char sixteen[16];

static struct member
storage(const char *name)
{
	return (struct member){ .name = name, .data = sixteen, .length = 16,
		.extra = 10 };
}

static struct zipper *
begin(void)
{
	struct zipper *zipper = new_zipper();

	add(zipper, good_pickle());
	return zipper;
}

static void
test_zip_members(void **state)
{
	static const char nul[] = "a/da\0ta";
	struct zipper *zipper = begin();
	struct member member;

	(void)state;
	add(zipper, storage("a/data/0"));
	hostile_expect(hostile_zip(zipper, true), "fine");
	hostile_expect(hostile_zip(begin(), false),
	    "the bytes of storage 0 are not there");

	zipper = begin();
	add(zipper, storage("a/data/0"));
	add(zipper, storage("a/data/0"));
	hostile_expect(hostile_zip(zipper, true),
	    "two members of the zip are named a/data/0");

	zipper = begin();
	add(zipper, storage("b/data/0"));
	hostile_expect(hostile_zip(zipper, true), "are not there");

	zipper = begin();
	member = storage("a/data/0");
	member.method = 8;
	add(zipper, member);
	hostile_expect(hostile_zip(zipper, true), "storage 0 is compressed");

	zipper = new_zipper();
	member = good_pickle();
	member.method = 8;
	add(zipper, member);
	add(zipper, storage("a/data/0"));
	hostile_expect(hostile_zip(zipper, true), "data.pkl is compressed");

	zipper = begin();
	add(zipper, (struct member){ .name = nul, .name_length = 7,
	    .data = sixteen, .length = 16 });
	hostile_expect(hostile_zip(zipper, true), "name holds a NUL");

	zipper = new_zipper();
	add(zipper, storage("data.pkl"));
	hostile_expect(hostile_zip(zipper, true), "a zip without data.pkl");
	zipper = new_zipper();
	add(zipper, storage("a/b/data.pkl"));
	hostile_expect(hostile_zip(zipper, true), "a zip without data.pkl");
	zipper = new_zipper();
	add(zipper, storage("/data.pkl"));
	hostile_expect(hostile_zip(zipper, true), "a zip without data.pkl");
}

/* Members that lie over each other, or where they cannot be. */
static void
test_zip_places(void **state)
{
	static const int64_t shifts[] = { -1, 1, -30, -100, 100, 4000, 1 << 30 };
	struct zipper *zipper;

	(void)state;
	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		struct member member = storage("a/data/0");
		struct model_options options = { .key = NULL };
		struct weigh_files *files;
		struct model model;
		struct error error = ERROR_INIT;

		zipper = begin();
		member.shift = shifts[i];
		add(zipper, member);
		add_text(zipper, "a/version", "3\n");
		files = hostile_zip(zipper, false);
		assert_int_equal(model_read(files->files, 1, &options, &model,
		    &error), -1);
		assert_int_equal(error.class, ERROR_DAMAGED);
		model_free(&model);
		weigh_close(files);
	}
	/* Two members at one place. */
	zipper = begin();
	add(zipper, storage("a/data/0"));
	add(zipper, (struct member){ .name = "a/data/1", .data = sixteen,
	    .length = 16, .extra = 10,
	    .shift = -(int64_t)(30 + 8 + 10 + 16 + 16) });
	hostile_expect(hostile_zip(zipper, false), "lies over what follows");
	/* Longer than the place it has. */
	zipper = begin();
	add(zipper, (struct member){ .name = "a/data/0", .length = 1 << 20 });
	zipper->hole = 0;
	zipper->hole_count = 0;
	hostile_expect(hostile_zip(zipper, false), "lies over what follows");
}

static void
expect_bytes(const void *bytes, size_t length, const char *message)
{
	hostile_expect(weigh_one("hostile.pt", bytes, length), message);
}

static void
test_zip_ends(void **state)
{
	struct zipper *zipper = begin();

	(void)state;
	add(zipper, storage("a/data/0"));
	add_end(zipper, 0, 0, 0);
	expect_bytes(zipper->bytes, zipper->length, "behind");
	zipper->length -= 22;
	add_end(zipper, 2, (uint64_t)-1, 0);
	expect_bytes(zipper->bytes, zipper->length, "lies past its end");
	zipper->length -= 22;
	add_end(zipper, 65535, 0, zipper->length);
	expect_bytes(zipper->bytes, zipper->length, "it promises 65535");
	zipper->length -= 22;
	add_end64(zipper, UINT64_C(1) << 60, UINT64_C(1) << 60, 0, 1 << 20);
	add_end(zipper, 65535, UINT32_MAX, UINT32_MAX);
	expect_bytes(zipper->bytes, zipper->length,
	    "zip64 end record is not there");
	free(zipper);
	expect_bytes("PK\3\4", 4, "no zip end record");
	expect_bytes("PK\3\4PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 26,
	    "a zip behind 4 other bytes");
}

/* The central directory itself, byte by byte wrong. */
static void
test_zip_directory(void **state)
{
	struct zipper *zipper = begin();
	size_t start;

	(void)state;
	add(zipper, storage("a/data/0"));
	start = zipper->length;
	finish(zipper, true);
	for (size_t at = start; at < zipper->length; at++) {
		for (int i = 0; i < 3; i++) {
			static const uint8_t masks[] = { 0xff, 0x01, 0x80 };
			struct model_options options = { .key = NULL };
			struct weigh_files *files;
			struct model model;
			struct error error = ERROR_INIT;

			zipper->bytes[at] ^= (char)masks[i];
			files = weigh_one("x.pt", zipper->bytes,
			    zipper->length);
			if (model_read(files->files, 1, &options, &model,
			    &error) != 0)
				assert_true(error.message[0] != '\0');
			else
				assert_int_equal(model.count, 1);
			model_free(&model);
			weigh_close(files);
			zipper->bytes[at] ^= (char)masks[i];
		}
	}
	free(zipper);
}

static void
test_byte_order(void **state)
{
	static const struct {
		const char *word, *message;
	} cases[] = {
		{ "little", "fine" },
		{ "big", "its numbers are not little-endian" },
		{ "", "its numbers are not little-endian" },
		{ "middle", "its numbers are not little-endian" },
		{ "something else", "its byte order is none that is known" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct zipper *zipper = begin();

		add_text(zipper, "a/byteorder", cases[i].word);
		add(zipper, storage("a/data/0"));
		hostile_expect(hostile_zip(zipper, true), cases[i].message);
	}
}

/* A safetensors file with this header and ${size} bytes behind it. */
static void
expect_header(const char *header, size_t size, const char *message)
{
	size_t length = strlen(header);
	char *bytes = calloc(1, 8 + length + size);
	struct weigh_files *files;

	for (int i = 0; i < 8; i++)
		bytes[i] = (char)((uint64_t)length >> (8 * i));
	memcpy(bytes + 8, header, length);
	files = weigh_one("x.safetensors", bytes, 8 + length + size);
	free(bytes);
	hostile_expect(files, message);
}

#define TENSOR(name, dtype, shape, begin, end) "\"" name "\":{\"dtype\":\"" \
	dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static void
test_safetensors(void **state)
{
	(void)state;
	expect_header("{" TENSOR("a", "F32", "[1]", 0, 4) "}", 4, "fine");
	expect_header("{" TENSOR("a/../b", "F32", "[1]", 0, 4) "}", 4, "fine");
	expect_header("{" TENSOR("", "F32", "[1]", 0, 4) "}", 4, "fine");
	expect_header("{" TENSOR("a", "F32", "[]", 0, 4) "}", 4, "fine");
	expect_header("{" TENSOR("a", "F32", "[0]", 0, 0) "}", 0, "fine");
	expect_header("{" TENSOR("a", "U8", "[1]", 0, 1) ","
	    TENSOR("b", "F4", "[2]", 1, 2) "}", 2,
	    "refused b: its element type");
	expect_header("{" TENSOR("a", "U8", "[1]", 0, 1) ","
	    TENSOR("b", "F8_E8M0", "[1]", 1, 2) "}", 2,
	    "refused b: its element type");
	expect_header("{" TENSOR("a\\u0000b", "F32", "[1]", 0, 4) "}", 4,
	    "not a safetensors header");
	expect_header("{" TENSOR("a", "F32", "[1]", 0, 4) ","
	    TENSOR("a", "F32", "[1]", 4, 8) "}", 8,
	    "two of its tensors are named a");
	expect_header("{" TENSOR("a", "F32", "[1]", 0, 4) ","
	    TENSOR("b", "F32", "[1]", 0, 4) "}", 4,
	    "not where the one before it ends");
	expect_header("{" TENSOR("a", "F32", "[1]", 0, 4) ","
	    TENSOR("b", "F32", "[1]", 5, 9) "}", 9,
	    "not where the one before it ends");
	expect_header("{" TENSOR("a", "F32", "[1]", 4, 8) "}", 8,
	    "not where the one before it ends");
	expect_header("{" TENSOR("a", "F32", "[1]", 0, 4) "}", 5,
	    "its tensors end at byte");
	expect_header("{" TENSOR("a", "F32", "[1]", 0, 4) "}", 3,
	    "it ends at byte");
	expect_header("{" TENSOR("a", "F32", "[2]", 0, 4) "}", 4,
	    "does not fit its shape");
	expect_header("{" TENSOR("a", "F32", "[1]", 4, 0) "}", 4,
	    "ends before it begins");
	expect_header("{" TENSOR("a", "F32", "[-1]", 0, 4) "}", 4,
	    "no proper dtype and shape");
	expect_header("{" TENSOR("a", "F32", "[1]", -4, 0) "}", 4,
	    "no proper data_offsets");
	expect_header("{" TENSOR("a", "F32", "[4294967296,4294967296]", 0, 4)
	    "}", 4, "does not fit its shape");
	expect_header("{" TENSOR("a", "F32", "[1]", 0, 9223372036854775807)
	    "}", 4, "it ends at byte");
	expect_header("{" TENSOR("a", "F32", "[1]", 0, 99999999999999999999)
	    "}", 4, "not a safetensors header");
	expect_header("{" TENSOR("a", "F32", "\"x\"", 0, 4) "}", 4,
	    "no proper dtype and shape");
	expect_header("{\"a\":[]}", 0, "no proper data_offsets");
	expect_header("{\"a\":1}", 0, "no proper data_offsets");
	expect_header("{\"__metadata__\":{\"a\":1}}", 0,
	    "__metadata__ holds more than text");
	expect_header("{\"a\"}", 0, "':' is missing");
	expect_header("{,}", 0, "a name is missing");
	expect_header("{" TENSOR("a", "F32", "[1]", 0, 4) ",}", 4,
	    "a name is missing");
	expect_header("{" TENSOR("a", "F32", "[1]", 0, 4) "} x", 4,
	    "something follows its JSON");
	expect_header("{" TENSOR("a", "F32", "[1]", 0, 4), 4,
	    "ends in the middle");
}

/* A header of ${length} bytes as it says, filled by ${fill}. */
static void
expect_large(size_t length, const char *start, char fill, const char *message)
{
	char *bytes = malloc(8 + length);
	struct weigh_files *files;

	memset(bytes, fill, 8 + length);
	for (int i = 0; i < 8; i++)
		bytes[i] = (char)((uint64_t)length >> (8 * i));
	memcpy(bytes + 8, start, strlen(start));
	files = weigh_one("x.safetensors", bytes, 8 + length);
	free(bytes);
	hostile_expect(files, message);
}

static void
test_large_headers(void **state)
{
	static const char claim[] = "\1\xe1\xf5\5\0\0\0\0{}";

	(void)state;
	expect_large(100000000, "{", ' ', "ends in the middle");
	expect_large(100000000, "{\"", 'n', "longer than");
	expect_large(100000000, "{\"a\":{", '[', "not a safetensors header");
	expect_large(100000000, "{\"a\":", '9', "longer than");
	/* One byte more is none at all, whatever its size. */
	hostile_expect(weigh_one("x", claim, 10),
	    "no format of weights that is known");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zip_members),
		cmocka_unit_test(test_zip_places),
		cmocka_unit_test(test_zip_ends),
		cmocka_unit_test(test_zip_directory),
		cmocka_unit_test(test_byte_order),
		cmocka_unit_test(test_safetensors),
		cmocka_unit_test(test_large_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
