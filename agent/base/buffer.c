#include "base/buffer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void
buffer_init(struct buffer *buffer, size_t limit)
{
	*buffer = (struct buffer){ .limit = limit };
}

/* Make room for ${more} bytes and the NUL. */
static int
make_room(struct buffer *buffer, size_t more, struct error *error)
{
	size_t needed, capacity;
	char *data;

	assert(buffer->length <= buffer->limit);
	if (more > buffer->limit - buffer->length)
		return error_set(error, ERROR_FAILED, CAUSE_LIMIT, NULL,
		    "more than %zu bytes", buffer->limit);
	if (more >= SIZE_MAX - buffer->length)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	needed = buffer->length + more + 1;
	if (needed <= buffer->capacity)
		return 0;

	/* Doubling keeps many small additions cheap. */
	capacity = buffer->capacity > SIZE_MAX / 2 ? SIZE_MAX :
	    buffer->capacity * 2;
	if (capacity < 64)
		capacity = 64;
	if (buffer->limit < SIZE_MAX && capacity > buffer->limit + 1)
		capacity = buffer->limit + 1;
	if (capacity < needed)
		capacity = needed;
	data = realloc(buffer->data, capacity);
	if (data == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for %zu bytes", capacity);
	buffer->data = data;
	buffer->capacity = capacity;
	return 0;
}

int
buffer_append(struct buffer *buffer, const void *data, size_t length,
    struct error *error)
{
	if (make_room(buffer, length, error) != 0)
		return -1;
	if (length > 0)
		memcpy(buffer->data + buffer->length, data, length);
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
	return 0;
}

int
buffer_format(struct buffer *buffer, struct error *error, const char *format,
    ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0)
		return error_set(error, ERROR_FAILED, CAUSE_LIMIT, NULL,
		    "a text is too long");
	if (make_room(buffer, (size_t)length, error) != 0)
		return -1;

	va_start(arguments, format);
	(void)vsnprintf(buffer->data + buffer->length, (size_t)length + 1,
	    format, arguments);
	va_end(arguments);
	buffer->length += (size_t)length;
	return 0;
}

const char *
buffer_text(const struct buffer *buffer)
{
	return buffer->data != NULL ? buffer->data : "";
}

void
buffer_clear(struct buffer *buffer)
{
	buffer->length = 0;
	if (buffer->data != NULL)
		buffer->data[0] = '\0';
}

void
buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	buffer_init(buffer, buffer->limit);
}
