#include "format/cutter.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "format/format.h"

#define MEBIBYTE (UINT64_C(1) << 20)

#define PIECES 8192		/* about as many per checkpoint */
#define LARGE_SHARE 8		/* a record of target / 8 is large */
#define RECORD_MINIMUM 16384	/* a smaller one is gathered */
#define GATHER_MAXIMUM 65536

/*
 * The gear table: the first 256 numbers of splitmix64 (Steele, Lea, Flood,
 * "Fast splittable pseudorandom number generators", OOPSLA 2014) from this
 * seed, the ASCII codes of "ckptsync".  Deduplication across runs and versions
 * depends on it: never change it, nor the masks below.
 */
#define GEAR_SEED UINT64_C(0x636b707473796e63)

struct cutter {
	const struct format_report *report;	/* NULL: no records */
	uint64_t size;
	uint64_t target;
	uint64_t at;		/* offset of the next byte */
	uint64_t start;		/* where the running piece began */
	uint64_t end;		/* with records: where it ends */
	size_t record;		/* the first record that ends behind `start` */

	/* Without records. */
	uint64_t hash;
	uint64_t strict;	/* mask before half the target, and behind it */
	uint64_t loose;
	uint64_t gear[256];
};

uint64_t
cutter_target(uint64_t size)
{
	uint64_t target = size / PIECES / MEBIBYTE * MEBIBYTE;

	if (size % (PIECES * MEBIBYTE) != 0)
		target += MEBIBYTE;
	if (target < CUTTER_TARGET_MINIMUM)
		return CUTTER_TARGET_MINIMUM;
	if (target > CUTTER_TARGET_MAXIMUM)
		return CUTTER_TARGET_MAXIMUM;
	return target;
}

static void
fill_gear(uint64_t gear[256])
{
	uint64_t state = GEAR_SEED;

	for (int i = 0; i < 256; i++) {
		uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		gear[i] = z ^ z >> 31;
	}
}

/* The ${bits} highest bits: they depend on the most bytes. */
static uint64_t
mask_of(unsigned bits)
{
	return ~UINT64_C(0) << (64 - bits);
}

/*
 * With records: where the piece ends that begins at `start`.  Moves `record`
 * forward only.
 */
static void
plan_piece(struct cutter *cutter)
{
	const struct format_record *records = cutter->report->records;
	size_t count = cutter->report->record_count, next;
	uint64_t start = cutter->start, limit = cutter->size;

	while (cutter->record < count && records[cutter->record].offset +
	    records[cutter->record].length <= start)
		cutter->record++;
	next = cutter->record;
	if (next < count && records[next].offset <= start &&
	    records[next].length >= RECORD_MINIMUM) {
		cutter->end = records[next].offset + records[next].length;
		if (cutter->end - start > cutter->target)
			cutter->end = start + cutter->target;
		return;
	}
	/* Headers, padding, tiny records. */
	if (limit - start > GATHER_MAXIMUM)
		limit = start + GATHER_MAXIMUM;
	while (next < count && records[next].offset < limit &&
	    records[next].length < RECORD_MINIMUM)
		next++;
	if (next < count && records[next].offset < limit)
		limit = records[next].offset;
	cutter->end = limit;
}

struct cutter *
cutter_new(const struct format_report *report, uint64_t size, uint64_t target,
    struct error *error)
{
	struct cutter *cutter = calloc(1, sizeof(*cutter));
	unsigned bits;

	assert(target >= MEBIBYTE);
	if (cutter == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for cutting a file");
		return NULL;
	}
	if (report != NULL && report->record_count > 0)
		cutter->report = report;
	cutter->size = size;
	cutter->target = target;
	/* Two bits stricter, and looser, than cuts a quarter apart need. */
	bits = 63 - (unsigned)__builtin_clzll(target / 4);
	cutter->strict = mask_of(bits + 2);
	cutter->loose = mask_of(bits - 2);
	if (cutter->report != NULL)
		plan_piece(cutter);
	else
		fill_gear(cutter->gear);
	return cutter;
}

/*
 * Hash the bytes from ${i} to ${to}: the place behind the first one where the
 * hash says to cut, or ${to} + 1.
 */
static size_t
find_cut(struct cutter *cutter, const uint8_t *bytes, size_t i, size_t to,
    uint64_t mask)
{
	const uint64_t *gear = cutter->gear;
	uint64_t hash = cutter->hash;

	for (; i < to; i++) {
		hash = (hash << 1) + gear[bytes[i]];
		if ((hash & mask) == 0) {
			cutter->hash = hash;
			return i + 1;
		}
	}
	cutter->hash = hash;
	return to + 1;
}

/* The smaller of ${length} and what lies between ${done} and ${place}. */
static size_t
up_to(uint64_t place, uint64_t done, size_t length)
{
	uint64_t left = place > done ? place - done : 0;

	return left < length ? (size_t)left : length;
}

/*
 * Without records: how many of the bytes belong to the running piece, of which
 * ${done} bytes are behind us.  The first quarter is not looked at.
 */
static size_t
take_by_content(struct cutter *cutter, const uint8_t *bytes, size_t length,
    bool *ends)
{
	uint64_t done = cutter->at - cutter->start;
	size_t quiet = up_to(cutter->target / 4, done, length);
	size_t half = up_to(cutter->target / 2, done, length);
	size_t whole = up_to(cutter->target, done, length);
	size_t cut;

	*ends = true;
	cut = find_cut(cutter, bytes, quiet, half, cutter->strict);
	if (cut <= half)
		return cut;
	cut = find_cut(cutter, bytes, half, whole, cutter->loose);
	if (cut <= whole)
		return cut;
	*ends = done + whole == cutter->target;
	return whole;
}

size_t
cutter_take(struct cutter *cutter, const void *data, size_t length,
    bool *ends, bool *small)
{
	size_t taken;

	assert(length > 0 && length <= cutter->size - cutter->at);
	if (cutter->report != NULL) {
		taken = up_to(cutter->end, cutter->at, length);
		*ends = cutter->at + taken == cutter->end;
	} else if (cutter->size < cutter->target / LARGE_SHARE) {
		taken = length;
		*ends = false;
	} else {
		taken = take_by_content(cutter, data, length, ends);
	}
	cutter->at += taken;
	if (cutter->at == cutter->size)
		*ends = true;
	if (!*ends)
		return taken;
	*small = cutter->at - cutter->start < cutter->target / LARGE_SHARE;
	cutter->start = cutter->at;
	cutter->hash = 0;
	if (cutter->report != NULL && cutter->at < cutter->size)
		plan_piece(cutter);
	return taken;
}

void
cutter_free(struct cutter *cutter)
{
	free(cutter);
}
