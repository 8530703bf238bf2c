#ifndef FORMAT_PICKLE_SPANS_H
#define FORMAT_PICKLE_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/*
 * Which instructions of a pickle make which value: each value that is pushed
 * is made by one run of instructions, from the first of its parts to the last
 * that adds to it.  The same machine as in pickle.h, but of places instead of
 * values.
 */
struct pickle_span {
	size_t start, end;	/* offsets in the pickle */
};

/* A key and its value, put into the dict at the bottom of the stack. */
struct pickle_pair {
	struct pickle_span key, value;
};

struct pickle_memo {
	uint64_t index;
	size_t put;		/* offset of the instruction that remembers */
	size_t value;		/* index into `values` */
};

struct pickle_spans {
	const uint8_t *bytes;	/* the caller's */
	size_t length;
	struct pickle_span *values;
	size_t count;
	struct pickle_memo *memo;	/* sorted by index */
	size_t memo_count;
	struct pickle_pair *pairs;	/* in order */
	size_t pair_count;
};

/**
 * pickle_spans_make(bytes, length, spans, error):
 * Fill ${spans} (free it with pickle_spans_free, also after an error); the
 * bytes are kept as they are by the caller.  Return 0; -1: CAUSE_UNSUPPORTED
 * for uses of the memo that Python's pickler never makes, CAUSE_LIMIT,
 * ERROR_DAMAGED.
 */
int pickle_spans_make(const uint8_t *bytes, size_t length,
    struct pickle_spans *spans, struct error *error);

/**
 * pickle_spans_memo(spans, index):
 * Where ${index} is remembered; NULL when it is not.
 */
const struct pickle_memo *pickle_spans_memo(const struct pickle_spans *spans,
    uint64_t index);

/**
 * pickle_spans_free(spans): free what it holds, not itself.
 */
void pickle_spans_free(struct pickle_spans *spans);

#endif
