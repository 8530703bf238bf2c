#ifndef FORMAT_WINDOW_H
#define FORMAT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/source.h"

struct error;

#define WINDOW_SIZE 65536

/*
 * A part of a source that is read front to back in windows of at most
 * WINDOW_SIZE bytes, so that a parser needs no memory for what it reads.
 * One thread at a time; owns nothing.
 */
struct window {
	const struct source *source;
	uint64_t at;		/* offset in the source of the next byte */
	uint64_t end;		/* offset behind the last byte */
	uint64_t start;		/* what `data` holds, and how much */
	size_t length;
	bool failed;		/* the source could not be read: no verdict */
	uint8_t data[WINDOW_SIZE];
};

/**
 * window_init(window, source, at, end):
 * Read ${source} from ${at} up to ${end}, which lies within its size.
 */
void window_init(struct window *window, const struct source *source,
    uint64_t at, uint64_t end);

/**
 * window_peek(window, length, error):
 * The next bytes, at least 1 and at most *${length}, without going on, and
 * *${length} set to how many they are.  NULL at the end (ERROR_DAMAGED, "ends
 * in the middle") or when the source could not be read (`failed` is set).
 * They stay until the next call.
 */
const uint8_t *window_peek(struct window *window, size_t *length,
    struct error *error);

/**
 * window_take(window, data, length, error):
 * Copy the next ${length} bytes and go on behind them.  Return 0, or -1 as
 * window_peek.
 */
int window_take(struct window *window, void *data, size_t length,
    struct error *error);

/**
 * window_skip(window, length, error):
 * Go on behind the next ${length} bytes.  Return 0, or -1 when there are not
 * that many.
 */
int window_skip(struct window *window, uint64_t length, struct error *error);

/**
 * window_left(window):
 * How many bytes are left.
 */
uint64_t window_left(const struct window *window);

#endif
