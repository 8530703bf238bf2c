#include <stdio.h>
#include <stdlib.h>

#include "hostile.h"

#define MOST INT64_MAX

/* A tensor in storage "0", of 64 bytes in the file, or "1", of 16. */
static const struct view {
	const char *message;
	const char *type;
	const char *key;
	int64_t elements;
	int64_t offset;
	size_t dimensions;
	int64_t size[4];
	int64_t stride[4];
} views[] = {
	{ "fine", "FloatStorage", "0", 16, 0, 1, { 16 }, { 1 } },
	{ "fine", "FloatStorage", "0", 16, 15, 1, { 1 }, { 1 } },
	{ "fine", "FloatStorage", "0", 16, 0, 2, { 2, 2 }, { 0, 15 } },
	{ "fine", "FloatStorage", "0", 16, 0, 2, { MOST, 0 }, { 1, 1 } },
	{ "fine", "FloatStorage", "0", 16, 0, 0, { 0 }, { 0 } },
	{ "fine", "FloatStorage", "0", 16, 0, 1, { 1 }, { MOST } },
	{ "reaches past the end of its storage 0", "FloatStorage", "0", 16,
	    0, 1, { 17 }, { 1 } },
	{ "reaches past the end of its storage 0", "FloatStorage", "0", 16,
	    16, 1, { 1 }, { 1 } },
	{ "reaches past the end of its storage 0", "FloatStorage", "0", 16,
	    16, 0, { 0 }, { 0 } },
	{ "reaches past the end of its storage 0", "FloatStorage", "0", 16,
	    1, 1, { 16 }, { 1 } },
	{ "reaches past the end of its storage 0", "FloatStorage", "0", 16,
	    0, 2, { 2, 2 }, { 0, 16 } },
	{ "reaches past the end of its storage 0", "FloatStorage", "0", 16,
	    0, 1, { 2 }, { MOST } },
	{ "reaches past the end of its storage 0", "FloatStorage", "0", 16,
	    0, 2, { 3, 3 }, { MOST, MOST } },
	{ "reaches past the end of its storage 0", "FloatStorage", "0", 16,
	    MOST, 1, { 1 }, { 1 } },
	{ "reaches past the end of its storage 0", "FloatStorage", "0", 16,
	    MOST, 1, { 2 }, { MOST } },
	{ "reaches past the end of its storage 0", "FloatStorage", "0", 0,
	    0, 1, { 1 }, { 1 } },
	{ "reaches past the end of its storage 0", "FloatStorage", "0", 16,
	    0, 1, { MOST / 4 }, { 1 } },
	{ "it is too large for any file", "FloatStorage", "0", 16,
	    0, 1, { MOST }, { 0 } },
	{ "it is too large for any file", "FloatStorage", "0", 16,
	    0, 2, { MOST, MOST }, { 0, 0 } },
	{ "it is too large for any file", "FloatStorage", "0", 16, 0, 4,
	    { 65536, 65536, 65536, 65536 }, { 0, 0, 0, 0 } },
	{ "w: its elements lie over each other", "FloatStorage", "0", 16,
	    0, 1, { 1 << 30 }, { 0 } },
	{ "it has a negative size", "FloatStorage", "0", 16, 0, 1, { -1 },
	    { 1 } },
	{ "it has a negative size", "FloatStorage", "0", 16, 0, 2,
	    { 0, INT64_MIN }, { 1, 1 } },
	{ "it has a negative stride", "FloatStorage", "0", 16, 8, 1, { 4 },
	    { -1 } },
	{ "it has a negative stride", "FloatStorage", "0", 16, 8, 1, { 4 },
	    { INT64_MIN } },
	{ "it begins before its storage", "FloatStorage", "0", 16, -1, 1,
	    { 1 }, { 1 } },
	{ "it begins before its storage", "FloatStorage", "0", 16, INT64_MIN,
	    1, { 1 }, { 1 } },
	{ "storage 0 has 64 bytes, the pickle says 17 elements of 4",
	    "FloatStorage", "0", 17, 0, 1, { 16 }, { 1 } },
	{ "storage 1 has 16 bytes, the pickle says 16 elements of 4",
	    "FloatStorage", "1", 16, 0, 1, { 1 }, { 1 } },
	{ "the pickle says 9 elements of 8", "DoubleStorage", "0", 9, 0, 1,
	    { 1 }, { 1 } },
	{ "the pickle says 5 elements of 16", "ComplexDoubleStorage", "0", 5,
	    0, 1, { 1 }, { 1 } },
	{ "the pickle says 9223372036854775807 elements", "FloatStorage", "0",
	    MOST, 0, 1, { 1 }, { 1 } },
	{ "the pickle says 65 elements of 1", "BoolStorage", "0", 65, 0, 1,
	    { 1 }, { 1 } },
	{ "the bytes of storage 2 are not there", "FloatStorage", "2", 1, 0,
	    1, { 1 }, { 1 } },
	{ "the bytes of storage ../version are not there", "FloatStorage",
	    "../version", 1, 0, 1, { 1 }, { 1 } },
	{ "the bytes of storage 0/ are not there", "FloatStorage", "0/", 1, 0,
	    1, { 1 }, { 1 } },
	{ "its storage is no storage of this file", "FloatStorage", "", 1, 0,
	    1, { 1 }, { 1 } },
	{ "its storage is no storage of this file", "FloatStorage", "0", -1,
	    0, 1, { 1 }, { 1 } },
	{ "its element type is none that is known", "FutureStorage", "0", 16,
	    0, 1, { 1 }, { 1 } },
	{ "its element type is none that is known", "UntypedStorage", "0", 64,
	    0, 1, { 1 }, { 1 } },
	{ "its element type is none that is known", "QUInt8Storage", "0", 64,
	    0, 1, { 1 }, { 1 } },
};

