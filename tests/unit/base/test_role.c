#include "base/role.h"
#include "kit/kit.h"

static void
goes_both_ways(void **state)
{
	static const enum role roles[] = { ROLE_RESUME, ROLE_BEST, ROLE_FINAL };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		enum role role = (enum role)-1;

		assert_int_equal(role_parse(role_text(roles[i]), &role), 0);
		assert_int_equal(role, roles[i]);
	}
	assert_string_equal(role_text(ROLE_RESUME), "resume");
	assert_string_equal(role_text(ROLE_BEST), "best");
	assert_string_equal(role_text(ROLE_FINAL), "final");
}

static void
refuses_other_words(void **state)
{
	static const char *const words[] = { "", "Best", "best ", "resum",
	    "resumed" };
	enum role role = ROLE_FINAL;

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_int_equal(role_parse(words[i], &role), -1);
	assert_int_equal(role, ROLE_FINAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_both_ways),
		cmocka_unit_test(refuses_other_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
