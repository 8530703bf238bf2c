#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "kit/kit.h"

static void
says_what_where_and_cure(void **state)
{
	struct error error = ERROR_INIT;
	char text[ERROR_TEXT_SIZE];

	(void)state;
	assert_int_equal(error.class, ERROR_NONE);
	assert_string_equal(error_text(&error, text), "");

	assert_int_equal(error_set(&error, ERROR_DAMAGED, CAUSE_LIMIT,
	    "last.pt", "has %d tensors", 7), -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	assert_string_equal(error.object, "last.pt");
	assert_string_equal(error.message, "has 7 tensors");
	assert_string_equal(error.cure, "");
	assert_string_equal(error_text(&error, text),
	    "last.pt: has 7 tensors");

	assert_int_equal(error_cure(&error, "use %s", "less"), -1);
	assert_string_equal(error_text(&error, text),
	    "last.pt: has 7 tensors (use less)");
	error_cure(&error, "another");
	assert_string_equal(error.cure, "another");

	assert_int_equal(error_prefix(&error, "node %d", 3), -1);
	assert_string_equal(error.message, "node 3: has 7 tensors");

	error_set(&error, ERROR_FAILED, CAUSE_OTHER, NULL, "alone");
	assert_string_equal(error_text(&error, text), "alone");
	assert_string_equal(error.cure, "");

	error_clear(&error);
	assert_int_equal(error.class, ERROR_NONE);
	assert_string_equal(error.message, "");
}

static void
knows_errno_values(void **state)
{
	static const struct {
		int number;
		enum error_cause cause;
	} cases[] = {
		{ ENOENT, CAUSE_NOT_FOUND }, { EEXIST, CAUSE_EXISTS },
		{ EACCES, CAUSE_DENIED }, { EPERM, CAUSE_DENIED },
		{ EROFS, CAUSE_DENIED }, { ENOSPC, CAUSE_NO_SPACE },
		{ EDQUOT, CAUSE_NO_SPACE }, { ENOMEM, CAUSE_MEMORY },
		{ EIO, CAUSE_OTHER }, { 0, CAUSE_OTHER },
		{ 99999, CAUSE_OTHER }, { -1, CAUSE_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = ERROR_INIT;

		assert_int_equal(error_set_errno(&error, cases[i].number,
		    "x", "open"), -1);
		assert_int_equal(error.class, ERROR_FAILED);
		assert_int_equal(error.cause, cases[i].cause);
		assert_memory_equal(error.message, "open: ", 6);
		assert_true(strlen(error.message) > 6);
	}
}

static void
errno_text_survives_a_long_message(void **state)
{
	struct error error = ERROR_INIT;
	char long_text[2000];

	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	error_set_errno(&error, ENOSPC, long_text, "%s", long_text);
	assert_non_null(strstr(error.message, "xxx: No space left on device"));
	assert_string_not_equal(error.cure, "");
	assert_int_equal(strlen(error.object), sizeof(error.object) - 1);
}

static void
cuts_what_is_too_long(void **state)
{
	struct error error = ERROR_INIT;
	char long_text[4000], text[ERROR_TEXT_SIZE];

	(void)state;
	memset(long_text, 'y', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	error_set(&error, ERROR_FAILED, CAUSE_OTHER, long_text, "%s",
	    long_text);
	error_cure(&error, "%s", long_text);
	error_prefix(&error, "%s", long_text);
	assert_int_equal(strlen(error.object), sizeof(error.object) - 1);
	assert_int_equal(strlen(error.message), sizeof(error.message) - 1);
	assert_int_equal(strlen(error.cure), sizeof(error.cure) - 1);
	error_text(&error, text);
	assert_int_equal(strlen(text), 319 + 2 + 639 + 2 + 319 + 1);
}

static void
cuts_between_characters(void **state)
{
	struct error error = ERROR_INIT;
	char euros[3000];

	(void)state;
	for (size_t shift = 0; shift < 4; shift++) {
		memset(euros, 'a', shift);
		for (size_t i = shift; i + 3 < sizeof(euros); i += 3)
			strcpy(euros + i, "\xe2\x82\xac");
		error_set(&error, ERROR_FAILED, CAUSE_OTHER, euros, "%s",
		    euros);
		assert_true(text_is_utf8(error.object));
		assert_true(text_is_utf8(error.message));
		assert_true(strlen(error.message) > 600);
	}
}

static void
makes_foreign_bytes_harmless(void **state)
{
	struct error error = ERROR_INIT;

	(void)state;
	error_set(&error, ERROR_FAILED, CAUSE_OTHER, "a\nb\033[31m\x7f",
	    "%s", "x\r\n\ty\xc2\x9bz \xc3\xa9 \xff");
	assert_string_equal(error.object, "a?b?[31m?");
	assert_string_equal(error.message, "x???y?z \xc3\xa9 \xff");
	error_cure(&error, "do\vthis");
	assert_string_equal(error.cure, "do?this");
	error_prefix(&error, "one\ntwo");
	assert_memory_equal(error.message, "one?two: x", 10);
}

static void
may_be_made_of_its_own_texts(void **state)
{
	struct error error = ERROR_INIT;

	(void)state;
	error_set(&error, ERROR_DAMAGED, CAUSE_CHANGED, "object", "message");
	error_cure(&error, "cure");
	error_set(&error, error.class, error.cause, error.message,
	    "%s, %s, %s", error.object, error.message, error.cure);
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_int_equal(error.cause, CAUSE_CHANGED);
	assert_string_equal(error.object, "message");
	assert_string_equal(error.message, "object, message, cure");
	error_prefix(&error, "%s", error.message);
	assert_string_equal(error.message,
	    "object, message, cure: object, message, cure");
	error_set_errno(&error, ENOENT, error.message, "%s", error.object);
	assert_string_equal(error.message,
	    "message: No such file or directory");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_where_and_cure),
		cmocka_unit_test(knows_errno_values),
		cmocka_unit_test(errno_text_survives_a_long_message),
		cmocka_unit_test(cuts_what_is_too_long),
		cmocka_unit_test(cuts_between_characters),
		cmocka_unit_test(makes_foreign_bytes_harmless),
		cmocka_unit_test(may_be_made_of_its_own_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
