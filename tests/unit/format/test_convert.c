#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"
#include "kit/kit.h"

/* The number that the bits of a 16 or 32 bit type stand for, exactly. */
static double
value_of(enum tensor_type type, uint64_t bits)
{
	unsigned exponent_bits = type == TENSOR_F16 ? 5 : 8;
	unsigned fraction_bits = type == TENSOR_F16 ? 10 :
	    type == TENSOR_BF16 ? 7 : 23;
	int bias = (1 << (exponent_bits - 1)) - 1;
	uint64_t most = (UINT64_C(1) << exponent_bits) - 1;
	uint64_t exponent = bits >> fraction_bits & most;
	double fraction = (double)(bits & ((UINT64_C(1) << fraction_bits) -
	    1)) / (double)(UINT64_C(1) << fraction_bits);
	double value;

	if (exponent == most)
		value = fraction == 0 ? INFINITY : NAN;
	else if (exponent == 0)
		value = ldexp(fraction, 1 - bias);
	else
		value = ldexp(1 + fraction, (int)exponent - bias);
	return bits >> (exponent_bits + fraction_bits) != 0 ? -value : value;
}

/*
 * The naive twin: of all 16-bit numbers the nearest to ${value}, found by
 * halving; of two as near the even one; infinity from half a step beyond the
 * largest.
 */
static uint16_t
nearest(enum tensor_type type, double value)
{
	uint16_t infinity = type == TENSOR_F16 ? 0x7c00 : 0x7f80, low = 0,
	    high = infinity - 1;
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	double wanted = fabs(value), largest = value_of(type, high), below,
	    above;

	if (isinf(wanted) || wanted >= largest +
	    (largest - value_of(type, high - 1)) / 2)
		return sign | infinity;
	if (wanted >= largest)
		return sign | high;
	while (high - low > 1) {
		uint16_t middle = (uint16_t)(low + (high - low) / 2);

		if (value_of(type, middle) <= wanted)
			low = middle;
		else
			high = middle;
	}
	below = wanted - value_of(type, low);
	above = value_of(type, high) - wanted;
	if (below == above)
		return sign | (low % 2 == 0 ? low : high);
	return sign | (below < above ? low : high);
}

static uint16_t
convert_16(enum tensor_type from, enum tensor_type to, const void *in)
{
	uint16_t out;

	convert_elements(from, to, in, &out, 1);
	return out;
}

static void
check_double(double value)
{
	static const enum tensor_type types[] = { TENSOR_F16, TENSOR_BF16 };
	float single = (float)value, converted;

	if (isnan(value))
		return;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(convert_16(TENSOR_F64, types[i], &value),
		    nearest(types[i], value));
		assert_int_equal(convert_16(TENSOR_F32, types[i], &single),
		    nearest(types[i], (double)single));
	}
	convert_elements(TENSOR_F64, TENSOR_F32, &value, &converted, 1);
	assert_memory_equal(&converted, &single, sizeof(single));
}

/* Random bits, random sizes, and what is half way between two numbers. */
static void
test_against_the_twin(void **state)
{
	uint64_t bits[20000];

	(void)state;
	kit_random(bits, sizeof(bits), 7);
	for (size_t i = 0; i < 20000; i++) {
		double value;
		float single;
		uint32_t half = (uint32_t)bits[i];

		memcpy(&value, &bits[i], sizeof(value));
		check_double(value);
		memcpy(&single, &half, sizeof(single));
		check_double(single);
		check_double(ldexp(1 + (double)(bits[i] % 4096) / 4096,
		    (int)(bits[i] >> 32) % 32 - 20));
	}
}

/* All 16-bit numbers, the middles above them, and a bit beside those. */
static void
check_all(enum tensor_type type)
{
	uint16_t infinity = type == TENSOR_F16 ? 0x7c00 : 0x7f80;

	for (uint32_t i = 0; i + 1 < infinity; i++) {
		double low = value_of(type, i), high = value_of(type, i + 1);
		double middle = low + (high - low) / 2;

		check_double(low);
		check_double(-low);
		check_double(middle);
		check_double(nextafter(middle, 0));
		check_double(nextafter(middle, INFINITY));
	}
}

static void
test_all_middles(void **state)
{
	(void)state;
	check_all(TENSOR_F16);
	check_all(TENSOR_BF16);
}

