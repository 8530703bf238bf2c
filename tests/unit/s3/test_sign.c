#include "kit/kit.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/sha256.h"
#include "s3/sign.h"
#include "s3/url.h"

/*
 * Every case of the known answers in tests/data/sigv4.  What S3 never does to
 * a path (normalise it, encode it twice) is done here, in the test.
 */
struct sample {
	char *folder;
	json_t *context;
	char *request;
	char *method;
	char *target;
	struct sign_field headers[SIGN_FIELDS_LIMIT];
	size_t header_count;
	const char *body;
};

static char *
sample_file(const struct sample *sample, const char *name)
{
	char path[4096];
	size_t length;

	snprintf(path, sizeof(path), "%s/%s", sample->folder, name);
	return kit_read_file(path, &length);
}

static bool
sample_flag(const struct sample *sample, const char *name)
{
	return json_is_true(json_object_get(sample->context, name));
}

/* A header that goes on in the next line is joined with a blank. */
static char *
line_end(char *line)
{
	char *end = strchr(line, '\n');

	while (end != NULL && (end[1] == ' ' || end[1] == '\t')) {
		*end = ' ';
		end = strchr(end, '\n');
	}
	assert_non_null(end);
	return end;
}

static void
sample_parse(struct sample *sample)
{
	char *line = sample->request;
	char *end = line_end(line);
	char *version;

	*end = '\0';
	sample->method = line;
	sample->target = strchr(line, ' ');
	*sample->target++ = '\0';
	version = strrchr(sample->target, ' ');
	*version = '\0';
	for (line = end + 1; *line != '\n' && *line != '\0'; line = end + 1) {
		char *value;

		/* The last header of a request without body has no line end. */
		if (strchr(line, '\n') == NULL)
			end = line + strlen(line) - 1;
		else
			*(end = line_end(line)) = '\0';
		value = strchr(line, ':');
		assert_non_null(value);
		*value++ = '\0';
		sample->headers[sample->header_count++] =
		    (struct sign_field){ line, value };
	}
	sample->body = *line == '\n' ? line + 1 : "";
}

/* RFC 3986, 5.2.4, and runs of slashes made one. */
static void
path_normalise(char *path)
{
	char *parts[64];
	size_t count = 0;
	size_t length = strlen(path);
	bool slash = path[length - 1] == '/' ||
	    (length >= 2 && strcmp(path + length - 2, "/.") == 0) ||
	    (length >= 3 && strcmp(path + length - 3, "/..") == 0);
	char copy[1024];
	char *rest = copy;
	char *part;

	snprintf(copy, sizeof(copy), "%s", path);
	while ((part = strsep(&rest, "/")) != NULL) {
		if (strcmp(part, "..") == 0)
			count -= count > 0;
		else if (part[0] != '\0' && strcmp(part, ".") != 0)
			parts[count++] = part;
	}
	path[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		strcat(path, "/");
		strcat(path, parts[i]);
	}
	if (count == 0 || slash)
		strcat(path, "/");
}

