#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

/*
 * The log: stderr, one line an event, RFC 3339 UTC.
 *
 *	2026-11-30T17:46:00.123Z info durable: last.pt is durable (12.0 MiB new)
 *
 * With LOG_JSON one object a line: {"time", "level", "event", "message", and
 * the fields}.  Every function may be called from any thread; a line is
 * written with one write(2) and is never mixed with another.
 */

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON };

/* A fact beside the message, for those who read the log with a program. */
struct log_field {
	const char *name;		/* snake_case, with its unit: new_bytes, took_s */
	enum { LOG_FIELD_TEXT, LOG_FIELD_NUMBER, LOG_FIELD_SECONDS } kind;
	const char *text;
	uint64_t number;
	double seconds;
};

#define LOG_TEXT_FIELD(n, v) { .name = (n), .kind = LOG_FIELD_TEXT, .text = (v) }
#define LOG_NUMBER_FIELD(n, v) { .name = (n), .kind = LOG_FIELD_NUMBER, .number = (v) }
#define LOG_SECONDS_FIELD(n, v) { .name = (n), .kind = LOG_FIELD_SECONDS, .seconds = (v) }

/**
 * log_setup(format, level):
 * Say how to write and up to which level.  Before any other thread starts.
 * The default is LOG_TEXT and LOG_INFO.
 */
void log_setup(enum log_format format, enum log_level level);

/**
 * log_level_now():
 * The level up to which events are written.
 */
enum log_level log_level_now(void);

/**
 * log_event(level, event, fields, count, format, ...):
 * Write one event: ${event} is a fixed snake_case word, ${fields} may be NULL
 * when ${count} is 0; in text form only the message is shown.
 */
void log_event(enum log_level level, const char *event,
    const struct log_field *fields, size_t count, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* An event without fields. */
#define log_line(level, event, ...) log_event(level, event, NULL, 0, __VA_ARGS__)

/* An event with fields: log_with(LOG_INFO, "durable", FIELDS(a, b), "..."). */
#define LOG_FIELDS(...) \
	(const struct log_field[]){ __VA_ARGS__ }, \
	sizeof((const struct log_field[]){ __VA_ARGS__ }) / sizeof(struct log_field)

struct error;

/**
 * log_failure(level, event, error):
 * Write ${error} as an event, with fields object, cure and class.
 */
void log_failure(enum log_level level, const char *event,
    const struct error *error);

#endif
