#include "format/window.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

static int
ends_early(const struct window *window, struct error *error)
{
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
	    window->source->name, "it ends in the middle, at byte %llu",
	    (unsigned long long)window->end);
}

static int
fill(struct window *window, struct error *error)
{
	uint64_t left = window_left(window);
	size_t length = left < WINDOW_SIZE ? (size_t)left : WINDOW_SIZE;

	/* Nobody knows how much of it is needed. */
	if (length > 0)
		length = source_step(window->source, window->at, length);
	if (source_read(window->source, window->at, window->data, length,
	    error) != 0) {
		window->failed = true;
		window->length = 0;
		return -1;
	}
	window->start = window->at;
	window->length = length;
	return 0;
}

void
window_init(struct window *window, const struct source *source, uint64_t at,
    uint64_t end)
{
	assert(at <= end && end <= source->size);
	window->source = source;
	window->at = at;
	window->end = end;
	window->start = at;
	window->length = 0;
	window->failed = false;
}

uint64_t
window_left(const struct window *window)
{
	return window->end - window->at;
}

const uint8_t *
window_peek(struct window *window, size_t *length, struct error *error)
{
	uint64_t inside = window->at - window->start;
	size_t there;

	assert(*length > 0);
	if (window_left(window) == 0) {
		ends_early(window, error);
		return NULL;
	}
	if (window->at < window->start || inside >= window->length) {
		if (fill(window, error) != 0)
			return NULL;
		inside = 0;
	}
	there = window->length - (size_t)inside;
	if (*length > there)
		*length = there;
	return window->data + inside;
}

int
window_take(struct window *window, void *data, size_t length,
    struct error *error)
{
	uint8_t *to = data;

	if (length > window_left(window))
		return ends_early(window, error);
	while (length > 0) {
		size_t part = length;
		const uint8_t *from = window_peek(window, &part, error);

		if (from == NULL)
			return -1;
		memcpy(to, from, part);
		window->at += part;
		to += part;
		length -= part;
	}
	return 0;
}

int
window_skip(struct window *window, uint64_t length, struct error *error)
{
	if (length > window_left(window))
		return ends_early(window, error);
	window->at += length;
	return 0;
}
