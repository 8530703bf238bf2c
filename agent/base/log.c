#include "base/log.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

/* Longer messages are cut. */
#define MESSAGE_SIZE 2048

/* Set before threads start, by contract; the lock is for the lines alone. */
static enum log_format chosen_format = LOG_TEXT;
static enum log_level chosen_level = LOG_INFO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const level_words[] = {
	[LOG_ERROR] = "error",
	[LOG_WARNING] = "warning",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

void
log_setup(enum log_format format, enum log_level level)
{
	chosen_format = format;
	chosen_level = level;
}

enum log_level
log_level_now(void)
{
	return chosen_level;
}

/*
 * ${text} as one line of UTF-8 in fresh memory: what is not UTF-8 becomes
 * U+FFFD, control characters become '?'.
 */
static char *
clean(const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	size_t length = strlen(text);
	char *cleaned = malloc(length * 3 + 1), *out = cleaned;

	if (cleaned == NULL)
		return NULL;
	while (length > 0) {
		uint32_t code = 0;
		size_t used = text_decode(text, length, &code);

		if (used == 0) {
			memcpy(out, replacement, 3);
			out += 3;
			used = 1;
		} else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
			*out++ = '?';
		} else {
			memcpy(out, text, used);
			out += used;
		}
		text += used;
		length -= used;
	}
	*out = '\0';
	return cleaned;
}

/*
 * One write(2) a line.  What the kernel took only in part is finished, so that
 * the next line begins on its own; a full pipe that does not block costs the
 * line rather than our time.
 */
static void
write_line(const char *line, size_t length)
{
	size_t done = 0;

	while (done < length) {
		ssize_t wrote = write(STDERR_FILENO, line + done,
		    length - done);
		struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };

		if (wrote >= 0)
			done += (size_t)wrote;
		else if (errno == EAGAIN && done > 0 &&
		    poll(&room, 1, 1000) == 1)
			continue;
		else if (errno != EINTR)
			return;
	}
}

static json_t *
field_value(const struct log_field *field)
{
	json_t *value;
	char *text;

	switch (field->kind) {
	case LOG_FIELD_NUMBER:
		return json_integer(field->number > INT64_MAX ? INT64_MAX :
		    (json_int_t)field->number);
	case LOG_FIELD_SECONDS:
		/* JSON has no infinity: jansson gives NULL for it. */
		return json_real(field->seconds);
	case LOG_FIELD_TEXT:
		break;
	}
	text = field->text != NULL ? clean(field->text) : NULL;
	value = text != NULL ? json_string(text) : json_null();
	free(text);
	return value;
}

/* The line as JSON in fresh memory, or NULL when there is no memory. */
static char *
json_line(const char *time, enum log_level level, const char *event,
    const struct log_field *fields, size_t count, const char *message)
{
	json_t *object = json_pack("{s:s, s:s, s:s, s:s}", "time", time,
	    "level", level_words[level], "event", event, "message", message);
	char *line;

	for (size_t i = 0; i < count; i++) {
		json_t *value = field_value(&fields[i]);

		json_object_set_new(object, fields[i].name,
		    value != NULL ? value : json_null());
	}

	/* 12 digits: a nanosecond in a quarter of an hour. */
	line = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
	json_decref(object);
	return line;
}

static void
write_event(enum log_level level, const char *event,
    const struct log_field *fields, size_t count, const char *message)
{
	char time[CLOCK_TEXT_SIZE];
	char *cleaned = clean(message), *line = NULL, *whole = NULL;
	int length;

	/* The time is taken under the lock, so that lines are in its order. */
	pthread_mutex_lock(&lock);
	clock_text(clock_wall(), time);
	if (cleaned == NULL)
		message = "(out of memory for a message)";
	else
		message = cleaned;
	if (chosen_format == LOG_JSON)
		line = json_line(time, level, event, fields, count, message);
	if (line != NULL)
		length = asprintf(&whole, "%s\n", line);
	else
		length = asprintf(&whole, "%s %s %s: %s\n", time,
		    level_words[level], event, message);
	if (length > 0)
		write_line(whole, (size_t)length);
	pthread_mutex_unlock(&lock);
	if (length >= 0)
		free(whole);
	free(line);
	free(cleaned);
}

void
log_event(enum log_level level, const char *event,
    const struct log_field *fields, size_t count, const char *format, ...)
{
	char message[MESSAGE_SIZE];
	va_list arguments;
	int saved = errno;

	if (level > chosen_level)
		return;
	va_start(arguments, format);
	if (vsnprintf(message, sizeof(message), format, arguments) < 0)
		message[0] = '\0';
	va_end(arguments);
	write_event(level, event, fields, count, message);
	errno = saved;
}

void
log_failure(enum log_level level, const char *event,
    const struct error *error)
{
	static const char *const classes[] = {
		[ERROR_NONE] = "none",
		[ERROR_FAILED] = "failed",
		[ERROR_USAGE] = "usage",
		[ERROR_NOTHING] = "nothing",
		[ERROR_DAMAGED] = "damaged",
		[ERROR_SUPERSEDED] = "superseded",
		[ERROR_NOT_DURABLE] = "not_durable",
		[ERROR_NO_AGENT] = "no_agent",
	};
	char text[ERROR_TEXT_SIZE];

	/* Who reads JSON has the object and the cure as fields. */
	log_event(level, event, LOG_FIELDS(
	    LOG_TEXT_FIELD("class", classes[error->class]),
	    LOG_TEXT_FIELD("object", error->object),
	    LOG_TEXT_FIELD("cure", error->cure)), "%s",
	    chosen_format == LOG_JSON ? error->message :
	    error_text(error, text));
}
