#include <string.h>

#include "base/text.h"
#include "kit/kit.h"

static void
decodes_each_length(void **state)
{
	static const struct {
		const char *text;
		size_t length;
		uint32_t code;
	} cases[] = {
		{ "a", 1, 'a' },
		{ "\x7f", 1, 0x7f },
		{ "\xc2\x80", 2, 0x80 },
		{ "\xdf\xbf", 2, 0x7ff },
		{ "\xe0\xa0\x80", 3, 0x800 },
		{ "\xed\x9f\xbf", 3, 0xd7ff },
		{ "\xee\x80\x80", 3, 0xe000 },
		{ "\xef\xbf\xbf", 3, 0xffff },
		{ "\xf0\x90\x80\x80", 4, 0x10000 },
		{ "\xf4\x8f\xbf\xbf", 4, 0x10ffff },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t code = 0;

		assert_int_equal(text_decode(cases[i].text,
		    strlen(cases[i].text), &code), cases[i].length);
		assert_int_equal(code, cases[i].code);
		assert_true(text_is_utf8(cases[i].text));

		/* Cut anywhere it is nothing. */
		for (size_t cut = 0; cut < cases[i].length; cut++)
			assert_int_equal(text_decode(cases[i].text, cut,
			    &code), 0);
	}
}

static void
refuses_what_is_not_utf8(void **state)
{
	static const char *const cases[] = {
		"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",
		"\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xed\xbf\xbf",
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xfe",
		"\xc3(", "\xe2\x82", "\xe2(\x82", "\xf0\x9f\x98",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t code;
		char inside[16];

		assert_int_equal(text_decode(cases[i], strlen(cases[i]),
		    &code), 0);
		assert_false(text_is_utf8(cases[i]));
		strcpy(inside, "ok ");
		strcat(inside, cases[i]);
		assert_false(text_is_utf8(inside));
	}
	assert_true(text_is_utf8(""));
	assert_true(text_is_utf8("epoch=3 \xc3\xa9\xe2\x82\xac"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_each_length),
		cmocka_unit_test(refuses_what_is_not_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
