#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "format/pickle.h"
#include "format/window.h"
#include "kit/kit.h"

/* Read a pickle from ${length} bytes; ${behind}: where the window stands. */
static struct pickle *
read_bytes(const void *data, size_t length, struct error *error,
    uint64_t *behind)
{
	struct source_memory memory = { data, length };
	struct source source = source_from_memory(&memory);
	struct window *window = malloc(sizeof(*window));
	struct pickle *pickle;

	window_init(window, &source, 0, length);
	pickle = pickle_read(window, error);
	if (behind != NULL)
		*behind = window->at;
	free(window);
	return pickle;
}

#define READ(text) read_good(text, sizeof(text) - 1)

static struct pickle *
read_good(const void *data, size_t length)
{
	struct error error = ERROR_INIT;
	uint64_t behind;
	struct pickle *pickle = read_bytes(data, length, &error, &behind);

	if (pickle == NULL)
		fail_msg("%s", error.message);
	assert_int_equal(behind, length);
	return pickle;
}

#define EXPECT_BAD(text, cause, message) \
	expect_bad(text, sizeof(text) - 1, cause, message)

static void
expect_bad(const void *data, size_t length, enum error_cause cause,
    const char *message)
{
	struct error error = ERROR_INIT;

	assert_null(read_bytes(data, length, &error, NULL));
	if (error.cause != cause || strstr(error.message, message) == NULL)
		fail_msg("cause %d: %s; expected %d: %s", error.cause,
		    error.message, cause, message);
}

static void
test_scalars(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		enum pickle_kind kind;
		int64_t integer;
	} cases[] = {
		{ "N.", 2, PICKLE_NONE, 0 },
		{ "\x88.", 2, PICKLE_BOOLEAN, 1 },
		{ "\x89.", 2, PICKLE_BOOLEAN, 0 },
		{ "K\xff.", 3, PICKLE_INTEGER, 255 },
		{ "M\xff\xff.", 4, PICKLE_INTEGER, 65535 },
		{ "J\xfe\xff\xff\xff.", 6, PICKLE_INTEGER, -2 },
		{ "\x8a\0.", 3, PICKLE_INTEGER, 0 },
		{ "\x8a\1\x80.", 4, PICKLE_INTEGER, -128 },
		{ "\x8a\2\xff\0.", 5, PICKLE_INTEGER, 255 },
		{ "\x8a\x8\0\0\0\0\0\0\0\x80.", 11, PICKLE_INTEGER,
		    INT64_MIN },
	};
	struct pickle *pickle;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char bytes[32] = "\x80\2";

		memcpy(bytes + 2, cases[i].bytes, cases[i].length);
		pickle = read_good(bytes, cases[i].length + 2);
		assert_int_equal(pickle_root(pickle)->kind, cases[i].kind);
		assert_true(pickle_root(pickle)->integer == cases[i].integer);
		pickle_free(pickle);
	}
	pickle = READ("\x80\2G\xbf\xf8\0\0\0\0\0\0.");
	assert_int_equal(pickle_root(pickle)->kind, PICKLE_REAL);
	assert_true(pickle_root(pickle)->real == -1.5);
	pickle_free(pickle);
	pickle = READ("\x80\2\x8a\x9\0\0\0\0\0\0\0\0\1.");
	assert_int_equal(pickle_root(pickle)->kind, PICKLE_BIG);
	assert_int_equal(pickle_root(pickle)->count, 9);
	pickle_free(pickle);
}

static void
test_texts(void **state)
{
	struct pickle *pickle;

	(void)state;
	pickle = READ("\x80\4\x95\0\0\0\0\0\0\0\0\x8c\3abc.");
	assert_true(pickle_is_text(pickle_root(pickle), "abc"));
	assert_false(pickle_is_text(pickle_root(pickle), "ab"));
	pickle_free(pickle);
	pickle = READ("\x80\2X\2\0\0\0a\0.");
	assert_false(pickle_is_text(pickle_root(pickle), "a"));
	assert_int_equal(pickle_root(pickle)->count, 2);
	pickle_free(pickle);
	pickle = READ("\x80\5\x96\2\0\0\0\0\0\0\0ab.");
	assert_int_equal(pickle_root(pickle)->kind, PICKLE_BYTES);
	pickle_free(pickle);
	EXPECT_BAD("\x80\2X\xff\xff\xff\xff" "a.", CAUSE_OTHER,
	    "longer than what is left");
	EXPECT_BAD("\x80\4\x8d\xff\xff\xff\xff\xff\xff\xff\xff" "a.",
	    CAUSE_OTHER, "longer than what is left");
}

