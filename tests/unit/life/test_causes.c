#include "kit/kit.h"

#include <stdio.h>

#include "life/causes.h"

static bool
add(struct causes *causes, const char *id, uint64_t when)
{
	struct cause cause = { .when = when };

	snprintf(cause.id, sizeof(cause.id), "%s", id);
	return causes_add(causes, &cause);
}

static void
the_earliest_counts(void **state)
{
	struct causes causes = { 0 };

	(void)state;
	assert_null(causes_first(&causes));
	assert_true(add(&causes, "a", 100));
	assert_false(add(&causes, "b", 200));
	assert_true(add(&causes, "c", 50));
	assert_string_equal(causes_first(&causes)->id, "c");
	assert_true(causes_remove(&causes, "c"));
	assert_false(causes_remove(&causes, "c"));
	assert_string_equal(causes_first(&causes)->id, "a");
	assert_true(causes_remove(&causes, "a"));
	assert_true(causes_remove(&causes, "b"));
	assert_null(causes_first(&causes));
}

static void
one_that_slides_is_not_put_off(void **state)
{
	struct causes causes = { 0 };

	(void)state;
	add(&causes, "a", 100);
	assert_false(add(&causes, "a", 300));
	assert_int_equal(causes_first(&causes)->when, 100);
	assert_true(add(&causes, "a", 40));
	assert_int_equal(causes.count, 1);
	assert_int_equal(causes_first(&causes)->when, 40);
}

static void
of_too_many_the_latest_is_forgotten(void **state)
{
	struct causes causes = { 0 };
	char id[8];
	unsigned i;

	(void)state;
	for (i = 0; i < CAUSES_MAXIMUM; i++) {
		snprintf(id, sizeof(id), "%u", i);
		add(&causes, id, 1000 - i);
	}
	assert_false(add(&causes, "late", 5000));
	assert_int_equal(causes.count, CAUSES_MAXIMUM);
	assert_true(add(&causes, "soon", 1));
	assert_false(causes_remove(&causes, "0"));
	assert_string_equal(causes_first(&causes)->id, "soon");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_earliest_counts),
		cmocka_unit_test(one_that_slides_is_not_put_off),
		cmocka_unit_test(of_too_many_the_latest_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
