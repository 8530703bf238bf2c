#include "format/pickle_cut.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "format/pickle_opcode.h"

/* Bytes looked at again and again, so that no pickle takes hours. */
#define LOOKED_MAXIMUM (UINT64_C(1) << 30)

/* What is known of each byte that begins an instruction. */
#define DROPPED 1
#define KEPT 2		/* dropped, but needed later */

struct cut {
	const struct pickle_spans *spans;
	uint8_t *state;		/* of each byte of the pickle */
	size_t *waiting;	/* values that are needed, not looked into yet */
	size_t waiting_count;
	uint8_t *needed;	/* of each value */
	uint64_t looked;
	struct error *error;
};

/* The instruction at ${at}: it was read before, so it can be. */
static struct pickle_opcode
opcode_at(const struct cut *cut, size_t at)
{
	struct pickle_opcode opcode;
	int result = pickle_opcode_read(cut->spans->bytes, cut->spans->length,
	    at, &opcode);

	assert(result == 0);
	(void)result;
	return opcode;
}

/* Need what ${opcode} recalls, when it was remembered in a dropped part. */
static void
need_recalled(struct cut *cut, const struct pickle_opcode *opcode)
{
	const struct pickle_memo *memo;

	if (opcode->code != 'h' && opcode->code != 'j')
		return;
	memo = pickle_spans_memo(cut->spans, opcode->number);
	if (memo == NULL || (cut->state[memo->put] & DROPPED) == 0 ||
	    cut->needed[memo->value] != 0)
		return;
	cut->needed[memo->value] = 1;
	cut->waiting[cut->waiting_count++] = memo->value;
}

/* All that is recalled outside of what is dropped. */
static void
need_outside(struct cut *cut)
{
	struct pickle_opcode opcode = { .end = 0 };

	while (opcode.end < cut->spans->length) {
		opcode = opcode_at(cut, opcode.end);
		if ((cut->state[opcode.start] & DROPPED) == 0)
			need_recalled(cut, &opcode);
	}
}

/* What is needed for what is needed. */
static int
need_inside(struct cut *cut)
{
	while (cut->waiting_count > 0) {
		struct pickle_span span = cut->spans->values[
		    cut->waiting[--cut->waiting_count]];

		cut->looked += span.end - span.start;
		if ((cut->state[span.start] & KEPT) != 0 &&
		    (cut->state[span.end - 1] & KEPT) != 0 &&
		    memchr(cut->state + span.start, DROPPED,
		    span.end - span.start) == NULL)
			continue;	/* inside of one that is kept whole */
		if (cut->looked > LOOKED_MAXIMUM)
			return error_set(cut->error, ERROR_DAMAGED,
			    CAUSE_LIMIT, NULL,
			    "the pickle refers to itself in too many ways");
		for (size_t at = span.start; at < span.end;) {
			struct pickle_opcode opcode = opcode_at(cut, at);

			need_recalled(cut, &opcode);
			at = opcode.end;
		}
		memset(cut->state + span.start, DROPPED | KEPT,
		    span.end - span.start);
	}
	return 0;
}

/* One instruction, with its number of the memo written out. */
static int
copy(const struct cut *cut, const struct pickle_opcode *opcode,
    uint64_t memoized, struct buffer *pickle)
{
	uint8_t put[5] = { 'r' };

	if (opcode->code == 0x95)
		return 0;
	if (opcode->code != 0x94)
		return buffer_append(pickle, cut->spans->bytes +
		    opcode->start, opcode->end - opcode->start, cut->error);
	for (int i = 0; i < 4; i++)
		put[1 + i] = (uint8_t)(memoized >> (8 * i));
	return buffer_append(pickle, put, sizeof(put), cut->error);
}

/* By where they begin, the wider ones first. */
static int
by_start(const void *a, const void *b)
{
	const struct pickle_span *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->end > right->end ? -1 : left->end < right->end;
}

/*
 * The needed values that are not a part of another one, in order, and behind
 * them one that begins nowhere; the caller frees them.
 */
static struct pickle_span *
widest(const struct cut *cut)
{
	const struct pickle_spans *spans = cut->spans;
	struct pickle_span *wide;
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < spans->count; i++)
		count += cut->needed[i] != 0;
	wide = malloc((count + 1) * sizeof(*wide));
	if (wide == NULL) {
		error_set(cut->error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a pickle");
		return NULL;
	}
	for (size_t i = 0, at = 0; i < spans->count; i++)
		if (cut->needed[i] != 0)
			wide[at++] = spans->values[i];
	qsort(wide, count, sizeof(*wide), by_start);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || wide[i].start >= wide[kept - 1].end)
			wide[kept++] = wide[i];
	wide[kept] = (struct pickle_span){ SIZE_MAX, SIZE_MAX };
	return wide;
}

/* Copy what stays and what is needed, each of these with a POP behind it. */
static int
write_all(const struct cut *cut, const struct pickle_span *wide,
    const bool *drops, struct buffer *pickle)
{
	const struct pickle_spans *spans = cut->spans;
	struct pickle_opcode opcode = { .end = 0 };
	uint64_t memoized = 0;
	size_t pair = 0;

	while (opcode.end < spans->length) {
		opcode = opcode_at(cut, opcode.end);
		if (((cut->state[opcode.start] & DROPPED) == 0 ||
		    opcode.start >= wide->start) &&
		    copy(cut, &opcode, memoized, pickle) != 0)
			return -1;
		if (opcode.end == wide->end) {
			wide++;
			if (buffer_append(pickle, "0", 1, cut->error) != 0)
				return -1;
		}
		memoized += opcode.code == 'q' || opcode.code == 'r' ||
		    opcode.code == 0x94;
		while (pair < spans->pair_count && !drops[pair])
			pair++;
		if (pair < spans->pair_count &&
		    opcode.end == spans->pairs[pair].value.end) {
			pair++;
			if (buffer_append(pickle, "N", 1, cut->error) != 0)
				return -1;
		}
	}
	return 0;
}

int
pickle_cut(const struct pickle_spans *spans, const bool *drops,
    struct buffer *pickle, struct error *error)
{
	struct cut cut = { .spans = spans, .error = error };
	struct pickle_span *wide = NULL;
	int result = -1;

	cut.state = calloc(spans->length, 1);
	cut.needed = calloc(spans->count + 1, 1);
	cut.waiting = calloc(spans->count + 1, sizeof(*cut.waiting));
	if (cut.state == NULL || cut.needed == NULL || cut.waiting == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a pickle");
		goto done;
	}
	for (size_t i = 0; i < spans->pair_count; i++) {
		const struct pickle_pair *pair = &spans->pairs[i];

		if (drops[i])
			memset(cut.state + pair->key.end, DROPPED,
			    pair->value.end - pair->key.end);
	}
	need_outside(&cut);
	if (need_inside(&cut) != 0)
		goto done;
	wide = widest(&cut);
	if (wide != NULL)
		result = write_all(&cut, wide, drops, pickle);

done:
	free(wide);
	free(cut.state);
	free(cut.needed);
	free(cut.waiting);
	return result;
}
