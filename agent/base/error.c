#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/*
 * Replace control characters, and drop a UTF-8 sequence that was cut at the
 * end.  Bytes that are not UTF-8 stay: file names may hold them.
 */
static void
make_harmless(char *text)
{
	size_t length = strlen(text);
	char *out = text;

	for (size_t i = 0; i < length;) {
		uint32_t code = 0;
		size_t used = text_decode(text + i, length - i, &code);

		if (used == 0) {
			*out++ = text[i++];
		} else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
			*out++ = '?';
			i += used;
		} else {
			memmove(out, text + i, used);
			out += used;
			i += used;
		}
	}
	*out = '\0';
}

/* Drop the beginning of a character whose rest did not fit. */
static void
drop_cut_character(char *text, size_t length)
{
	size_t start = length;

	while (start > 0 && length - start < 3) {
		unsigned char byte = (unsigned char)text[start - 1];
		uint32_t code;

		start--;
		if (byte >= 0xc0) {
			if (text_decode(text + start, length - start, &code) == 0)
				text[start] = '\0';
			return;
		}
		if (byte < 0x80)
			return;
	}
}

/* Format into a text of ${size} bytes, cut when too long. */
static void
fill(char *text, size_t size, const char *format, va_list arguments)
{
	int wanted = vsnprintf(text, size, format, arguments);

	if (wanted < 0)
		text[0] = '\0';
	else if ((size_t)wanted >= size)
		drop_cut_character(text, size - 1);
	make_harmless(text);
}

static void fill_text(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void
fill_text(char *text, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fill(text, size, format, arguments);
	va_end(arguments);
}

/*
 * The arguments may point into the error that is being replaced, so each
 * function builds the new text aside.
 */
static void
begin(struct error *fresh, enum error_class class, enum error_cause cause,
    const char *object)
{
	*fresh = (struct error){ .class = class, .cause = cause };
	fill_text(fresh->object, sizeof(fresh->object), "%s",
	    object != NULL ? object : "");
}

int
(error_set)(struct error *error, enum error_class class, enum error_cause cause,
    const char *object, const char *format, ...)
{
	struct error fresh;
	va_list arguments;

	assert(error != NULL && class != ERROR_NONE);
	begin(&fresh, class, cause, object);
	va_start(arguments, format);
	fill(fresh.message, sizeof(fresh.message), format, arguments);
	va_end(arguments);
	*error = fresh;
	return -1;
}

/* What an errno value means to us, and what a user can do about it. */
static const struct meaning {
	int number;
	enum error_cause cause;
	const char *cure;
} meanings[] = {
	{ ENOENT, CAUSE_NOT_FOUND, "" },
	{ EEXIST, CAUSE_EXISTS, "" },
	{ EACCES, CAUSE_DENIED, "check its owner and permissions" },
	{ EPERM, CAUSE_DENIED, "check its owner and permissions" },
	{ EROFS, CAUSE_DENIED, "choose a place that can be written" },
	{ ENOSPC, CAUSE_NO_SPACE, "free some space there" },
	{ EDQUOT, CAUSE_NO_SPACE, "free some space or raise the quota" },
	{ ENOMEM, CAUSE_MEMORY, "" },
	{ EMFILE, CAUSE_OTHER, "raise the limit of open files (ulimit -n)" },
	{ EOPNOTSUPP, CAUSE_UNSUPPORTED, "" },
	{ ENOSYS, CAUSE_UNSUPPORTED, "" },
	{ ETIMEDOUT, CAUSE_UNREACHABLE, "" },
	{ ECONNREFUSED, CAUSE_UNREACHABLE, "" },
	{ ECONNRESET, CAUSE_UNREACHABLE, "" },
	{ ENETUNREACH, CAUSE_UNREACHABLE, "" },
	{ EHOSTUNREACH, CAUSE_UNREACHABLE, "" },
};

int
(error_set_errno)(struct error *error, int number, const char *object,
    const char *format, ...)
{
	struct error fresh;
	va_list arguments;
	char buffer[128];
	const char *system = strerror_r(number, buffer, sizeof(buffer));
	size_t tail = strlen(system) + 2;
	size_t length;

	assert(error != NULL);
	begin(&fresh, ERROR_FAILED, CAUSE_OTHER, object);

	/* Keep room for the system's text: it says more than a long name. */
	assert(tail < sizeof(fresh.message) / 2);
	va_start(arguments, format);
	fill(fresh.message, sizeof(fresh.message) - tail, format, arguments);
	va_end(arguments);
	length = strlen(fresh.message);
	fill_text(fresh.message + length, sizeof(fresh.message) - length,
	    ": %s", system);

	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (meanings[i].number == number) {
			fresh.cause = meanings[i].cause;
			fill_text(fresh.cure, sizeof(fresh.cure), "%s",
			    meanings[i].cure);
		}
	}
	*error = fresh;
	return -1;
}

int
(error_cure)(struct error *error, const char *format, ...)
{
	char cure[sizeof(error->cure)];
	va_list arguments;

	va_start(arguments, format);
	fill(cure, sizeof(cure), format, arguments);
	va_end(arguments);
	memcpy(error->cure, cure, sizeof(cure));
	return -1;
}

int
(error_prefix)(struct error *error, const char *format, ...)
{
	char message[sizeof(error->message)];
	size_t length;
	va_list arguments;

	va_start(arguments, format);
	fill(message, sizeof(message), format, arguments);
	va_end(arguments);
	length = strlen(message);
	fill_text(message + length, sizeof(message) - length, ": %s",
	    error->message);
	memcpy(error->message, message, sizeof(message));
	return -1;
}

void
error_clear(struct error *error)
{
	*error = (struct error)ERROR_INIT;
}

char *
error_text(const struct error *error, char text[ERROR_TEXT_SIZE])
{
	_Static_assert(ERROR_TEXT_SIZE >= sizeof(error->object) +
	    sizeof(error->message) + sizeof(error->cure) + 5,
	    "every error has room in its text");
	const char *colon = error->object[0] != '\0' &&
	    error->message[0] != '\0' ? ": " : "";
	bool cure = error->cure[0] != '\0';
	int length;

	length = snprintf(text, ERROR_TEXT_SIZE, "%s%s%s%s%s%s", error->object,
	    colon, error->message, cure ? " (" : "", error->cure,
	    cure ? ")" : "");
	assert(length >= 0 && length < ERROR_TEXT_SIZE);
	(void)length;
	return text;
}
