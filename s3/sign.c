#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "s3/sign.h"
#include "s3/url.h"

char *
sign_stamp(time_t seconds, char stamp[SIGN_STAMP_SIZE])
{
	struct tm parts;

	if (gmtime_r(&seconds, &parts) == NULL || strftime(stamp,
	    SIGN_STAMP_SIZE, "%Y%m%dT%H%M%SZ", &parts) == 0)
		memcpy(stamp, "19700101T000000Z", SIGN_STAMP_SIZE);
	return stamp;
}

/* One parameter, encoded; both texts lie in one buffer. */
struct parameter {
	size_t name;
	size_t value;
};

static int
parameter_compare(const void *one, const void *other, void *texts)
{
	const struct parameter *a = one;
	const struct parameter *b = other;
	const char *base = texts;
	int order = strcmp(base + a->name, base + b->name);

	if (order != 0)
		return order;
	return strcmp(base + a->value, base + b->value);
}

static int
parameter_encode(const struct sign_field *field, struct buffer *texts,
    struct parameter *parameter, struct error *error)
{
	parameter->name = texts->length;
	if (url_encode(field->name, false, texts, error) != 0 ||
	    buffer_append(texts, "", 1, error) != 0)
		return -1;
	parameter->value = texts->length;
	if (url_encode(field->value, false, texts, error) != 0 ||
	    buffer_append(texts, "", 1, error) != 0)
		return -1;
	return 0;
}

int
sign_query(const struct sign_field *parameters, size_t count,
    struct buffer *buffer, struct error *error)
{
	struct parameter sorted[SIGN_FIELDS_LIMIT];
	struct buffer texts;
	int result = -1;

	assert(count <= SIGN_FIELDS_LIMIT);
	if (count == 0)
		return 0;
	buffer_init(&texts, 64 * 1024);
	for (size_t i = 0; i < count; i++)
		if (parameter_encode(&parameters[i], &texts, &sorted[i],
		    error) != 0)
			goto out;
	qsort_r(sorted, count, sizeof(sorted[0]), parameter_compare,
	    texts.data);
	for (size_t i = 0; i < count; i++)
		if (buffer_format(buffer, error, "%s%s=%s", i == 0 ? "" : "&",
		    texts.data + sorted[i].name,
		    texts.data + sorted[i].value) != 0)
			goto out;
	result = 0;
out:
	buffer_free(&texts);
	return result;
}

static int
header_compare(const void *one, const void *other)
{
	const struct sign_field *a = *(const struct sign_field *const *)one;
	const struct sign_field *b = *(const struct sign_field *const *)other;
	int order = strcasecmp(a->name, b->name);

	/* Headers of one name keep their order: they lie in one array. */
	if (order != 0)
		return order;
	return a < b ? -1 : a > b;
}

static int
append_lower(const char *name, struct buffer *buffer, struct error *error)
{
	for (; *name != '\0'; name++) {
		char byte = (char)tolower((unsigned char)*name);

		if (buffer_append(buffer, &byte, 1, error) != 0)
			return -1;
	}
	return 0;
}

static bool
is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* Trimmed, and with each run of blanks inside become one. */
static int
append_value(const char *value, struct buffer *buffer, struct error *error)
{
	bool first = true;

	for (;;) {
		size_t word = 0;

		while (is_blank(*value))
			value++;
		if (*value == '\0')
			return 0;
		while (value[word] != '\0' && !is_blank(value[word]))
			word++;
		if (!first && buffer_append(buffer, " ", 1, error) != 0)
			return -1;
		if (buffer_append(buffer, value, word, error) != 0)
			return -1;
		value += word;
		first = false;
	}
}

static int
append_header(const struct sign_field *header, bool again,
    struct buffer *canonical, struct buffer *names, struct error *error)
{
	if (again) {
		/* The line that was begun goes on. */
		assert(canonical->data[canonical->length - 1] == '\n');
		canonical->data[canonical->length - 1] = ',';
	} else {
		if (names->length > 0 && buffer_append(names, ";", 1, error) != 0)
			return -1;
		if (append_lower(header->name, names, error) != 0 ||
		    append_lower(header->name, canonical, error) != 0 ||
		    buffer_append(canonical, ":", 1, error) != 0)
			return -1;
	}
	if (append_value(header->value, canonical, error) != 0)
		return -1;
	return buffer_append(canonical, "\n", 1, error);
}

int
sign_canonical(const struct sign_request *request, struct buffer *canonical,
    struct buffer *names, struct error *error)
{
	const struct sign_field *sorted[SIGN_FIELDS_LIMIT];
	size_t count = request->header_count;

	assert(count > 0 && count <= SIGN_FIELDS_LIMIT && names->length == 0);
	for (size_t i = 0; i < count; i++)
		sorted[i] = &request->headers[i];
	qsort(sorted, count, sizeof(sorted[0]), header_compare);

	if (buffer_format(canonical, error, "%s\n%s\n%s\n", request->method,
	    request->path, request->query) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		bool again = i > 0 && strcasecmp(sorted[i - 1]->name,
		    sorted[i]->name) == 0;

		if (append_header(sorted[i], again, canonical, names,
		    error) != 0)
			return -1;
	}
	return buffer_format(canonical, error, "\n%s\n%s", buffer_text(names),
	    request->payload);
}

int
sign_string(const struct buffer *canonical, const char *stamp,
    const char *region, const char *service, struct buffer *buffer,
    struct error *error)
{
	uint8_t digest[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];

	sha256_of(canonical->data, canonical->length, digest);
	return buffer_format(buffer, error,
	    "AWS4-HMAC-SHA256\n%s\n%.8s/%s/%s/aws4_request\n%s", stamp, stamp,
	    region, service, sha256_hex(digest, hex));
}

void
sign_key(const char *secret, const char *stamp, const char *region,
    const char *service, uint8_t key[SHA256_SIZE])
{
	char first[4 + SIGN_SECRET_LIMIT + 1];
	uint8_t other[SHA256_SIZE];
	int length = snprintf(first, sizeof(first), "AWS4%s", secret);

	assert(length > 0 && (size_t)length < sizeof(first));
	sha256_hmac(first, (size_t)length, stamp, 8, other);
	explicit_bzero(first, sizeof(first));
	sha256_hmac(other, SHA256_SIZE, region, strlen(region), key);
	sha256_hmac(key, SHA256_SIZE, service, strlen(service), other);
	sha256_hmac(other, SHA256_SIZE, "aws4_request", 12, key);
}

void
sign_signature(const uint8_t key[SHA256_SIZE], const struct buffer *string,
    char signature[SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];

	sha256_hmac(key, SHA256_SIZE, string->data, string->length, digest);
	sha256_hex(digest, signature);
}