static char
hex_value(char digit)
{
	return (char)(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
}

static void
percent_decode(char *text)
{
	char *out = text;

	for (; *text != '\0'; text++) {
		if (*text == '%' && text[1] != '\0' && text[2] != '\0') {
			*out++ = (char)(hex_value(text[1]) << 4 |
			    hex_value(text[2]));
			text += 2;
		} else {
			*out++ = *text;
		}
	}
	*out = '\0';
}

static void
query_canonical(char *query, struct buffer *buffer)
{
	struct sign_field parameters[SIGN_FIELDS_LIMIT];
	struct error error = ERROR_INIT;
	size_t count = 0;
	char *part;

	while (query != NULL && (part = strsep(&query, "&")) != NULL) {
		char *value = strchr(part, '=');

		if (part[0] == '\0')
			continue;
		if (value != NULL)
			*value++ = '\0';
		percent_decode(part);
		if (value != NULL)
			percent_decode(value);
		parameters[count++] = (struct sign_field){ part,
		    value != NULL ? value : "" };
	}
	assert_ok(sign_query(parameters, count, buffer, &error), error);
}

static void
path_canonical(const struct sample *sample, char *path, bool s3,
    struct buffer *buffer)
{
	struct error error = ERROR_INIT;
	char work[1024];

	snprintf(work, sizeof(work), "%s", path);
	if (s3) {
		assert_ok(buffer_append(buffer, path, strlen(path), &error),
		    error);
		return;
	}
	if (sample_flag(sample, "normalize"))
		path_normalise(work);
	assert_ok(url_encode(work, true, buffer, &error), error);
}

/* What the signer adds to a request of its own. */
static void
headers_add(struct sample *sample, const char *stamp, const char *payload,
    bool s3)
{
	json_t *keys = json_object_get(sample->context, "credentials");
	const char *token = json_get_text(keys, "token");

	sample->headers[sample->header_count++] =
	    (struct sign_field){ "X-Amz-Date", stamp };
	if (s3 || sample_flag(sample, "sign_body"))
		sample->headers[sample->header_count++] =
		    (struct sign_field){ "x-amz-content-sha256", payload };
	if (token != NULL && !sample_flag(sample, "omit_session_token"))
		sample->headers[sample->header_count++] =
		    (struct sign_field){ "X-Amz-Security-Token", token };
}

static void
check_file(const struct sample *sample, const char *name, const char *text)
{
	char *expected = sample_file(sample, name);

	if (strcmp(expected, text) != 0)
		fail_msg("%s/%s:\nexpected\n%s\nbut got\n%s", sample->folder,
		    name, expected, text);
	free(expected);
}

static void
sample_check(struct sample *sample)
{
	const char *service = json_get_text(sample->context, "service");
	const char *region = json_get_text(sample->context, "region");
	const char *secret = json_get_text(json_object_get(sample->context,
	    "credentials"), "secret_access_key");
	const char *literal = json_get_text(sample->context,
	    "signed_body_value");
	bool s3 = strcmp(service, "s3") == 0;
	struct buffer path, query, canonical, names, string;
	struct error error = ERROR_INIT;
	char payload[SHA256_HEX_SIZE], signature[SHA256_HEX_SIZE];
	char stamp[SIGN_STAMP_SIZE];
	uint8_t digest[SHA256_SIZE], key[SHA256_SIZE];
	struct timespec when;
	char *question = strchr(sample->target, '?');

	assert_int_equal(clock_parse(json_get_text(sample->context,
	    "timestamp"), &when), 0);
	sign_stamp(when.tv_sec, stamp);
	sha256_of(sample->body, strlen(sample->body), digest);
	sha256_hex(digest, payload);
	if (question != NULL)
		*question++ = '\0';
	buffer_init(&path, 4096);
	buffer_init(&query, 4096);
	buffer_init(&canonical, 16384);
	buffer_init(&names, 4096);
	buffer_init(&string, 4096);
	path_canonical(sample, sample->target, s3, &path);
	query_canonical(question, &query);
	headers_add(sample, stamp, literal != NULL ? literal : payload, s3);

	struct sign_request request = { .method = sample->method,
	    .path = buffer_text(&path), .query = buffer_text(&query),
	    .headers = sample->headers, .header_count = sample->header_count,
	    .payload = literal != NULL ? literal : payload };

	assert_ok(sign_canonical(&request, &canonical, &names, &error), error);
	check_file(sample, "header-canonical-request.txt",
	    buffer_text(&canonical));
	assert_ok(sign_string(&canonical, stamp, region, service, &string,
	    &error), error);
	check_file(sample, "header-string-to-sign.txt", buffer_text(&string));
	sign_key(secret, stamp, region, service, key);
	sign_signature(key, &string, signature);
	check_file(sample, "header-signature.txt", signature);
	buffer_free(&path);
	buffer_free(&query);
	buffer_free(&canonical);
	buffer_free(&names);
	buffer_free(&string);
}

static void
sample_run(const char *set, const char *name)
{
	struct sample sample = { .header_count = 0 };
	struct error error = ERROR_INIT;
	char *context;

	assert_true(asprintf(&sample.folder, "%s/sigv4/%s/%s", TEST_DATA, set,
	    name) > 0);
	context = sample_file(&sample, "context.json");
	sample.context = json_read(context, strlen(context), name, &error);
	assert_non_null(sample.context);
	sample.request = sample_file(&sample, "request.txt");
	sample_parse(&sample);
	sample_check(&sample);
	json_decref(sample.context);
	free(context);
	free(sample.request);
	free(sample.folder);
}

static void
set_run(const char *set, size_t expected)
{
	char path[4096];
	struct dirent *entry;
	size_t count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/sigv4/%s", TEST_DATA, set);
	folder = opendir(path);
	assert_non_null(folder);
	while ((entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		sample_run(set, entry->d_name);
		count++;
	}
	closedir(folder);
	assert_int_equal(count, expected);
}

static void
test_official_suite(void **state)
{
	(void)state;
	set_run("v4", 38);
}

static void
test_s3_examples(void **state)
{
	(void)state;
	set_run("s3-examples", 16);
}

static void
test_stamp(void **state)
{
	char stamp[SIGN_STAMP_SIZE];

	(void)state;
	assert_string_equal(sign_stamp(1369353600, stamp), "20130524T000000Z");
	assert_string_equal(sign_stamp(0, stamp), "19700101T000000Z");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_official_suite),
		cmocka_unit_test(test_s3_examples),
		cmocka_unit_test(test_stamp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