static void
test_views(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		const struct view *view = &views[i];
		struct pickler pickler = { .length = 0 };

		pickler_put(&pickler, "\x80\2}");
		pickler_text(&pickler, "w");
		pickler_global(&pickler, "torch._utils", "_rebuild_tensor_v2");
		pickler_put(&pickler, "(");
		pickler_storage(&pickler, view->type, view->key,
		    view->elements);
		pickler_view(&pickler, view->offset, view->size, view->stride,
		    view->dimensions);
		pickler_put(&pickler, "tRs.");
		hostile_expect(hostile_pickle(pickler.bytes, pickler.length),
		    view->message);
	}
}

static void
test_many_dimensions(void **state)
{
	int64_t ones[65];

	(void)state;
	for (int i = 0; i < 65; i++)
		ones[i] = 1;
	for (size_t dimensions = 64; dimensions <= 65; dimensions++) {
		struct pickler pickler = { .length = 0 };

		pickler_put(&pickler, "\x80\2}");
		pickler_text(&pickler, "w");
		pickler_global(&pickler, "torch._utils", "_rebuild_tensor_v2");
		pickler_put(&pickler, "(");
		pickler_storage(&pickler, "FloatStorage", "0", 16);
		pickler_view(&pickler, 0, ones, ones, dimensions);
		pickler_put(&pickler, "tRs.");
		hostile_expect(hostile_pickle(pickler.bytes, pickler.length),
		    dimensions == 64 ? "fine" : "it has too many dimensions");
	}
}

/* A good tensor "w" beside the value that ${bytes} makes under "x". */
static void
expect_beside(const char *bytes, size_t length, const char *message)
{
	struct pickler pickler = { .length = 0 };

	pickler_put(&pickler, "\x80\2}(");
	pickler_text(&pickler, "w");
	pickler_tensor(&pickler, "0", 16);
	pickler_text(&pickler, "x");
	pickler_raw(&pickler, bytes, length);
	pickler_put(&pickler, "u.");
	hostile_expect(hostile_pickle(pickler.bytes, pickler.length),
	    message);
}

