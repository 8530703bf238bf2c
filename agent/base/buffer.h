#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stddef.h>

struct error;

/*
 * A growing run of bytes with a limit: nothing foreign can make it grow past
 * what its owner allowed.  The bytes are always followed by a NUL that is not
 * counted, so that text in it can be used as a string.  One thread at a time.
 */
struct buffer {
	char *data;	/* NULL while empty and never filled */
	size_t length;
	size_t capacity;
	size_t limit;	/* bytes; length never exceeds it */
};

/**
 * buffer_init(buffer, limit):
 * Make ${buffer} empty, to grow up to ${limit} bytes.  Allocates nothing.
 */
void buffer_init(struct buffer *buffer, size_t limit);

/**
 * buffer_append(buffer, data, length, error):
 * Add ${length} bytes.  Return 0, or -1 with CAUSE_LIMIT or CAUSE_MEMORY and
 * the buffer as it was.
 */
int buffer_append(struct buffer *buffer, const void *data, size_t length,
    struct error *error);

/**
 * buffer_format(buffer, error, format, ...):
 * Add formatted text.  Return 0 or -1 as buffer_append.
 */
int buffer_format(struct buffer *buffer, struct error *error,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

/**
 * buffer_text(buffer):
 * The bytes as a string; "" when nothing was ever added.  Valid until the
 * buffer changes.
 */
const char *buffer_text(const struct buffer *buffer);

/**
 * buffer_clear(buffer):
 * Forget the bytes, keep the memory.
 */
void buffer_clear(struct buffer *buffer);

/**
 * buffer_free(buffer):
 * Give the memory back; ${buffer} is empty and may be used again.
 */
void buffer_free(struct buffer *buffer);

#endif
