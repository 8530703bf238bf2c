#include "format/convert.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* How numbers of a type are made up of bits (IEEE 754; bfloat16). */
struct shape {
	unsigned bytes;
	unsigned exponent;	/* bits */
	unsigned fraction;	/* bits */
};

#define SHAPE_F64 ((struct shape){ 8, 11, 52 })
#define SHAPE_F32 ((struct shape){ 4, 8, 23 })
#define SHAPE_F16 ((struct shape){ 2, 5, 10 })
#define SHAPE_BF16 ((struct shape){ 2, 8, 7 })

/*
 * What follows is compiled once for each pair of shapes, which makes it
 * several times faster: gigabytes come through here.
 */
#define FOR_EACH_PAIR inline __attribute__((always_inline))

bool
convert_possible(enum tensor_type from, enum tensor_type to)
{
	return (from == TENSOR_F64 || from == TENSOR_F32 ||
	    from == TENSOR_F16 || from == TENSOR_BF16) &&
	    (to == TENSOR_F32 || to == TENSOR_F16 || to == TENSOR_BF16);
}

/* ${number} / 2^${bits}, to the nearest, ties to even. */
static FOR_EACH_PAIR uint64_t
round_off(uint64_t number, unsigned bits)
{
	uint64_t half, rest;

	if (bits == 0)
		return number;
	if (bits > 63)
		return 0;
	half = UINT64_C(1) << (bits - 1);
	rest = number & ((UINT64_C(1) << bits) - 1);
	number >>= bits;
	if (rest > half || (rest == half && (number & 1) != 0))
		number++;
	return number;
}

/* A NaN: quiet, with as many of its upper bits as there is room for. */
static FOR_EACH_PAIR uint64_t
keep_nan(uint64_t fraction, struct shape from, struct shape to)
{
	uint64_t quiet = UINT64_C(1) << (to.fraction - 1);

	if (to.fraction >= from.fraction)
		return fraction << (to.fraction - from.fraction) | quiet;
	return fraction >> (from.fraction - to.fraction) | quiet;
}

/*
 * The bits without the sign.  The number is ${fraction} (with its leading
 * bit, when it is a normal one) * 2^(${exponent} - bias - from.fraction).
 */
static FOR_EACH_PAIR uint64_t
convert_finite(int exponent, uint64_t fraction, struct shape from,
    struct shape to)
{
	int from_bias = (1 << (from.exponent - 1)) - 1;
	int to_bias = (1 << (to.exponent - 1)) - 1;
	int most = (1 << to.exponent) - 1, shift;
	uint64_t lead = UINT64_C(1) << from.fraction, bits;

	if (fraction == 0)
		return 0;
	for (; (fraction & lead) == 0; fraction <<= 1)
		exponent--;
	exponent += to_bias - from_bias;
	if (exponent >= most)
		return (uint64_t)most << to.fraction;
	/* Bits to lose; a subnormal has more of them and no leading bit. */
	shift = (int)from.fraction - (int)to.fraction;
	if (exponent < 1)
		shift += 1 - exponent;
	bits = shift < 0 ? fraction << -shift :
	    round_off(fraction, (unsigned)shift);
	/* Rounding up may carry into the exponent: just what it should. */
	if (exponent >= 1)
		bits += (uint64_t)(exponent - 1) << to.fraction;
	return bits;
}

static FOR_EACH_PAIR uint64_t
convert_one(uint64_t bits, struct shape from, struct shape to)
{
	uint64_t sign = bits >> (from.exponent + from.fraction) & 1;
	int most = (1 << from.exponent) - 1;
	int exponent = (int)(bits >> from.fraction & (uint64_t)most);
	uint64_t fraction = bits & ((UINT64_C(1) << from.fraction) - 1);
	uint64_t result;

	if (exponent == most) {
		result = ((UINT64_C(1) << to.exponent) - 1) << to.fraction;
		if (fraction != 0)
			result |= keep_nan(fraction, from, to);
	} else if (exponent == 0) {
		result = convert_finite(1, fraction, from, to);
	} else {
		result = convert_finite(exponent, fraction |
		    UINT64_C(1) << from.fraction, from, to);
	}
	return result | sign << (to.exponent + to.fraction);
}

static FOR_EACH_PAIR uint64_t
load(const uint8_t *bytes, unsigned width)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < width; i++)
		number |= (uint64_t)bytes[i] << (8 * i);
	return number;
}

static FOR_EACH_PAIR void
store(uint8_t *bytes, unsigned width, uint64_t number)
{
	for (unsigned i = 0; i < width; i++)
		bytes[i] = (uint8_t)(number >> (8 * i));
}

static FOR_EACH_PAIR void
convert_row(struct shape from, struct shape to, const uint8_t *in,
    uint8_t *out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		store(out + i * to.bytes, to.bytes, convert_one(
		    load(in + i * from.bytes, from.bytes), from, to));
}

static FOR_EACH_PAIR void
convert_from(struct shape from, enum tensor_type to, const uint8_t *in,
    uint8_t *out, size_t count)
{
	if (to == TENSOR_F32)
		convert_row(from, SHAPE_F32, in, out, count);
	else if (to == TENSOR_F16)
		convert_row(from, SHAPE_F16, in, out, count);
	else
		convert_row(from, SHAPE_BF16, in, out, count);
}

void
convert_elements(enum tensor_type from, enum tensor_type to, const void *in,
    void *out, size_t count)
{
	assert(convert_possible(from, to));
	if (from == to)
		memcpy(out, in, count * tensor_type_width(from));
	else if (from == TENSOR_F64)
		convert_from(SHAPE_F64, to, in, out, count);
	else if (from == TENSOR_F32)
		convert_from(SHAPE_F32, to, in, out, count);
	else if (from == TENSOR_F16)
		convert_from(SHAPE_F16, to, in, out, count);
	else
		convert_from(SHAPE_BF16, to, in, out, count);
}