#define REBUILD "ctorch._utils\n_rebuild_"
#define STORAGE "(X\7\0\0\0storagectorch\nFloatStorage\n" \
	"X\1\0\0\0" "0X\3\0\0\0cpuK\x10tQ"
#define BESIDE(bytes, message) { bytes, sizeof(bytes) - 1, message }

/* Values that are not rebuilt as torch does it: refused by name, or nothing. */
static const struct beside {
	const char *bytes;
	size_t length;
	const char *message;
} besides[] = {
	BESIDE(REBUILD "tensor_v2\n)R", "refused x: it is not rebuilt as"),
	BESIDE(REBUILD "tensor_v2\n]R", "fine"),
	BESIDE(REBUILD "tensor_v2\n(NNNNtR", "refused x: its storage is no"),
	BESIDE(REBUILD "tensor_v2\n(" STORAGE "NNNtR",
	    "refused x: it is not rebuilt as"),
	BESIDE(REBUILD "tensor_v2\n(" STORAGE "K\0(K\1t)tR",
	    "refused x: it is not rebuilt as"),
	BESIDE(REBUILD "tensor_v2\n(" STORAGE "K\0(Nt(K\1ttR",
	    "refused x: it is not rebuilt as"),
	BESIDE(REBUILD "tensor_v2\n(" STORAGE "K\0K\1K\1tR",
	    "refused x: it is not rebuilt as"),
	BESIDE(REBUILD "tensor_v2\n(" STORAGE "X\1\0\0\0z(K\1t(K\1ttR",
	    "refused x: it is not rebuilt as"),
	BESIDE(REBUILD "tensor_v2\n(" STORAGE "K\0(\x8a\x09\0\0\0\0\0\0\0\0"
	    "\1t(K\1ttR", "refused x: it is not rebuilt as"),
	BESIDE(REBUILD "tensor_v2\n((K\1tQK\0(K\1t(K\1ttR",
	    "refused x: its storage is no"),
	BESIDE(REBUILD "tensor_v2\n(NQK\0(K\1t(K\1ttR",
	    "refused x: its storage is no"),
	BESIDE(REBUILD "tensor\n(" STORAGE "K\0(K\1t(K\1ttR", "fine"),
	BESIDE(REBUILD "tensor_v3\n(" STORAGE "K\0(K\1t(K\1t\x89}tR",
	    "refused x: it is not rebuilt as"),
	BESIDE(REBUILD "tensor_v3\n(" STORAGE "K\0(K\1t(K\1t\x89}"
	    "ctorch\nfloat99\ntR", "refused x: its element type"),
	BESIDE(REBUILD "tensor_v3\n(" STORAGE "K\0(K\1t(K\1t\x89}"
	    "ctorch\nquint8\ntR", "refused x: it is quantised"),
	BESIDE(REBUILD "tensor_v3\n(" STORAGE "K\0(K\1t(K\1t\x89}NtR",
	    "refused x: its element type"),
	BESIDE(REBUILD "tensor_v3\n(" STORAGE "K\0(K\x20t(K\1t\x89}"
	    "ctorch\nfloat16\ntR", "fine"),
	BESIDE(REBUILD "tensor_v3\n(" STORAGE "K\0(K\x21t(K\1t\x89}"
	    "ctorch\nfloat16\ntR", "reaches past the end"),
	BESIDE(REBUILD "tensor_v2\n(" STORAGE "K\0(K\1t(K\1t\x89}"
	    "}X\4\0\0\0conj\x88stR", "refused x: it is a conjugated"),
	BESIDE(REBUILD "tensor_v2\n(" STORAGE "K\0(K\1t(K\1t\x89}"
	    "}X\4\0\0\0conj\x89stR", "fine"),
	BESIDE(REBUILD "parameter\n)R", "refused x: it is rebuilt in a way"),
	BESIDE(REBUILD "parameter\n(Nt" "R", "refused x: it is not rebuilt"),
	BESIDE(REBUILD "parameter\n(" REBUILD "parameter\n(" REBUILD
	    "parameter\n(" REBUILD "parameter\n(" REBUILD "parameter\n("
	    "NtRtRtRtRtR", "refused x: it is not rebuilt"),
	BESIDE(REBUILD "qtensor\n)R", "refused x: it is quantised"),
	BESIDE(REBUILD "sparse_tensor\n)R", "refused x: it is sparse"),
	BESIDE(REBUILD "meta_tensor_no_storage\n)R",
	    "refused x: it has no data (meta)"),
	BESIDE(REBUILD "wrapper_subclass\n)R", "refused x: it is of a class"),
	BESIDE(REBUILD "of_the_future\n)R",
	    "refused x: it is rebuilt in a way that is not known"),
	BESIDE("ctorch._tensor\n_rebuild_from_type_v2\n)R",
	    "refused x: it is not rebuilt"),
	BESIDE("ctorch._tensor\n_rebuild_from_type_v2\n(NN)NtR",
	    "refused x: it is of a class that is not known"),
	BESIDE("ctorch._tensor\n_rebuild_from_type_v2\n(" REBUILD
	    "tensor\ncuser\nKind\n(" STORAGE "K\0(K\1t(K\1tt}tR", "fine"),
	BESIDE("ctorch._tensor\n_rebuild_from_type_v2\n(" REBUILD
	    "tensor\nctorch\nDTensor\n(" STORAGE "K\0(K\1t(K\1tt}tR",
	    "refused x: it is one shard"),
	BESIDE("ctorch.distributed\nShardedTensor\n)\x81}b",
	    "refused x: it is one shard"),
	/* Names that call nothing. */
	BESIDE("cos\nsystem\n(X\4\0\0\0haltt" "R", "fine"),
	BESIDE("cbuiltins\neval\n(X\1\0\0\0" "0tR", "fine"),
	BESIDE("cos\n_rebuild_tensor_v2\n)R", "fine"),
};

