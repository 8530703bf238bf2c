#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "format/format.h"
#include "kit/kit.h"

static void
expect_bytes(const char *text, size_t length, enum format_verdict verdict,
    const char *reason)
{
	struct source_memory memory = { text, length };
	struct source source = source_from_memory(&memory);
	struct format_report report;
	struct error error = ERROR_INIT;

	assert_ok(format_inspect(&source, "trainer_state.json", &report,
	    &error), error);
	assert_int_equal(report.kind, FORMAT_JSON);
	if (report.verdict != verdict || strstr(report.reason, reason) == NULL)
		fail_msg("%.60s: verdict %d, %s", text, report.verdict,
		    report.reason);
	format_report_free(&report);
}

static void
expect(const char *text, enum format_verdict verdict, const char *reason)
{
	expect_bytes(text, strlen(text), verdict, reason);
}

static void
test_whole(void **state)
{
	(void)state;
	expect("{}", FORMAT_WHOLE, "");
	expect("[]\n", FORMAT_WHOLE, "");
	expect(" { \"a\" : [ 1, 2.5, null, true ] }\r\n", FORMAT_WHOLE, "");
	expect("{\"a\\\"}\": \"]\\\\\"}", FORMAT_WHOLE, "");
	/* What Python writes and JSON does not know. */
	expect("{\"loss\": NaN, \"a\": -Infinity}", FORMAT_WHOLE, "");
	expect("{\"flos\": 123456789012345678901234567890}", FORMAT_WHOLE,
	    "");
	expect("{\"a\": 1, \"a\": 2}", FORMAT_WHOLE, "");
	expect("\xef\xbb\xbf{\"a\": 1}", FORMAT_WHOLE, "");
	expect("{ // a comment\n\"a\": 1}", FORMAT_WHOLE, "");
}

static void
test_torn(void **state)
{
	(void)state;
	expect("{", FORMAT_TORN, "ends in the middle, at byte 1");
	expect("{\"a\": NaN", FORMAT_TORN, "ends in the middle");
	expect("{\"a\": \"}", FORMAT_TORN, "ends in the middle");
	expect("{\"a\": \"\\\"}", FORMAT_TORN, "ends in the middle");
	expect(" \n", FORMAT_TORN, "ends in the middle");
	expect("{]", FORMAT_TORN, "do not match");
	expect("}", FORMAT_TORN, "do not match");
	expect("{}\n{", FORMAT_TORN, "ends in the middle");
	expect("{}}", FORMAT_TORN, "follows the end");
	expect("{} x", FORMAT_TORN, "follows the end");
	expect("{\"a\": }", FORMAT_TORN, "not JSON");
	expect("{\"a\"}", FORMAT_TORN, "not JSON");
	expect("{\"a\": \"\xff\"}", FORMAT_TORN, "not JSON");
	expect_bytes("{\"a\": 1}\0\0\0", 11, FORMAT_TORN, "a byte 0");
	expect_bytes("{\"a\": \"\0\"}", 10, FORMAT_TORN, "a byte 0");
	expect("", FORMAT_TORN, "empty");
}

/* Nothing closes: any beginning of it is one, too. */
static void
test_unproven(void **state)
{
	(void)state;
	expect("123", FORMAT_UNPROVEN, "no bracket");
	expect("\"text\"", FORMAT_UNPROVEN, "no bracket");
	/* JSON Lines, as mmengine writes scalars.json. */
	expect("{\"a\": 1}\n{\"a\": 2}\n", FORMAT_UNPROVEN, "several");
}

static void
test_deep_and_long(void **state)
{
	const size_t depth = 100000, length = 3 << 20;
	char *text = malloc(length + 10);

	(void)state;
	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	expect_bytes(text, 2 * depth, FORMAT_UNPROVEN, "nested");

	/* Over the size that is parsed: its brackets still tell. */
	memset(text, ' ', length);
	memcpy(text, "{\"a\": \"", 7);
	memcpy(text + length - 2, "\"}", 2);
	expect_bytes(text, length, FORMAT_WHOLE, "");
	expect_bytes(text, length - 1, FORMAT_TORN, "in the middle");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_unproven),
		cmocka_unit_test(test_deep_and_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
