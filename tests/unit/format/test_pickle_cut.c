#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "format/pickle_cut.h"
#include "format/pickle_spans.h"
#include "kit/kit.h"

/* Cut the ${drop}th pair (-1: none) out of a pickle; compare the result. */
static void
check(const char *bytes, size_t length, int drop, const char *wanted,
    size_t wanted_length)
{
	struct pickle_spans spans;
	struct buffer pickle;
	struct error error = ERROR_INIT;
	bool drops[8] = { false };

	buffer_init(&pickle, 4096);
	if (drop >= 0)
		drops[drop] = true;
	assert_ok(pickle_spans_make((const uint8_t *)bytes, length, &spans,
	    &error), error);
	assert_ok(pickle_cut(&spans, drops, &pickle, &error), error);
	assert_int_equal(pickle.length, wanted_length);
	assert_memory_equal(pickle.data, wanted, wanted_length);
	pickle_spans_free(&spans);
	buffer_free(&pickle);
}

#define CHECK(bytes, drop, wanted) \
	check(bytes, sizeof(bytes) - 1, drop, wanted, sizeof(wanted) - 1)

static void
test_what_is_dropped(void **state)
{
	(void)state;
	/* {"a": [1, 2], "b": 3} */
	CHECK("\x80\2}q\0(U\1aq\1]q\2(K\1K\2eU\1bq\3K\3u.", -1,
	    "\x80\2}q\0(U\1aq\1]q\2(K\1K\2eU\1bq\3K\3u.");
	CHECK("\x80\2}q\0(U\1aq\1]q\2(K\1K\2eU\1bq\3K\3u.", 0,
	    "\x80\2}q\0(U\1aq\1NU\1bq\3K\3u.");
	CHECK("\x80\2}q\0(U\1aq\1]q\2(K\1K\2eU\1bq\3K\3u.", 1,
	    "\x80\2}q\0(U\1aq\1]q\2(K\1K\2eU\1bq\3Nu.");
	/* SETITEM, one by one. */
	CHECK("\x80\2}U\1aK\1sU\1bK\2s.", 0, "\x80\2}U\1aNsU\1bK\2s.");
}

/* What is dropped and asked for later is made, and thrown away. */
static void
test_what_is_shared(void **state)
{
	(void)state;
	/* {"a": [1, [2]], "b": the [2] of it} */
	CHECK("\x80\2}(U\1a](K\1]q\7K\2aeU\1bh\7u.", 0,
	    "\x80\2}(U\1a]q\7K\2a0NU\1bh\7u.");
	/* The inner list holds what is made before it: both are needed. */
	CHECK("\x80\2}(U\1a](U\1xq\5K\1]q\7h\5aeU\1bh\7u.", 0,
	    "\x80\2}(U\1aU\1xq\0050]q\7h\5a0NU\1bh\7u.");
	/* A part of what is needed anyway is not made twice. */
	CHECK("\x80\2}(U\1a]q\5]q\6K\1aaU\1bh\6U\1ch\5u.", 0,
	    "\x80\2}(U\1a]q\5]q\6K\1aa0NU\1bh\6U\1ch\5u.");
	/* The dropped value itself. */
	CHECK("\x80\2}(U\1a]q\5K\1aU\1bh\5u.", 0,
	    "\x80\2}(U\1a]q\5K\1a0NU\1bh\5u.");
	/* A list that holds itself. */
	CHECK("\x80\2}(U\1a]q\5(h\5]q\6eU\1bh\6u.", 0,
	    "\x80\2}(U\1a]q\0060NU\1bh\6u.");
}

/* MEMOIZE counts: its numbers are written out, frames are left out. */
static void
test_protocol_4(void **state)
{
	(void)state;
	CHECK("\x80\4\x95\0\0\0\0\0\0\0\0}\x94(\x8c\1a\x94]\x94K\1a"
	    "\x8c\1b\x94h\3u.", 0,
	    "\x80\4}r\0\0\0\0(\x8c\1ar\1\0\0\0N\x8c\1br\3\0\0\0h\3u.");
	CHECK("\x80\4}\x94(\x8c\1a\x94]\x94K\1a\x8c\1b\x94h\2u.", 0,
	    "\x80\4}r\0\0\0\0(\x8c\1ar\1\0\0\0]r\2\0\0\0K\1a0N\x8c\1b"
	    "r\3\0\0\0h\2u.");
}

static void
expect_refusal(const char *bytes, size_t length, enum error_cause cause)
{
	struct pickle_spans spans;
	struct error error = ERROR_INIT;

	assert_int_equal(pickle_spans_make((const uint8_t *)bytes, length,
	    &spans, &error), -1);
	pickle_spans_free(&spans);
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_int_equal(error.cause, cause);
}

#define REFUSE(bytes, cause) expect_refusal(bytes, sizeof(bytes) - 1, cause)

static void
test_refusals(void **state)
{
	(void)state;
	/* Adding to what the memo gave, remembering twice, copies. */
	REFUSE("\x80\2]q\0]h\0K\1aa.", CAUSE_UNSUPPORTED);
	REFUSE("\x80\2]q\0]q\0a.", CAUSE_UNSUPPORTED);
	REFUSE("\x80\2]2a.", CAUSE_UNSUPPORTED);
	REFUSE("\x80\2]q\0h\0q\1a.", CAUSE_UNSUPPORTED);
	REFUSE("\x80\2]", CAUSE_OTHER);
	REFUSE("\x80\2.", CAUSE_OTHER);
	REFUSE("\x80\2]].", CAUSE_OTHER);
	REFUSE("\x80\2(].", CAUSE_OTHER);
	REFUSE("\x80\2e.", CAUSE_OTHER);
	REFUSE("\x80\2h\1.", CAUSE_OTHER);
	REFUSE("\x80\2K.", CAUSE_OTHER);
	REFUSE("\x80\2].more", CAUSE_OTHER);
	REFUSE("\x80\2X\xff\xff\xff\xffx.", CAUSE_OTHER);
	REFUSE("\x80\2cmodule\nname", CAUSE_OTHER);
	REFUSE("\x80\2\xff.", CAUSE_OTHER);
	REFUSE("", CAUSE_OTHER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_dropped),
		cmocka_unit_test(test_what_is_shared),
		cmocka_unit_test(test_protocol_4),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