static void
test_odd_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(besides) / sizeof(besides[0]); i++)
		expect_beside(besides[i].bytes, besides[i].length,
		    besides[i].message);
}

#define WHOLE(bytes, message) { bytes, sizeof(bytes) - 1, message }

/* A data.pkl that is no honest pickle. */
static const struct beside wholes[] = {
	WHOLE("", "ends in the middle"),
	WHOLE("\x80", "ends in the middle"),
	WHOLE("\x80\2", "ends in the middle"),
	WHOLE(".", "does not begin with a protocol"),
	WHOLE("}.", "does not begin with a protocol"),
	WHOLE("\x80\0N.", "a protocol other than 2 to 5"),
	WHOLE("\x80\6N.", "a protocol other than 2 to 5"),
	WHOLE("\x80\2.", "its stack is empty"),
	WHOLE("\x80\2N.", "it holds no tensors"),
	WHOLE("\x80\2h\0.", "it remembers what it never met"),
	WHOLE("\x80\2j\xff\xff\xff\xff.", "it remembers what it never met"),
	WHOLE("\x80\2Nr\xff\xff\xff\xff.", "more than 4000000 values"),
	WHOLE("\x80\2Nr\0\0\0\x7f.", "more than 4000000 values"),
	WHOLE("\x80\2q\0.", "its stack is empty"),
	WHOLE("\x80\2t.", "a mark is missing"),
	WHOLE("\x80\2\x87.", "its stack is empty"),
	WHOLE("\x80\2(u.", "its stack is empty"),
	WHOLE("\x80\2}(Nu.", "a key has no value"),
	WHOLE("\x80\2(Nd.", "a key has no value"),
	WHOLE("\x80\2N(NNu.", "what cannot hold it"),
	WHOLE("\x80\2]NNs.", "what cannot hold it"),
	WHOLE("\x80\2}Na.", "what cannot hold it"),
	WHOLE("\x80\2NNb.", "gives a state to what cannot have one"),
	WHOLE("\x80\2NNR}b}b.", "gives a state to what cannot have one"),
	WHOLE("\x80\2R.", "its stack is empty"),
	WHOLE("\x80\2NN\x93.", "a name is no text"),
	WHOLE("\x80\2X\xff\xff\xff\x7fx.", "longer than what is left"),
	WHOLE("\x80\2\x8d\xff\xff\xff\xff\xff\xff\xff\xffx.",
	    "longer than what is left"),
	WHOLE("\x80\2\x8e\0\0\0\0\0\0\0\x80x.", "longer than what is left"),
	WHOLE("\x80\2\x8a\xff.", "longer than what is left"),
	WHOLE("\x80\4\x95\xff\xff\xff\xff\xff\xff\xff", "ends in the middle"),
	WHOLE("\x80\2cmodule", "ends in the middle"),
	WHOLE("\x80\2I1\n.", "an opcode that is not known"),
	WHOLE("\x80\2(os\nsystem\n.", "an opcode that is not known"),
	WHOLE("\x80\2(ios\nsystem\n.", "an opcode that is not known"),
	WHOLE("\x80\2\x82\1.", "an opcode that is not known"),
	WHOLE("\x80\2\x8b\0\0\0\1.", "an opcode that is not known"),
	WHOLE("\x80\2Pid\n.", "an opcode that is not known"),
	WHOLE("\x80\5\x97.", "an opcode that is not known"),
	WHOLE("\x80\2Q.", "its stack is empty"),
	WHOLE("\x80\2]q\0h\0a.", "it holds no tensors"),
	WHOLE("\x80\2}q\0X\1\0\0\0xh\0s.", "it holds no tensors"),
	WHOLE("\x80\2cx\ny\n)Rq\0h\0b.", "it holds no tensors"),
};