static void
test_containers(void **state)
{
	struct pickle *pickle;
	const struct pickle_node *root, *inner;

	(void)state;
	/* {"k": [1, 2, 3], 5: (1,)} with a memo. */
	pickle = READ("\x80\2}q\0(X\1\0\0\0k]q\1(K\1K\2K\3eK\5K\1\x85u.");
	root = pickle_root(pickle);
	assert_int_equal(root->kind, PICKLE_DICT);
	assert_int_equal(root->count, 4);
	assert_true(pickle_is_text(root->items[0], "k"));
	inner = root->items[1];
	assert_int_equal(inner->kind, PICKLE_LIST);
	assert_int_equal(inner->count, 3);
	assert_int_equal(inner->items[2]->integer, 3);
	assert_int_equal(root->items[3]->kind, PICKLE_TUPLE);
	pickle_free(pickle);

	/* A list that holds itself. */
	pickle = READ("\x80\2]q\7h\7a.");
	root = pickle_root(pickle);
	assert_ptr_equal(root->items[0], root);
	pickle_free(pickle);

	/* A set, a frozenset, and the other ways to a list and a dict. */
	pickle = READ("\x80\4(\x8f(K\1K\2\x90(K\1\x91(K\1l(K\1K\2d}K\1K\2st.");
	root = pickle_root(pickle);
	assert_int_equal(root->count, 5);
	assert_int_equal(root->items[0]->kind, PICKLE_SET);
	assert_int_equal(root->items[0]->count, 2);
	assert_int_equal(root->items[1]->kind, PICKLE_SET);
	assert_int_equal(root->items[2]->kind, PICKLE_LIST);
	assert_int_equal(root->items[3]->count, 2);
	assert_int_equal(root->items[4]->count, 2);
	pickle_free(pickle);
}

/* Names are never looked up, calls never made: they are kept. */
static void
test_calls(void **state)
{
	struct pickle *pickle;
	const struct pickle_node *root;

	(void)state;
	pickle = READ("\x80\2cos\nsystem\nX\4\0\0\0true\x85R.");
	root = pickle_root(pickle);
	assert_int_equal(root->kind, PICKLE_CALL);
	assert_int_equal(root->call->callee->kind, PICKLE_GLOBAL);
	assert_true(pickle_is_text(root->call->callee->items[0], "os"));
	assert_true(pickle_is_text(root->call->callee->items[1], "system"));
	assert_true(pickle_is_text(root->call->arguments->items[0], "true"));
	pickle_free(pickle);

	/* An OrderedDict with items, an object with a state. */
	pickle = READ("\x80\4\x8c\1m\x8c\1n\x93)R(K\1K\2uK\3K\4s}K\5K\6sb.");
	root = pickle_root(pickle);
	assert_int_equal(root->call->dict->count, 4);
	assert_int_equal(root->call->state->kind, PICKLE_DICT);
	assert_null(root->call->list);
	pickle_free(pickle);

	pickle = READ("\x80\4\x8c\1m\x8c\1n\x93)}\x92K\1a.");
	root = pickle_root(pickle);
	assert_int_equal(root->call->keywords->kind, PICKLE_DICT);
	assert_int_equal(root->call->list->count, 1);
	pickle_free(pickle);
}

static void
test_persistent(void **state)
{
	struct pickle *pickle;

	(void)state;
	/* Also one that the result does not reach. */
	pickle = READ("\x80\2K\7Q0(K\1K\2tQ.");
	assert_int_equal(pickle_persistent_count(pickle), 2);
	assert_int_equal(pickle_persistent(pickle, 0)->integer, 7);
	assert_int_equal(pickle_persistent(pickle, 1)->count, 2);
	assert_int_equal(pickle_root(pickle)->kind, PICKLE_PERSISTENT);
	pickle_free(pickle);
}

static void
test_several_in_a_row(void **state)
{
	const char bytes[] = "\x80\2K\1.\x80\2K\2.";
	struct source_memory memory = { bytes, sizeof(bytes) - 1 };
	struct source source = source_from_memory(&memory);
	struct window *window = malloc(sizeof(*window));
	struct error error = ERROR_INIT;
	struct pickle *pickle;

	(void)state;
	window_init(window, &source, 0, source.size);
	for (int i = 1; i <= 2; i++) {
		pickle = pickle_read(window, &error);
		assert_non_null(pickle);
		assert_int_equal(pickle_root(pickle)->integer, i);
		pickle_free(pickle);
	}
	assert_int_equal(window_left(window), 0);
	free(window);
}

static void
test_refused(void **state)
{
	(void)state;
	EXPECT_BAD("N.", CAUSE_UNSUPPORTED, "does not begin");
	EXPECT_BAD("\x80\1N.", CAUSE_UNSUPPORTED, "protocol");
	EXPECT_BAD("\x80\6N.", CAUSE_UNSUPPORTED, "protocol");
	EXPECT_BAD("\x80\2(ios\nsystem\n.", CAUSE_UNSUPPORTED, "opcode");
	EXPECT_BAD("\x80\2\x82\1.", CAUSE_UNSUPPORTED, "opcode");
	EXPECT_BAD("\x80\2NNb.", CAUSE_UNSUPPORTED, "state");
	EXPECT_BAD("\x80\2NNa.", CAUSE_UNSUPPORTED, "hold");
	EXPECT_BAD("\x80\2}Na.", CAUSE_UNSUPPORTED, "hold");
}

