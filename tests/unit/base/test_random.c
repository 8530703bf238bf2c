#include "base/random.h"
#include "kit/kit.h"

static void
differs(void **state)
{
	uint64_t seen[64], ones = 0, zeros = 0;

	(void)state;
	for (size_t i = 0; i < 64; i++) {
		seen[i] = random_bits();
		ones |= seen[i];
		zeros |= ~seen[i];
		for (size_t k = 0; k < i; k++)
			assert_true(seen[i] != seen[k]);
	}

	/* Each bit was 0 and 1: wrong once in 2^57 runs. */
	assert_true(ones == UINT64_MAX && zeros == UINT64_MAX);
}

static void
stays_below(void **state)
{
	unsigned met = 0;

	(void)state;
	assert_int_equal(random_below(0), 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t number = random_below(5);

		assert_true(number < 5);
		met |= 1u << number;
		assert_int_equal(random_below(1), 0);
		assert_true(random_below((UINT64_C(1) << 63) + 1) <=
		    UINT64_C(1) << 63);
		assert_true(random_below(UINT64_MAX) < UINT64_MAX);
	}
	assert_int_equal(met, 31);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(differs),
		cmocka_unit_test(stays_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