static void
expect_whole(const char *bytes, size_t length, const char *message)
{
	struct weigh_files *files = hostile_pickle(bytes, length);
	struct model_options options = { .key = NULL };
	struct model model;
	struct error error = ERROR_INIT;

	assert_int_equal(model_read(files->files, 1, &options, &model,
	    &error), -1);
	if (strstr(error.message, message) == NULL)
		fail_msg("failed with: %s; expected: %s", error.message,
		    message);
	assert_int_equal(error.class, strstr(message, "no tensors") != NULL ?
	    ERROR_NOTHING : ERROR_DAMAGED);
	model_free(&model);
	weigh_close(files);
}

static void
test_odd_pickles(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++)
		expect_whole(wholes[i].bytes, wholes[i].length,
		    wholes[i].message);
}

/* Lists in lists in lists, and a tensor in the innermost. */
static void
expect_nested(size_t depth, const char *message)
{
	struct pickler pickler = { .length = 0 };

	pickler_put(&pickler, "\x80\2");
	for (size_t i = 0; i < depth; i++)
		pickler_put(&pickler, "]");
	pickler_tensor(&pickler, "0", 16);
	for (size_t i = 0; i < depth; i++)
		pickler_put(&pickler, "a");
	pickler_put(&pickler, ".");
	hostile_expect(hostile_pickle(pickler.bytes, pickler.length),
	    message);
}

static void
test_deep(void **state)
{
	struct pickler pickler = { .length = 0 };

	(void)state;
	expect_nested(1, "fine");
	expect_nested(128, "fine");
	expect_nested(129, "nested over 128 deep");
	expect_whole("\x80\2]]]aaa.", 8, "its stack is empty");
	/* What is too deep is not seen; it is said when it may matter. */
	pickler_put(&pickler, "\x80\2]");
	pickler_tensor(&pickler, "0", 16);
	pickler_put(&pickler, "a");
	for (size_t i = 0; i < 1000; i++)
		pickler_put(&pickler, "]");
	pickler_tensor(&pickler, "1", 4);
	for (size_t i = 0; i < 1001; i++)
		pickler_put(&pickler, "a");
	pickler_put(&pickler, ".");
	hostile_expect(hostile_pickle(pickler.bytes, pickler.length),
	    "nested over 128 deep");
}

