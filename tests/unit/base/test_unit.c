#include <string.h>

#include "base/clock.h"
#include "base/unit.h"
#include "kit/kit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void
reads_durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{ "25s", 25 * CLOCK_SECOND },
		{ "5m", 300 * CLOCK_SECOND },
		{ "2h", 7200 * CLOCK_SECOND },
		{ "7d", 7 * 86400 * CLOCK_SECOND },
		{ "500ms", CLOCK_SECOND / 2 },
		{ "1.5h", 5400 * CLOCK_SECOND },
		{ "0s", 0 },
		{ "0.25 s", CLOCK_SECOND / 4 },
		{ "007s", 7 * CLOCK_SECOND },
		{ "0.0000000019s", 1 },
		{ "1.00000000000000000000000000000000001s", CLOCK_SECOND },
		{ "106751d", UINT64_C(106751) * 86400 * CLOCK_SECOND },
		{ "9223372036854.775807ms", UINT64_C(9223372036854775807) },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error error = ERROR_INIT;
		uint64_t value = 1;

		assert_ok(unit_parse_duration(cases[i].text, &value, &error),
		    error);
		assert_int_equal(value, cases[i].value);
	}
}

static void
refuses_other_durations(void **state)
{
	static const struct {
		const char *text;
		const char *reason;
	} cases[] = {
		{ "", "does not begin with a number" },
		{ "s", "does not begin with a number" },
		{ "-5s", "does not begin with a number" },
		{ "+5s", "does not begin with a number" },
		{ " 5s", "does not begin with a number" },
		{ ".5s", "does not begin with a number" },
		{ "1.s", "does not begin with a number" },
		{ "inf", "does not begin with a number" },
		{ "10", "unit is missing" },
		{ "10 ", "unit is missing" },
		{ "10S", "unit is unknown" },
		{ "10sec", "unit is unknown" },
		{ "10s ", "unit is unknown" },
		{ "1m30s", "unit is unknown" },
		{ "1e3s", "unit is unknown" },
		{ "1,5h", "unit is unknown" },
		{ "1.5.5s", "unit is unknown" },
		{ "10  s", "unit is unknown" },
		{ "0x10s", "unit is unknown" },
		{ "106752d", "too large" },
		{ "9223372036854.775808ms", "too large" },
		{ "99999999999999999999999999999999999999999999s",
		    "too large" },
		{ "18446744073709551616s", "too large" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error error = ERROR_INIT;
		uint64_t value = 77;

		assert_int_equal(unit_parse_duration(cases[i].text, &value,
		    &error), -1);
		assert_int_equal(error.class, ERROR_USAGE);
		assert_non_null(strstr(error.message, cases[i].reason));
		assert_non_null(strstr(error.message, "is not a duration"));
		assert_non_null(strstr(error.cure, "25s"));
		assert_int_equal(value, 77);
	}
}

static void
reads_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{ "64MiB", 64 << 20 }, { "1.5 GB", 1500000000 },
		{ "100KiB", 102400 }, { "500B", 500 }, { "0B", 0 },
		{ "1KB", 1000 }, { "1kB", 1000 }, { "1MB", 1000000 },
		{ "1GiB", 1 << 30 }, { "2TiB", UINT64_C(2) << 40 },
		{ "3TB", UINT64_C(3000000000000) },
		{ "1.5KiB", 1536 }, { "0.0001KiB", 0 },
		{ "9223372036854775807B", INT64_MAX },
		{ "8388607TiB", UINT64_C(8388607) << 40 },
	};
	static const char *const wrong[] = { "64", "64M", "64mib", "64 MiB ",
	    "MiB", "-1B", "1e9B", "", "64KIB", "64Mb", "8388608TiB",
	    "9223372036854775808B", "1B2" };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error error = ERROR_INIT;
		uint64_t value = 1;

		assert_ok(unit_parse_size(cases[i].text, &value, &error),
		    error);
		assert_int_equal(value, cases[i].value);
	}
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct error error = ERROR_INIT;
		uint64_t value = 77;

		assert_int_equal(unit_parse_size(wrong[i], &value, &error),
		    -1);
		assert_int_equal(error.class, ERROR_USAGE);
		assert_non_null(strstr(error.message, "is not a size"));
		assert_int_equal(value, 77);
	}
}

static void
reads_numbers(void **state)
{
	static const char *const wrong[] = { "", "0", "11", "-1", "+1", " 1",
	    "1 ", "1.0", "one", "18446744073709551617",
	    "99999999999999999999999999" };
	struct error error = ERROR_INIT;
	uint64_t number = 0;

	(void)state;
	assert_ok(unit_parse_number("1", 1, 10, &number, &error), error);
	assert_int_equal(number, 1);
	assert_ok(unit_parse_number("0010", 1, 10, &number, &error), error);
	assert_int_equal(number, 10);
	assert_ok(unit_parse_number("18446744073709551615", 0, UINT64_MAX,
	    &number, &error), error);
	assert_true(number == UINT64_MAX);
	assert_int_equal(unit_parse_number("18446744073709551616", 0,
	    UINT64_MAX, &number, &error), -1);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		number = 77;
		assert_int_equal(unit_parse_number(wrong[i], 1, 10, &number,
		    &error), -1);
		assert_int_equal(error.class, ERROR_USAGE);
		assert_non_null(strstr(error.message, "from 1 to 10"));
		assert_int_equal(number, 77);
	}
}

static void
writes_sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" }, { 532, "532 B" }, { 1023, "1023 B" },
		{ 1024, "1.0 KiB" }, { 1434, "1.4 KiB" },
		{ 1048524, "1023.9 KiB" }, { 1048525, "1.0 MiB" },
		{ 1048575, "1.0 MiB" }, { 12 << 20, "12.0 MiB" },
		{ UINT64_C(3489660928), "3.25 GiB" },
		{ (UINT64_C(1) << 30) - 1, "1.00 GiB" },
		{ (UINT64_C(1) << 40) - 1, "1.00 TiB" },
		{ UINT64_C(1) << 50, "1.00 PiB" },
		{ UINT64_MAX, "16.00 EiB" },
	};
	char text[UNIT_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(unit_size_text(cases[i].bytes, text),
		    cases[i].text);
}

static void
writes_durations(void **state)
{
	static const struct {
		uint64_t value;
		const char *text;
	} cases[] = {
		{ 0, "0.0 s" }, { 400 * CLOCK_MILLISECOND, "0.4 s" },
		{ 10 * CLOCK_SECOND - 1, "9.9 s" },
		{ 12 * CLOCK_SECOND, "12 s" },
		{ 60 * CLOCK_SECOND - 1, "59 s" },
		{ 60 * CLOCK_SECOND, "1m00s" },
		{ 200 * CLOCK_SECOND, "3m20s" },
		{ 3600 * CLOCK_SECOND - 1, "59m59s" },
		{ 7500 * CLOCK_SECOND, "2h05m" },
		{ 86400 * CLOCK_SECOND - 1, "23h59m" },
		{ (3 * 86400 + 4 * 3600) * CLOCK_SECOND, "3d04h" },
		{ CLOCK_NEVER, "213503d23h" },
	};
	char text[UNIT_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(unit_duration_text(cases[i].value, text),
		    cases[i].text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_durations),
		cmocka_unit_test(refuses_other_durations),
		cmocka_unit_test(reads_sizes),
		cmocka_unit_test(reads_numbers),
		cmocka_unit_test(writes_sizes),
		cmocka_unit_test(writes_durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