/* Widening and coming back changes nothing, of no bits but a NaN's. */
static void
test_widening(void **state)
{
	static const enum tensor_type types[] = { TENSOR_F16, TENSOR_BF16 };

	(void)state;
	for (int t = 0; t < 2; t++) {
		for (uint32_t i = 0; i <= UINT16_MAX; i++) {
			uint16_t in = (uint16_t)i;
			double value = value_of(types[t], in);
			float wide;

			convert_elements(types[t], TENSOR_F32, &in, &wide, 1);
			if (isnan(value)) {
				assert_true(isnan(wide));
				assert_int_equal(!!signbit(wide), in >> 15);
				continue;
			}
			assert_true((double)wide == value);
			assert_int_equal(convert_16(TENSOR_F32, types[t],
			    &wide), in);
		}
	}
}

static void
test_not_a_number(void **state)
{
	const uint64_t payload = UINT64_C(0xfff0000000000001);
	const uint32_t single = 0x7fa00000, quiet = 0xffc12345;
	uint32_t out;

	(void)state;
	/* The payload is in bits that are lost: it must not become infinity. */
	assert_int_equal(convert_16(TENSOR_F64, TENSOR_F16, &payload), 0xfe00);
	assert_int_equal(convert_16(TENSOR_F64, TENSOR_BF16, &payload),
	    0xffc0);
	convert_elements(TENSOR_F64, TENSOR_F32, &payload, &out, 1);
	assert_int_equal(out, 0xffc00000);
	assert_int_equal(convert_16(TENSOR_F32, TENSOR_F16, &single), 0x7f00);
	assert_int_equal(convert_16(TENSOR_F32, TENSOR_BF16, &quiet), 0xffc1);
}

/* A row of make_weights.py: what numpy makes of a number. */
static void
test_numpy(void **state)
{
	size_t length;
	char *rows = kit_read_file(TEST_DATA "/format/weights/numbers",
	    &length);

	(void)state;
	assert_int_equal(length % 16, 0);
	assert_true(length >= 200 * 16);
	for (size_t at = 0; at < length; at += 16) {
		uint16_t half;
		uint32_t single;

		convert_elements(TENSOR_F64, TENSOR_F32, rows + at, &single,
		    1);
		assert_memory_equal(&single, rows + at + 8, 4);
		half = convert_16(TENSOR_F64, TENSOR_F16, rows + at);
		assert_memory_equal(&half, rows + at + 12, 2);
		half = convert_16(TENSOR_F32, TENSOR_F16, rows + at + 8);
		assert_memory_equal(&half, rows + at + 14, 2);
	}
	free(rows);
}

static void
test_what_is_possible(void **state)
{
	(void)state;
	assert_true(convert_possible(TENSOR_F64, TENSOR_BF16));
	assert_true(convert_possible(TENSOR_BF16, TENSOR_F16));
	assert_true(convert_possible(TENSOR_F32, TENSOR_F32));
	assert_false(convert_possible(TENSOR_F32, TENSOR_F64));
	assert_false(convert_possible(TENSOR_I64, TENSOR_F32));
	assert_false(convert_possible(TENSOR_F8_E4M3, TENSOR_F32));
	assert_false(convert_possible(TENSOR_C64, TENSOR_F32));
}

/* Neither side needs to be aligned. */
static void
test_many(void **state)
{
	char in[1 + 8 * 33], out[1 + 2 * 33];

	(void)state;
	for (int i = 0; i < 33; i++) {
		double value = i / 3.0 - 5;

		memcpy(in + 1 + 8 * i, &value, sizeof(value));
	}
	convert_elements(TENSOR_F64, TENSOR_BF16, in + 1, out + 1, 33);
	for (int i = 0; i < 33; i++) {
		uint16_t wanted = nearest(TENSOR_BF16, i / 3.0 - 5);

		assert_memory_equal(out + 1 + 2 * i, &wanted, 2);
	}
	convert_elements(TENSOR_F64, TENSOR_BF16, in, out, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_the_twin),
		cmocka_unit_test(test_all_middles),
		cmocka_unit_test(test_widening),
		cmocka_unit_test(test_not_a_number),
		cmocka_unit_test(test_numpy),
		cmocka_unit_test(test_what_is_possible),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