static void
test_too_many_marks(void **state)
{
	size_t length = 70000;
	char *bytes = malloc(length);
	struct zipper *zipper = new_zipper();

	(void)state;
	memset(bytes, '(', length);
	memcpy(bytes, "\x80\2", 2);
	add(zipper, (struct member){ .name = "a/data.pkl", .data = bytes,
	    .length = length, .extra = 4 });
	hostile_expect(hostile_zip(zipper, false),
	    "nested over 65536 deep");
	free(bytes);
}

/* Each list holds the one before it ten times: 10^20 ways to one tensor. */
static void
test_many_ways(void **state)
{
	struct pickler pickler = { .length = 0 };

	(void)state;
	pickler_put(&pickler, "\x80\2");
	pickler_tensor(&pickler, "0", 16);
	pickler_put(&pickler, "q");
	pickler_number(&pickler, 0, 1);
	for (uint8_t i = 0; i < 20; i++) {
		pickler_put(&pickler, "](");
		for (int j = 0; j < 10; j++) {
			pickler_put(&pickler, "h");
			pickler_number(&pickler, i, 1);
		}
		pickler_put(&pickler, "eq");
		pickler_number(&pickler, i + 1u, 1);
	}
	pickler_put(&pickler, ".");
	hostile_expect(hostile_pickle(pickler.bytes, pickler.length),
	    "more than 1000000 tensors");

	/* The same without a tensor. */
	pickler.length = 0;
	pickler_raw(&pickler, "\x80\2]q\0", 5);
	for (uint8_t i = 0; i < 20; i++) {
		pickler_put(&pickler, "](");
		for (int j = 0; j < 10; j++) {
			pickler_put(&pickler, "h");
			pickler_number(&pickler, i, 1);
		}
		pickler_put(&pickler, "eq");
		pickler_number(&pickler, i + 1u, 1);
	}
	pickler_put(&pickler, ".");
	hostile_expect(hostile_pickle(pickler.bytes, pickler.length),
	    "refers to itself in too many ways");
}

/* What a name may be, and what not. */
static void
expect_name(const char *name, size_t length, const char *message)
{
	struct pickler pickler = { .length = 0 };

	pickler_put(&pickler, "\x80\2}(");
	pickler_text(&pickler, "w");
	pickler_tensor(&pickler, "0", 16);
	pickler_bytes(&pickler, name, length);
	pickler_tensor(&pickler, "1", 4);
	pickler_put(&pickler, "u.");
	hostile_expect(hostile_pickle(pickler.bytes, pickler.length),
	    message);
}

static void
test_names(void **state)
{
	char *name = malloc(5000);

	(void)state;
	expect_name("../../etc/passwd", 16, "fine");
	expect_name("/", 1, "fine");
	expect_name("", 0, "fine");
	expect_name("\xff\xfe", 2, "fine");
	expect_name("x\0y", 3, "refused x: its name holds a NUL");
	expect_name("\0", 1, "refused its name holds a NUL");
	expect_name("w", 1, "two of its tensors are named w");
	memset(name, 'n', 5000);
	expect_name(name, 4096, "fine");
	expect_name(name, 4097, "name is longer than 4096 bytes");
	free(name);
}

/* The same name by two ways: "a.b" and b in a. */
static void
test_twins(void **state)
{
	struct pickler pickler = { .length = 0 };

	(void)state;
	pickler_put(&pickler, "\x80\2}(");
	pickler_text(&pickler, "a.b");
	pickler_tensor(&pickler, "0", 16);
	pickler_text(&pickler, "a");
	pickler_put(&pickler, "}");
	pickler_text(&pickler, "b");
	pickler_tensor(&pickler, "1", 4);
	pickler_put(&pickler, "su.");
	hostile_expect(hostile_pickle(pickler.bytes, pickler.length),
	    "two of its tensors are named a.b");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_many_dimensions),
		cmocka_unit_test(test_odd_values),
		cmocka_unit_test(test_odd_pickles),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_too_many_marks),
		cmocka_unit_test(test_many_ways),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_twins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
