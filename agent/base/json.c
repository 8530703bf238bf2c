#include "base/json.h"

#include <assert.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

/* The deepest nesting that json_read takes; our own formats need under 10. */
#define DEEPEST 64

#define FIELD_SIZE 128

/* "${field}_b64", which is short: fields are words of ours. */
static const char *
coded_field(const char *field, char text[FIELD_SIZE])
{
	int length = snprintf(text, FIELD_SIZE, "%s_b64", field);

	assert(length > 0 && length < FIELD_SIZE);
	(void)length;
	return text;
}

/* The base64 (RFC 4648, section 4) of some bytes, in fresh memory. */
static char *
encode(const void *data, size_t length)
{
	char *text;

	if (length > INT_MAX / 2)
		return NULL;
	text = malloc((length + 2) / 3 * 4 + 1);
	if (text != NULL)
		EVP_EncodeBlock((unsigned char *)text, data, (int)length);
	return text;
}

/*
 * The name behind base64, in fresh memory.  OpenSSL's decoder is lenient and
 * counts the padding as bytes, so what it gives is encoded again and must be
 * the same text.
 */
static char *
decode(const char *text)
{
	size_t length = strlen(text), padding = 0;
	char *name, *again;
	bool same;
	int got;

	if (length > INT_MAX / 2 || length % 4 != 0)
		return NULL;
	while (padding < 2 && padding < length &&
	    text[length - 1 - padding] == '=')
		padding++;
	name = malloc(length / 4 * 3 + 1);
	if (name == NULL)
		return NULL;
	got = EVP_DecodeBlock((unsigned char *)name,
	    (const unsigned char *)text, (int)length);
	if (got < 0 || (size_t)got != length / 4 * 3)
		goto refused;
	length = (size_t)got - padding;
	name[length] = '\0';
	if (memchr(name, '\0', length) != NULL)
		goto refused;

	again = encode(name, length);
	same = again != NULL && strcmp(again, text) == 0;
	free(again);
	if (!same)
		goto refused;
	return name;

refused:
	free(name);
	return NULL;
}

int
json_set_name(json_t *object, const char *field, const char *name)
{
	char coded[FIELD_SIZE];
	char *base64;
	int result;

	coded_field(field, coded);
	if (text_is_utf8(name)) {
		json_object_del(object, coded);
		return json_object_set_new(object, field, json_string(name));
	}
	base64 = encode(name, strlen(name));
	if (base64 == NULL)
		return -1;
	json_object_del(object, field);
	result = json_object_set_new(object, coded, json_string(base64));
	free(base64);
	return result;
}

char *
json_get_name(const json_t *object, const char *field)
{
	char coded[FIELD_SIZE];
	const char *text;

	if (json_object_get(object, field) != NULL) {
		text = json_get_text(object, field);
		return text != NULL ? strdup(text) : NULL;
	}
	text = json_get_text(object, coded_field(field, coded));
	return text != NULL ? decode(text) : NULL;
}

json_t *
json_text(const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	size_t length = strlen(text), used;
	char *clean = malloc(length * 3 + 1), *out = clean;
	json_t *string;
	uint32_t code;

	if (clean == NULL)
		return NULL;
	for (; length > 0; text += used, length -= used) {
		if ((used = text_decode(text, length, &code)) == 0) {
			memcpy(out, replacement, 3);
			out += 3;
			used = 1;
			continue;
		}
		memcpy(out, text, used);
		out += used;
	}
	*out = '\0';
	string = json_string(clean);
	free(clean);
	return string;
}

int
json_set_u64(json_t *object, const char *field, uint64_t number)
{
	assert(number <= INT64_MAX);
	return json_object_set_new(object, field,
	    json_integer((json_int_t)number));
}

int
json_get_u64(const json_t *object, const char *field, uint64_t *number)
{
	const json_t *value = json_object_get(object, field);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return -1;
	*number = (uint64_t)json_integer_value(value);
	return 0;
}

int
json_set_time(json_t *object, const char *field, struct timespec when)
{
	assert(when.tv_nsec >= 0 && when.tv_nsec <= 999999999);
	return json_object_set_new(object, field, json_pack("{s:I, s:I}",
	    "s", (json_int_t)when.tv_sec, "ns", (json_int_t)when.tv_nsec));
}

int
json_get_time(const json_t *object, const char *field, struct timespec *when)
{
	const json_t *value = json_object_get(object, field);
	const json_t *seconds = json_object_get(value, "s");
	const json_t *nanoseconds = json_object_get(value, "ns");

	if (!json_is_integer(seconds) || !json_is_integer(nanoseconds) ||
	    json_integer_value(nanoseconds) < 0 ||
	    json_integer_value(nanoseconds) > 999999999)
		return -1;
	when->tv_sec = (time_t)json_integer_value(seconds);
	when->tv_nsec = (long)json_integer_value(nanoseconds);
	return 0;
}

const char *
json_get_text(const json_t *object, const char *field)
{
	const json_t *value = json_object_get(object, field);
	const char *text = json_string_value(value);

	if (text == NULL || strlen(text) != json_string_length(value))
		return NULL;
	return text;
}

/*
 * Whether brackets nest deeper than allowed.  jansson has a limit of its own
 * (2048) that can't be set; each level costs its parser and its json_decref a
 * stack frame.  What is no JSON may be judged wrongly here: the parser
 * refuses it anyway.
 */
static bool
nests_too_deep(const char *text, size_t length)
{
	size_t depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < length; i++) {
		if (quoted) {
			if (text[i] == '\\')
				i++;
			else if (text[i] == '"')
				quoted = false;
		} else if (text[i] == '"') {
			quoted = true;
		} else if (text[i] == '{' || text[i] == '[') {
			if (++depth > DEEPEST)
				return true;
		} else if ((text[i] == '}' || text[i] == ']') && depth > 0) {
			depth--;
		}
	}
	return false;
}

json_t *
json_read(const void *data, size_t length, const char *object_name,
    struct error *error)
{
	json_error_t problem;
	json_t *value;

	if (length == 0) {
		error_set(error, ERROR_DAMAGED, CAUSE_OTHER, object_name,
		    "not JSON: it is empty");
		return NULL;
	}
	if (nests_too_deep(data, length)) {
		error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, object_name,
		    "JSON that is nested deeper than %d", DEEPEST);
		return NULL;
	}
	value = json_loadb(data, length, JSON_REJECT_DUPLICATES, &problem);
	if (value == NULL) {
		error_set(error, ERROR_DAMAGED, CAUSE_OTHER, object_name,
		    "not JSON: %s (byte %d)", problem.text, problem.position);
		return NULL;
	}
	if (!json_is_object(value)) {
		json_decref(value);
		error_set(error, ERROR_DAMAGED, CAUSE_OTHER, object_name,
		    "JSON, but not an object");
		return NULL;
	}
	return value;
}
