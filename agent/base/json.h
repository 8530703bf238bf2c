#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct error;

/*
 * What we agree on about JSON (DESIGN 12), over jansson: sizes are integers,
 * times are {s, ns}, a name that is not UTF-8 is written as `<field>_b64`.
 * Makers return -1 only when out of memory.
 */

/**
 * json_set_name(object, field, name):
 * Set ${field} to ${name}, or `${field}_b64` to its base64 when it is not
 * UTF-8.  Return 0 or -1.
 */
int json_set_name(json_t *object, const char *field, const char *name);

/**
 * json_get_name(object, field):
 * The name that json_set_name wrote, in fresh memory (the caller frees it);
 * NULL when neither form is there, it is not a string, or it holds a NUL.
 */
char *json_get_name(const json_t *object, const char *field);

/**
 * json_text(text):
 * A string for people to read: what is not UTF-8 in ${text} (a name in it, or
 * a character that was cut) becomes U+FFFD.  NULL when out of memory.
 */
json_t *json_text(const char *text);

/**
 * json_set_u64(object, field, number):
 * Set an integer; ${number} is at most INT64_MAX.  Return 0 or -1.
 */
int json_set_u64(json_t *object, const char *field, uint64_t number);

/**
 * json_get_u64(object, field, number):
 * Read an integer >= 0.  Return 0, or -1 when it is missing or another kind.
 */
int json_get_u64(const json_t *object, const char *field, uint64_t *number);

/**
 * json_set_time(object, field, when) / json_get_time(object, field, when):
 * A time as {"s": seconds, "ns": nanoseconds}.  Return 0 or -1 (ns must be
 * 0..999999999; s may be negative).
 */
int json_set_time(json_t *object, const char *field, struct timespec when);
int json_get_time(const json_t *object, const char *field,
    struct timespec *when);

/**
 * json_get_text(object, field):
 * A string without NUL inside, still the object's; NULL otherwise.
 */
const char *json_get_text(const json_t *object, const char *field);

/**
 * json_read(data, length, object_name, error):
 * Parse one JSON value that is an object, refusing duplicate keys, NUL
 * escapes and nesting over 64.  The caller json_decref()s it.  NULL with
 * ERROR_DAMAGED when it is not that; ${object_name} names it in the error.
 */
json_t *json_read(const void *data, size_t length, const char *object_name,
    struct error *error);

#endif