static void
test_damaged(void **state)
{
	(void)state;
	EXPECT_BAD("", CAUSE_OTHER, "ends in the middle");
	EXPECT_BAD("\x80", CAUSE_OTHER, "ends in the middle");
	EXPECT_BAD("\x80\2N", CAUSE_OTHER, "ends in the middle");
	EXPECT_BAD("\x80\2X\1", CAUSE_OTHER, "ends in the middle");
	EXPECT_BAD("\x80\2cmodule\nname", CAUSE_OTHER, "ends in the middle");
	EXPECT_BAD("\x80\2.", CAUSE_OTHER, "stack is empty");
	EXPECT_BAD("\x80\2N\x86.", CAUSE_OTHER, "stack is empty");
	EXPECT_BAD("\x80\2R.", CAUSE_OTHER, "stack is empty");
	EXPECT_BAD("\x80\2Q.", CAUSE_OTHER, "stack is empty");
	EXPECT_BAD("\x80\2q\1.", CAUSE_OTHER, "stack is empty");
	EXPECT_BAD("\x80\2t.", CAUSE_OTHER, "mark is missing");
	EXPECT_BAD("\x80\2u.", CAUSE_OTHER, "mark is missing");
	EXPECT_BAD("\x80\2(u.", CAUSE_OTHER, "stack is empty");
	EXPECT_BAD("\x80\2(K\1d.", CAUSE_OTHER, "no value");
	EXPECT_BAD("\x80\2}(K\1u.", CAUSE_OTHER, "no value");
	/* What lies under a mark is out of reach. */
	EXPECT_BAD("\x80\2NN(\x86.", CAUSE_OTHER, "stack is empty");
	EXPECT_BAD("\x80\2N(.", CAUSE_OTHER, "stack is empty");
	EXPECT_BAD("\x80\2h\1.", CAUSE_OTHER, "never met");
	EXPECT_BAD("\x80\2j\xff\xff\xff\xff.", CAUSE_OTHER, "never met");
	EXPECT_BAD("\x80\4NN\x93.", CAUSE_OTHER, "no text");
	EXPECT_BAD("\x80\2" "0.", CAUSE_OTHER, "stack is empty");
}

/* A marked nothing, popped marks. */
static void
test_empty_marks(void **state)
{
	struct pickle *pickle;

	(void)state;
	pickle = READ("\x80\2(t.");
	assert_int_equal(pickle_root(pickle)->count, 0);
	pickle_free(pickle);
	pickle = READ("\x80\2((K\1" "10N.");
	assert_int_equal(pickle_root(pickle)->kind, PICKLE_NONE);
	pickle_free(pickle);
	pickle = READ("\x80\2K\1" "2\x86.");
	assert_ptr_equal(pickle_root(pickle)->items[0],
	    pickle_root(pickle)->items[1]);
	pickle_free(pickle);
}

/* ${count} times ${opcode} behind the protocol. */
static void
expect_limit(char opcode, size_t count, const char *message)
{
	char *bytes = malloc(count + 2);

	memcpy(bytes, "\x80\2", 2);
	memset(bytes + 2, opcode, count);
	expect_bad(bytes, count + 2, CAUSE_LIMIT, message);
	free(bytes);
}

static void
test_limits(void **state)
{
	char *bytes;
	size_t length = PICKLE_TEXT_MAXIMUM + 100;
	uint32_t claim = PICKLE_TEXT_MAXIMUM + 1;

	(void)state;
	expect_limit('(', 70000, "nested");
	expect_limit('N', 1100000, "more than");
	EXPECT_BAD("\x80\2Nr\xff\xff\xff\xff.", CAUSE_LIMIT, "more than");

	bytes = calloc(1, length);
	memcpy(bytes, "\x80\2X", 3);
	memcpy(bytes + 3, &claim, 4);
	expect_bad(bytes, length, CAUSE_LIMIT, "holds a text");
	free(bytes);
}

/* Deep nesting without marks: the machine does not recurse. */
static void
test_deep(void **state)
{
	size_t depth = 900000;
	char *bytes = malloc(depth + 4);
	struct pickle *pickle;

	(void)state;
	memcpy(bytes, "\x80\2N", 3);
	memset(bytes + 3, '\x85', depth);
	bytes[depth + 3] = '.';
	pickle = read_good(bytes, depth + 4);
	assert_int_equal(pickle_root(pickle)->kind, PICKLE_TUPLE);
	pickle_free(pickle);
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scalars),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_persistent),
		cmocka_unit_test(test_several_in_a_row),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_empty_marks),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
