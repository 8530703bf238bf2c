#include <string.h>

#include "base/buffer.h"
#include "kit/kit.h"

static void
grows_and_ends_with_nul(void **state)
{
	struct buffer buffer;
	struct error error = ERROR_INIT;

	(void)state;
	buffer_init(&buffer, 1 << 20);
	assert_null(buffer.data);
	assert_string_equal(buffer_text(&buffer), "");
	assert_ok(buffer_append(&buffer, NULL, 0, &error), error);
	assert_string_equal(buffer_text(&buffer), "");
	for (size_t i = 0; i < 100000; i++) {
		char byte = (char)('a' + i % 26);

		assert_ok(buffer_append(&buffer, &byte, 1, &error), error);
		assert_int_equal(buffer.data[i + 1], 0);
	}
	assert_int_equal(buffer.length, 100000);
	assert_int_equal(buffer.data[99999], 'a' + 99999 % 26);

	buffer_clear(&buffer);
	assert_int_equal(buffer.length, 0);
	assert_true(buffer.capacity > 100000);
	assert_string_equal(buffer_text(&buffer), "");

	buffer_free(&buffer);
	assert_null(buffer.data);
	assert_int_equal(buffer.limit, 1 << 20);
	assert_ok(buffer_append(&buffer, "again", 5, &error), error);
	assert_string_equal(buffer_text(&buffer), "again");
	buffer_free(&buffer);
	buffer_free(&buffer);
}

static void
keeps_its_limit(void **state)
{
	struct buffer buffer;
	struct error error = ERROR_INIT;

	(void)state;
	buffer_init(&buffer, 5);
	assert_ok(buffer_append(&buffer, "12345", 5, &error), error);
	assert_true(buffer.capacity <= 6);
	assert_int_equal(buffer_append(&buffer, "6", 1, &error), -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	assert_string_equal(error.message, "more than 5 bytes");
	assert_int_equal(buffer_append(&buffer, "6", SIZE_MAX, &error), -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	assert_int_equal(buffer_format(&buffer, &error, "%d", 7), -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	assert_string_equal(buffer_text(&buffer), "12345");
	assert_ok(buffer_format(&buffer, &error, "%s", ""), error);
	buffer_free(&buffer);

	buffer_init(&buffer, 0);
	assert_ok(buffer_append(&buffer, "", 0, &error), error);
	assert_int_equal(buffer_append(&buffer, "x", 1, &error), -1);
	buffer_free(&buffer);
}

static void
survives_lengths_that_cannot_be(void **state)
{
	struct buffer buffer;
	struct error error = ERROR_INIT;

	(void)state;
	buffer_init(&buffer, SIZE_MAX);
	assert_ok(buffer_append(&buffer, "ab", 2, &error), error);
	assert_int_equal(buffer_append(&buffer, "x", SIZE_MAX - 2, &error),
	    -1);
	assert_int_equal(error.cause, CAUSE_MEMORY);
	assert_int_equal(buffer_append(&buffer, "x", SIZE_MAX, &error), -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	assert_string_equal(buffer_text(&buffer), "ab");
	buffer_free(&buffer);
}

static void
formats(void **state)
{
	struct buffer buffer;
	struct error error = ERROR_INIT;

	(void)state;
	buffer_init(&buffer, 10000);
	assert_ok(buffer_format(&buffer, &error, "%s=%d", "a", 1), error);
	assert_ok(buffer_format(&buffer, &error, "&%05d", 42), error);
	assert_string_equal(buffer_text(&buffer), "a=1&00042");
	assert_ok(buffer_format(&buffer, &error, "%5000d", 1), error);
	assert_int_equal(buffer.length, 5009);
	assert_int_equal(strlen(buffer.data), 5009);
	buffer_free(&buffer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_and_ends_with_nul),
		cmocka_unit_test(keeps_its_limit),
		cmocka_unit_test(survives_lengths_that_cannot_be),
		cmocka_unit_test(formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
