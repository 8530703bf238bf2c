#include "kit/kit.h"

#include <stdarg.h>
#include <string.h>

#include "s3/words.h"

static void
check(const char *text, ...)
{
	struct error error = ERROR_INIT;
	struct words *words = words_split(text, &error);
	const char *expected;
	va_list list;

	assert_non_null(words);
	va_start(list, text);
	for (size_t i = 0;; i++) {
		expected = va_arg(list, const char *);
		if (expected == NULL) {
			assert_null(words_array(words)[i]);
			break;
		}
		assert_non_null(words_array(words)[i]);
		assert_string_equal(words_array(words)[i], expected);
	}
	va_end(list);
	words_free(words);
}

static void
test_split(void **state)
{
	(void)state;
	check("a", "a", NULL);
	check("  a \t b  ", "a", "b", NULL);
	check("'a b' \"c d\" e\\ f", "a b", "c d", "e f", NULL);
	check("a'b'\"c\"d", "abcd", NULL);
	check("'' \"\"", "", "", NULL);
	check("'a\\b' \"a\\b\\\"\\\\\" $HOME `x` *", "a\\b", "a\\b\"\\",
	    "$HOME", "`x`", "*", NULL);
	check("a\\", "a\\", NULL);
}

static void
test_refused(void **state)
{
	char many[200];
	const char *texts[] = { "", "   ", "'open", "\"open", "a 'b", many };

	(void)state;
	memset(many, ' ', sizeof(many));
	for (size_t i = 0; i < 65; i++)
		many[2 * i] = 'a';
	many[sizeof(many) - 1] = '\0';
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error error = ERROR_INIT;

		assert_null(words_split(texts[i], &error));
		assert_int_equal(error.class, ERROR_USAGE);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
