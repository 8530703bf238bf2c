#include "kit/kit.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/rate.h"
#include "s3/client.h"
#include "server.h"

/*
 * The client against a server that plays faults.
 */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ERROR_XML(code) "<?xml version=\"1.0\"?><Error><Code>" code \
    "</Code><Message>said so</Message><RequestId>R1</RequestId></Error>"

static struct s3_config
config_of(const struct server *server)
{
	return (struct s3_config){ .bucket = "bucket",
	    .endpoint_url = server_url(server), .threads = 1,
	    .connections = 4, .first_byte_timeout = 10 * CLOCK_SECOND,
	    .stall_timeout = 10 * CLOCK_SECOND };
}

static struct s3_client *
client_with(const struct s3_config *config)
{
	struct error error = ERROR_INIT;
	struct s3_client *client;

	setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	client = s3_client_new(config, &error);
	if (client == NULL)
		fail_msg("%s", error.message);
	return client;
}

static struct s3_client *
client_of(const struct server *server)
{
	struct s3_config config = config_of(server);

	return client_with(&config);
}

static int
collect(void *context, const void *data, size_t length, struct error *error)
{
	return buffer_append(context, data, length, error);
}

static int
perform_get(struct s3_client *client, uint64_t offset, uint64_t length,
    struct buffer *bytes, struct s3_request *request)
{
	*request = (struct s3_request){ .operation = S3_GET, .key = "dir/key",
	    .offset = offset, .length = length, .sink = collect,
	    .context = bytes };
	buffer_clear(bytes);
	return s3_client_perform(client, request);
}

static int
perform_put(struct s3_client *client, const void *data, size_t length,
    struct s3_request *request)
{
	struct source_memory memory = { data, length };
	struct source body = source_from_memory(&memory);

	*request = (struct s3_request){ .operation = S3_PUT, .key = "dir/key",
	    .body = &body, .length = length };
	sha256_of(data, length, request->sha256);
	return s3_client_perform(client, request);
}

static int
perform_head(struct s3_client *client, struct s3_request *request)
{
	*request = (struct s3_request){ .operation = S3_HEAD,
	    .key = "dir/key" };
	return s3_client_perform(client, request);
}

static void
assert_says(const struct s3_request *request, const char *text)
{
	if (strstr(request->error.message, text) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", text,
		    request->error.message);
}

static void
test_what_a_request_is(void **state)
{
	const struct step steps[] = { { .headers = "ETag: \"x\"\r\n" } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;
	const struct seen *seen;
	char value[512], host[64];

	(void)state;
	assert_ok(perform_put(client, "hello", 5, &request), request.error);
	assert_int_equal(request.attempts, 1);
	assert_int_equal(request.status, 200);
	seen = server_seen(server, 0);
	assert_string_equal(seen->method, "PUT");
	assert_string_equal(seen->target, "/bucket/dir/key");
	assert_string_equal(seen->body, "hello");
	snprintf(host, sizeof(host), "127.0.0.1:%d", server_port(server));
	assert_string_equal(seen_header(seen, "host", value, sizeof(value)),
	    host);
	assert_string_equal(seen_header(seen, "x-amz-content-sha256", value,
	    sizeof(value)), "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e"
	    "73043362938b9824");
	assert_string_equal(seen_header(seen, "expect", value, sizeof(value)),
	    "");
	assert_string_equal(seen_header(seen, "transfer-encoding", value,
	    sizeof(value)), "");
	seen_header(seen, "authorization", value, sizeof(value));
	assert_non_null(strstr(value, "AWS4-HMAC-SHA256 Credential=AKID/"));
	assert_non_null(strstr(value, "/us-east-1/s3/aws4_request, "
	    "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date, "
	    "Signature="));
	s3_client_free(client);
	server_stop(server);
}

static void
test_try_again_after_faults(void **state)
{
	const struct step steps[] = {
	    { .status = 503, .body = ERROR_XML("SlowDown") },
	    { .status = 500, .body = "<html>no XML</html>" },
	    { .status = 400, .body = ERROR_XML("RequestTimeout") },
	    { .status = 200, .body = ERROR_XML("InternalError") },
	    { .status = 200 },
	};
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;

	(void)state;
	assert_ok(perform_put(client, "hello", 5, &request), request.error);
	assert_int_equal(request.attempts, 5);
	for (size_t i = 0; i < COUNT(steps); i++) {
		/* Each retry goes out on a connection of its own. */
		assert_int_equal(server_seen(server, i)->connection, i + 1);
		assert_string_equal(server_seen(server, i)->body, "hello");
	}
	s3_client_free(client);
	server_stop(server);
}

static void
test_connection_is_kept(void **state)
{
	const struct step steps[] = { { .status = 200 }, { .status = 200 },
	    { .status = 404, .body = ERROR_XML("NoSuchKey") },
	    { .status = 200 } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes, 100);
	perform_put(client, "1", 1, &request);
	perform_put(client, "2", 1, &request);
	assert_int_equal(perform_get(client, 0, 0, &bytes, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_NOT_FOUND);
	perform_put(client, "3", 1, &request);
	for (size_t i = 0; i < COUNT(steps); i++)
		assert_int_equal(server_seen(server, i)->connection, 1);
	s3_client_free(client);
	server_stop(server);
	buffer_free(&bytes);
}

static void
test_closed_connection_is_no_fault(void **state)
{
	const struct step steps[] = { { .kind = STEP_CLOSE }, { .status = 200 } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;

	(void)state;
	perform_put(client, "1", 1, &request);
	assert_ok(perform_put(client, "2", 1, &request), request.error);
	assert_string_equal(server_seen(server, 1)->body, "2");
	s3_client_free(client);
	server_stop(server);
}

static void
test_give_up(void **state)
{
	const struct step fault = { .status = 503, .headers =
	    "x-amz-request-id: HEAD1\r\n" };
	struct step steps[64];
	struct server *server;
	struct s3_config config;
	struct s3_client *client;
	struct s3_request request;

	(void)state;
	for (size_t i = 0; i < COUNT(steps); i++)
		steps[i] = fault;
	server = server_start(steps, COUNT(steps));
	config = config_of(server);
	config.give_up_after = CLOCK_SECOND / 4;
	client = client_with(&config);
	assert_int_equal(perform_put(client, "x", 1, &request), -1);
	assert_int_equal(request.error.class, ERROR_FAILED);
	assert_int_equal(request.error.cause, CAUSE_UNREACHABLE);
	assert_string_equal(request.error.object, "dir/key");
	assert_says(&request, "PUT failed: 503 without a code (request id "
	    "HEAD1, attempt ");
	assert_int_equal(request.status, 503);
	assert_int_equal(server_count(server), request.attempts);
	s3_client_free(client);
	server_stop(server);
}

static void
test_what_lasts_is_not_tried_again(void **state)
{
	const struct {
		int status;
		const char *body;
		enum error_cause cause;
		const char *message;
	} cases[] = {
		{ 403, ERROR_XML("AccessDenied"), CAUSE_DENIED,
		    "403 AccessDenied: said so (request id R1, attempt 1)" },
		{ 403, "", CAUSE_DENIED, "403 without a code" },
		{ 403, ERROR_XML("SignatureDoesNotMatch"), CAUSE_DENIED,
		    "SignatureDoesNotMatch" },
		{ 403, ERROR_XML("QuotaExceeded"), CAUSE_NO_SPACE, "Quota" },
		{ 404, ERROR_XML("NoSuchBucket"), CAUSE_DENIED,
		    "NoSuchBucket" },
		{ 400, ERROR_XML("InvalidArgument"), CAUSE_OTHER, "400" },
		{ 501, ERROR_XML("NotImplemented"), CAUSE_UNSUPPORTED, "501" },
		{ 404, "<html>not S3 at all</html>", CAUSE_OTHER,
		    "404 without a code" },
		{ 403, ERROR_XML("ExpiredToken"), CAUSE_DENIED,
		    "ExpiredToken" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct step step = { .status = cases[i].status,
		    .body = cases[i].body };
		struct server *server = server_start(&step, 1);
		struct s3_client *client = client_of(server);
		struct s3_request request;

		assert_int_equal(perform_put(client, "x", 1, &request), -1);
		assert_int_equal(request.error.cause, cases[i].cause);
		assert_says(&request, cases[i].message);
		assert_int_equal(request.attempts, 1);
		s3_client_free(client);
		server_stop(server);
	}
}

static void
test_redirects_are_refused(void **state)
{
	static const int statuses[] = { 301, 302, 303, 307, 308 };

	(void)state;
	for (size_t i = 0; i < COUNT(statuses); i++) {
		struct server *other = server_start(NULL, 0);
		char headers[128];
		struct step step = { .status = statuses[i],
		    .headers = headers };
		struct server *server = server_start(&step, 1);
		struct s3_client *client = client_of(server);
		struct s3_request request;

		snprintf(headers, sizeof(headers), "Location: %s/\r\n",
		    server_url(other));
		assert_int_equal(perform_put(client, "x", 1, &request), -1);
		assert_int_equal(request.status, statuses[i]);
		assert_non_null(strstr(request.error.cure, "not followed"));
		assert_int_equal(server_count(other), 0);
		assert_int_equal(server_count(server), 1);
		s3_client_free(client);
		server_stop(server);
		server_stop(other);
	}
}

static void
test_body_that_does_not_fit_its_hash(void **state)
{
	const struct step steps[] = {
	    { .status = 400, .body = ERROR_XML("BadDigest") },
	    { .status = 400, .body =
	    ERROR_XML("XAmzContentSHA256Mismatch") } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;

	(void)state;
	assert_int_equal(perform_put(client, "x", 1, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_REFUSED);
	assert_int_equal(request.attempts, 2);
	s3_client_free(client);
	server_stop(server);
}

static void
test_if_absent(void **state)
{
	const struct step steps[] = {
	    { .status = 409, .body = ERROR_XML("ConditionalRequestConflict") },
	    { .status = 412, .body = ERROR_XML("PreconditionFailed") } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct source_memory memory = { "x", 1 };
	struct source body = source_from_memory(&memory);
	struct s3_request request = { .operation = S3_PUT, .key = "k",
	    .body = &body, .length = 1, .if_absent = true };
	char value[16];

	(void)state;
	assert_int_equal(s3_client_perform(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_EXISTS);
	assert_int_equal(request.attempts, 2);
	assert_string_equal(seen_header(server_seen(server, 1),
	    "if-none-match", value, sizeof(value)), "*");
	s3_client_free(client);
	server_stop(server);
}

#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static void
test_cut_body_goes_on(void **state)
{
	const struct step steps[] = {
	    { .kind = STEP_CUT, .body = HUNDRED, .cut = 30,
	    .headers = "ETag: \"e\"\r\n" },
	    { .kind = STEP_RESET, .status = 206, .body = HUNDRED, .cut = 20,
	    .headers = "ETag: \"e\"\r\nContent-Length: 70\r\n"
	    "Content-Range: bytes 30-99/100\r\n" },
	    { .status = 500 },
	    { .status = 206, .body = TEN TEN TEN TEN TEN,
	    .headers = "ETag: \"e\"\r\nContent-Range: bytes 50-99/100\r\n" },
	};
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;
	struct buffer bytes;
	char value[64];

	(void)state;
	buffer_init(&bytes, 1000);
	assert_ok(perform_get(client, 0, 0, &bytes, &request), request.error);
	assert_string_equal(buffer_text(&bytes), HUNDRED);
	assert_int_equal(request.size, 100);
	assert_int_equal(request.attempts, 4);
	assert_string_equal(seen_header(server_seen(server, 0), "range",
	    value, sizeof(value)), "");
	assert_string_equal(seen_header(server_seen(server, 1), "range",
	    value, sizeof(value)), "bytes=30-");
	assert_string_equal(seen_header(server_seen(server, 3), "range",
	    value, sizeof(value)), "bytes=50-");
	s3_client_free(client);
	server_stop(server);
	buffer_free(&bytes);
}

static void
test_range_goes_on(void **state)
{
	const struct step steps[] = {
	    { .kind = STEP_CUT, .status = 206, .body = TEN TEN TEN, .cut = 12,
	    .headers = "Content-Range: bytes 100-129/1000\r\n" },
	    { .status = 206, .body = "234567890123456789",
	    .headers = "Content-Range: bytes 112-129/1000\r\n" },
	};
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;
	struct buffer bytes;
	char value[64];

	(void)state;
	buffer_init(&bytes, 1000);
	assert_ok(perform_get(client, 100, 30, &bytes, &request),
	    request.error);
	assert_string_equal(buffer_text(&bytes), TEN TEN TEN);
	assert_int_equal(request.size, 1000);
	assert_string_equal(seen_header(server_seen(server, 0), "range",
	    value, sizeof(value)), "bytes=100-129");
	assert_string_equal(seen_header(server_seen(server, 1), "range",
	    value, sizeof(value)), "bytes=112-129");
	s3_client_free(client);
	server_stop(server);
	buffer_free(&bytes);
}

/* Answers to a GET of 30 bytes from 100 on that must not be believed. */
static void
test_wrong_ranges(void **state)
{
	const struct {
		struct step step;
		enum error_class class;
		const char *message;
	} cases[] = {
		{ { .status = 200, .body = HUNDRED }, ERROR_FAILED,
		    "does not answer ranges" },
		{ { .status = 206, .body = TEN TEN TEN }, ERROR_FAILED,
		    "does not answer ranges" },
		{ { .status = 206, .body = TEN TEN TEN, .headers =
		    "Content-Range: bytes 99-128/1000\r\n" }, ERROR_DAMAGED,
		    "got them from 99" },
		{ { .status = 206, .body = HUNDRED, .headers =
		    "Content-Range: bytes 100-199/1000\r\n" }, ERROR_DAMAGED,
		    "more than was asked for" },
		{ { .status = 206, .body = TEN, .headers =
		    "Content-Range: bytes 100-109/110\r\n" }, ERROR_DAMAGED,
		    "ends at 110" },
		{ { .status = 206, .body = TEN TEN TEN, .headers =
		    "Content-Range: bytes 100-18446744073709551615/9\r\n" },
		    ERROR_FAILED, "does not answer ranges" },
		{ { .status = 416, .body = ERROR_XML("InvalidRange") },
		    ERROR_DAMAGED, "416 InvalidRange" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct server *server = server_start(&cases[i].step, 1);
		struct s3_client *client = client_of(server);
		struct s3_request request;
		struct buffer bytes;

		buffer_init(&bytes, 1000);
		assert_int_equal(perform_get(client, 100, 30, &bytes,
		    &request), -1);
		assert_int_equal(request.error.class, cases[i].class);
		assert_says(&request, cases[i].message);
		s3_client_free(client);
		server_stop(server);
		buffer_free(&bytes);
	}
}

static void
test_object_replaced_while_read(void **state)
{
	const struct step steps[] = {
	    { .kind = STEP_CUT, .body = HUNDRED, .cut = 30,
	    .headers = "ETag: \"one\"\r\n" },
	    { .status = 206, .body = TEN, .headers = "ETag: \"two\"\r\n"
	    "Content-Range: bytes 30-39/40\r\n" } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes, 1000);
	assert_int_equal(perform_get(client, 0, 0, &bytes, &request), -1);
	assert_int_equal(request.error.class, ERROR_DAMAGED);
	assert_int_equal(request.error.cause, CAUSE_CHANGED);
	s3_client_free(client);
	server_stop(server);
	buffer_free(&bytes);
}

static void
test_silence(void **state)
{
	const struct step rest = { .status = 206, .body = HUNDRED + 10,
	    .headers = "Content-Range: bytes 10-99/100\r\n" };
	/* Several, for a machine so slow that an answer seems missing. */
	const struct step steps[] = { { .kind = STEP_SILENT },
	    { .kind = STEP_STALL, .body = HUNDRED, .cut = 10 },
	    rest, rest, rest, rest };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_config config = config_of(server);
	struct s3_client *client;
	struct s3_request request;
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes, 1000);
	config.first_byte_timeout = CLOCK_SECOND / 5;
	config.stall_timeout = CLOCK_SECOND / 5;
	client = client_with(&config);
	assert_ok(perform_get(client, 0, 0, &bytes, &request), request.error);
	assert_string_equal(buffer_text(&bytes), HUNDRED);
	assert_true(request.attempts >= 3);
	s3_client_free(client);
	server_stop(server);
	buffer_free(&bytes);
}

static void
check_silence(enum step_kind kind, size_t size, const char *message)
{
	const struct step steps[] = { { .kind = kind } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_config config = config_of(server);
	struct s3_client *client;
	struct s3_request request;
	char *data = calloc(1, size);

	config.give_up_after = 1;
	config.first_byte_timeout = CLOCK_SECOND / 5;
	config.stall_timeout = CLOCK_SECOND / 5;
	client = client_with(&config);
	assert_int_equal(perform_put(client, data, size, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_UNREACHABLE);
	assert_says(&request, message);
	assert_int_equal(request.attempts, 1);
	s3_client_free(client);
	server_stop(server);
	free(data);
}

static void
test_silence_of_a_put(void **state)
{
	(void)state;
	check_silence(STEP_SILENT, 100, "did not answer in time");
	check_silence(STEP_DEAF, 32 << 20, "stalled");
}

/* The wait for an answer begins when the body has arrived, not before. */
static void
test_slow_upload_is_no_silence(void **state)
{
	const struct step steps[] = { { .kind = STEP_SLOW_READ } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_config config = config_of(server);
	struct s3_client *client;
	struct s3_request request;
	size_t size = 8 << 20;
	char *data = calloc(1, size);

	(void)state;
	/* Less than what the kernel's buffers take to drain. */
	config.first_byte_timeout = CLOCK_SECOND / 2;
	client = client_with(&config);
	assert_ok(perform_put(client, data, size, &request), request.error);
	assert_int_equal(request.attempts, 1);
	s3_client_free(client);
	server_stop(server);
	free(data);
}

static void
test_drip_is_no_stall(void **state)
{
	const struct step steps[] = { { .kind = STEP_DRIP, .body = HUNDRED } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_config config = config_of(server);
	struct s3_client *client;
	struct s3_request request;
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes, 1000);
	config.stall_timeout = CLOCK_SECOND;
	client = client_with(&config);
	assert_ok(perform_get(client, 0, 0, &bytes, &request), request.error);
	assert_int_equal(request.attempts, 1);
	s3_client_free(client);
	server_stop(server);
	buffer_free(&bytes);
}

static void
test_pace_is_no_stall(void **state)
{
	char *text = malloc(30001);
	struct step steps[] = { { .body = text }, { .status = 200 } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_config config = config_of(server);
	struct error error = ERROR_INIT;
	struct rate *rate = rate_new(20000, &error);
	uint64_t start = clock_monotonic();
	struct s3_client *client;
	struct s3_request request;
	struct buffer bytes;

	(void)state;
	memset(text, 'x', 30000);
	text[30000] = '\0';
	buffer_init(&bytes, 100000);
	/* Less than what the first piece of the answer takes to be paid. */
	config.stall_timeout = CLOCK_SECOND / 3;
	client = client_with(&config);
	request = (struct s3_request){ .operation = S3_GET, .key = "k",
	    .sink = collect, .context = &bytes, .rate = rate };
	assert_ok(s3_client_perform(client, &request), request.error);
	assert_int_equal(bytes.length, 30000);
	assert_int_equal(request.attempts, 1);

	struct source_memory memory = { text, 30000 };
	struct source body = source_from_memory(&memory);

	request = (struct s3_request){ .operation = S3_PUT, .key = "k",
	    .body = &body, .length = 30000, .rate = rate };
	sha256_of(text, 30000, request.sha256);
	assert_ok(s3_client_perform(client, &request), request.error);
	assert_int_equal(request.attempts, 1);
	/* 60,000 bytes, less the bucket and what was not paid for. */
	assert_true(clock_monotonic() - start > CLOCK_SECOND);
	s3_client_free(client);
	server_stop(server);
	rate_free(rate);
	buffer_free(&bytes);
	free(text);
}

static void
date_after(time_t seconds, char *text, size_t size)
{
	time_t when = clock_wall().tv_sec + seconds;
	struct tm parts;

	gmtime_r(&when, &parts);
	strftime(text, size, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
}

/* Seconds by which a request was signed ahead of our clock. */
static double
signed_ahead(struct server *server, size_t index)
{
	char value[64];
	struct tm parts = { 0 };

	seen_header(server_seen(server, index), "x-amz-date", value,
	    sizeof(value));
	assert_non_null(strptime(value, "%Y%m%dT%H%M%SZ", &parts));
	return difftime(timegm(&parts), clock_wall().tv_sec);
}

static void
test_wrong_clock_is_corrected(void **state)
{
	char date[64];
	const struct step steps[] = {
	    { .status = 403, .headers = date, .body =
	    ERROR_XML("RequestTimeTooSkewed") },
	    { .status = 200 }, { .status = 200 } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;

	(void)state;
	date_after(7200, date, sizeof(date));
	assert_ok(perform_put(client, "x", 1, &request), request.error);
	assert_int_equal(request.attempts, 2);
	/* The next request begins with the right clock. */
	assert_ok(perform_put(client, "x", 1, &request), request.error);
	assert_true(signed_ahead(server, 0) < 60);
	for (size_t i = 1; i < 3; i++) {
		assert_true(signed_ahead(server, i) > 7100);
		assert_true(signed_ahead(server, i) < 7300);
	}
	s3_client_free(client);
	server_stop(server);
}

/* A server that says so without being right about it. */
static void
test_clock_is_not_corrected_for_ever(void **state)
{
	char date[64], far[64];
	const struct step steps[] = {
	    { .status = 403, .headers = far, .body =
	    ERROR_XML("RequestTimeTooSkewed") },
	    { .status = 403, .headers = date, .body =
	    ERROR_XML("RequestTimeTooSkewed") },
	    { .status = 403, .headers = far, .body =
	    ERROR_XML("RequestTimeTooSkewed") } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;

	(void)state;
	date_after(7200, far, sizeof(far));
	date_after(0, date, sizeof(date));
	assert_int_equal(perform_put(client, "x", 1, &request), -1);
	assert_int_equal(request.attempts, 3);
	assert_int_equal(request.error.cause, CAUSE_DENIED);
	assert_non_null(strstr(request.error.cure, "clock"));
	s3_client_free(client);
	server_stop(server);
}

static void
check_region(const struct step *wrong)
{
	const struct step steps[] = { *wrong, { .status = 200 },
	    { .status = 200 } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;
	char value[512];

	assert_ok(perform_put(client, "x", 1, &request), request.error);
	assert_int_equal(request.attempts, 2);
	assert_ok(perform_put(client, "x", 1, &request), request.error);
	assert_int_equal(request.attempts, 1);
	for (size_t i = 0; i < 3; i++)
		assert_non_null(strstr(seen_header(server_seen(server, i),
		    "authorization", value, sizeof(value)), i == 0 ?
		    "/us-east-1/s3/" : "/eu-west-3/s3/"));
	s3_client_free(client);
	server_stop(server);
}

static void
test_wrong_region_is_corrected(void **state)
{
	const struct step header = { .status = 301, .headers =
	    "x-amz-bucket-region: eu-west-3\r\n",
	    .body = ERROR_XML("PermanentRedirect") };
	const struct step body = { .status = 400, .body = "<Error><Code>"
	    "AuthorizationHeaderMalformed</Code><Region>eu-west-3</Region>"
	    "</Error>" };

	(void)state;
	check_region(&header);
	check_region(&body);
}

static void
test_region_is_corrected_once(void **state)
{
	const struct step steps[] = {
	    { .status = 301, .headers = "x-amz-bucket-region: eu-west-1\r\n" },
	    { .status = 301, .headers = "x-amz-bucket-region: eu-west-2\r\n" } };
	const struct step hostile[] = {
	    { .status = 301, .headers =
	    "x-amz-bucket-region: evil.example.com/\r\n" } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;

	(void)state;
	assert_int_equal(perform_put(client, "x", 1, &request), -1);
	assert_int_equal(request.attempts, 2);
	s3_client_free(client);
	server_stop(server);

	server = server_start(hostile, COUNT(hostile));
	client = client_of(server);
	assert_int_equal(perform_put(client, "x", 1, &request), -1);
	assert_int_equal(request.attempts, 1);
	s3_client_free(client);
	server_stop(server);
}

static void
test_head(void **state)
{
	const struct step steps[] = {
	    { .headers = "Content-Length: 123456\r\n" },
	    { .status = 404, .headers = "Content-Length: 77\r\n" },
	    { .status = 404, .body = ERROR_XML("NoSuchKey") },
	    { .status = 404 },
	    { .status = 404, .body = ERROR_XML("NoSuchBucket") },
	    { .status = 403 },
	    { .status = 416, .body = ERROR_XML("InvalidRange") },
	    { .status = 403 },
	    { .status = 206, .body = "x", .headers =
	    "Content-Range: bytes 0-0/77\r\n" },
	};
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request;

	(void)state;
	assert_ok(perform_head(client, &request), request.error);
	assert_int_equal(request.size, 123456);
	/* Only a code makes an absence certain, and HEAD has none. */
	assert_int_equal(perform_head(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_NOT_FOUND);
	assert_string_equal(server_seen(server, 2)->method, "GET");
	assert_int_equal(perform_head(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_DENIED);
	assert_ok(perform_head(client, &request), request.error);
	assert_int_equal(request.size, 0);
	assert_ok(perform_head(client, &request), request.error);
	assert_int_equal(request.size, 77);
	s3_client_free(client);
	server_stop(server);
}

static void
test_delete(void **state)
{
	const struct step steps[] = { { .status = 204 },
	    { .status = 404, .body = ERROR_XML("NoSuchKey") },
	    { .status = 404, .body = ERROR_XML("NoSuchBucket") } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct s3_request request = { .operation = S3_DELETE, .key = "k" };

	(void)state;
	assert_ok(s3_client_perform(client, &request), request.error);
	assert_string_equal(server_seen(server, 0)->method, "DELETE");
	assert_ok(s3_client_perform(client, &request), request.error);
	assert_int_equal(s3_client_perform(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_DENIED);
	s3_client_free(client);
	server_stop(server);
}

static int
fail_read(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	(void)context;
	memset(data, 0, length);
	if (offset < 600000)
		return 0;
	return error_set(error, ERROR_FAILED, CAUSE_CHANGED, "file",
	    "it became shorter");
}

static void
test_body_that_cannot_be_read(void **state)
{
	const struct step steps[] = { { .status = 200 } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct source body = { .size = 4 << 20, .read_at = fail_read,
	    .name = "file" };
	struct s3_request request = { .operation = S3_PUT, .key = "k",
	    .body = &body, .length = 4 << 20 };

	(void)state;
	assert_int_equal(s3_client_perform(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_CHANGED);
	assert_string_equal(request.error.message, "it became shorter");
	assert_int_equal(request.attempts, 1);
	s3_client_free(client);
	server_stop(server);
}

static void
test_wrong_requests(void **state)
{
	static char long_key[1026];
	struct server *server = server_start(NULL, 0);
	struct s3_client *client = client_of(server);
	struct source_memory memory = { "x", 1 };
	struct source body = source_from_memory(&memory);
	struct s3_request wrong[] = {
	    { .operation = S3_HEAD, .key = NULL },
	    { .operation = S3_HEAD, .key = "" },
	    { .operation = S3_HEAD, .key = long_key },
	    { .operation = S3_GET, .key = "k" },
	    { .operation = S3_PUT, .key = "k" },
	    { .operation = S3_PUT, .key = "k", .body = &body, .length = 2 },
	    { .operation = S3_PUT, .key = "k", .body = &body, .offset = 1,
	    .length = 1 },
	    { .operation = S3_GET, .key = "k", .sink = collect,
	    .offset = UINT64_MAX, .length = 2 },
	    { .operation = S3_GET, .key = "k", .sink = collect,
	    .offset = INT64_MAX, .length = 1 } };

	(void)state;
	memset(long_key, 'k', sizeof(long_key) - 1);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		assert_int_equal(s3_client_perform(client, &wrong[i]), -1);
		assert_int_equal(wrong[i].error.class, ERROR_USAGE);
	}
	assert_int_equal(server_count(server), 0);
	s3_client_free(client);
	server_stop(server);
}

/* What `done` saw, of requests that are not waited for. */
struct outcome {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned done;
	unsigned cancelled;
};

static void
on_done(struct s3_request *request)
{
	struct outcome *outcome = request->context;

	pthread_mutex_lock(&outcome->lock);
	outcome->done++;
	outcome->cancelled += request->error.cause == CAUSE_CANCELLED;
	pthread_cond_signal(&outcome->changed);
	pthread_mutex_unlock(&outcome->lock);
}

static void
outcome_wait(struct outcome *outcome, unsigned count)
{
	pthread_mutex_lock(&outcome->lock);
	while (outcome->done < count)
		pthread_cond_wait(&outcome->changed, &outcome->lock);
	pthread_mutex_unlock(&outcome->lock);
}

static void
test_cancel_and_free(void **state)
{
	const struct step silent = { .kind = STEP_SILENT };
	struct step steps[16];
	struct outcome outcome = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .changed = PTHREAD_COND_INITIALIZER };
	struct s3_request requests[12];
	struct s3_config config;
	struct server *server;
	struct s3_client *client;

	(void)state;
	for (size_t i = 0; i < COUNT(steps); i++)
		steps[i] = silent;
	server = server_start(steps, COUNT(steps));
	config = config_of(server);
	config.threads = 3;
	client = client_with(&config);
	/* 4 run, 8 wait in line. */
	for (size_t i = 0; i < COUNT(requests); i++) {
		requests[i] = (struct s3_request){ .operation = S3_HEAD,
		    .key = "k", .done = on_done, .context = &outcome };
		s3_client_submit(client, &requests[i]);
	}
	s3_client_cancel(client, &requests[11]);
	s3_client_cancel(client, &requests[0]);
	s3_client_cancel(client, &requests[5]);
	outcome_wait(&outcome, 3);
	assert_int_equal(outcome.cancelled, 3);
	/* One that is over already. */
	s3_client_cancel(client, &requests[0]);
	s3_client_free(client);
	assert_int_equal(outcome.done, COUNT(requests));
	assert_int_equal(outcome.cancelled, COUNT(requests));
	server_stop(server);
}

static void
test_deadline(void **state)
{
	const struct step steps[] = { { .kind = STEP_SILENT },
	    { .status = 200 } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_config config = config_of(server);
	struct outcome outcome = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .changed = PTHREAD_COND_INITIALIZER };
	struct s3_request requests[2];
	struct s3_client *client;

	(void)state;
	config.connections = 1;
	client = client_with(&config);
	for (size_t i = 0; i < COUNT(requests); i++) {
		requests[i] = (struct s3_request){ .operation = S3_HEAD,
		    .key = "k", .done = on_done, .context = &outcome,
		    .deadline = clock_monotonic() + CLOCK_SECOND / 5 };
		s3_client_submit(client, &requests[i]);
	}
	outcome_wait(&outcome, 2);
	assert_int_equal(outcome.cancelled, 0);
	for (size_t i = 0; i < COUNT(requests); i++)
		assert_int_equal(requests[i].error.cause, CAUSE_UNREACHABLE);
	assert_says(&requests[0], "not finished at its deadline");
	s3_client_free(client);
	server_stop(server);
}

static void
test_proxy_of_the_environment(void **state)
{
	const struct step steps[] = { { .status = 200 } };
	struct server *proxy = server_start(steps, COUNT(steps));
	struct s3_config config = { .bucket = "bucket", .threads = 1,
	    .endpoint_url = "http://s3.test.invalid:8080" };
	struct s3_client *client;
	struct s3_request request;

	(void)state;
	setenv("http_proxy", server_url(proxy), 1);
	client = client_with(&config);
	assert_ok(perform_put(client, "x", 1, &request), request.error);
	unsetenv("http_proxy");
	assert_string_equal(server_seen(proxy, 0)->target,
	    "http://s3.test.invalid:8080/bucket/dir/key");
	s3_client_free(client);
	server_stop(proxy);
}

#define PAGE(token, keys) "<ListBucketResult><IsTruncated>" token \
    keys "</ListBucketResult>"
#define NEXT(token) "true</IsTruncated><NextContinuationToken>" token \
    "</NextContinuationToken>"
#define LAST "false</IsTruncated>"
#define KEY(key) "<Contents><Key>" key "</Key><Size>3</Size></Contents>"

static int
visit(void *context, const struct s3_entry *entry, struct error *error)
{
	char *text = context;

	snprintf(text + strlen(text), 200 - strlen(text), "%s%s ", entry->key,
	    entry->is_prefix ? "*" : "");
	if (strcmp(entry->key, "p/stop") == 0)
		return error_set(error, ERROR_FAILED, CAUSE_OTHER, NULL,
		    "stopped");
	return 0;
}

static void
test_list(void **state)
{
	const struct step steps[] = {
	    { .body = PAGE(NEXT("a/+="), KEY("p/1") "<CommonPrefixes><Prefix>"
	    "p/0/</Prefix></CommonPrefixes>") },
	    { .status = 503 },
	    { .body = "<ListBucketResult><IsTr" },
	    { .body = ERROR_XML("InternalError") },
	    { .body = PAGE(LAST, KEY("p/2")) } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct error error = ERROR_INIT;
	char text[200] = "";

	(void)state;
	assert_ok(s3_client_list(client, "p/", "/", visit, text, &error),
	    error);
	assert_string_equal(text, "p/0/* p/1 p/2 ");
	assert_string_equal(server_seen(server, 0)->target,
	    "/bucket?delimiter=%2F&list-type=2&prefix=p%2F");
	for (size_t i = 1; i < COUNT(steps); i++)
		assert_string_equal(server_seen(server, i)->target,
		    "/bucket?continuation-token=a%2F%2B%3D&delimiter=%2F&"
		    "list-type=2&prefix=p%2F");
	s3_client_free(client);
	server_stop(server);
}

static void
test_bad_lists(void **state)
{
	const struct {
		struct step steps[2];
		enum error_class class;
		const char *message;
	} cases[] = {
		{ { { .body = PAGE(LAST, KEY("q/1")) } }, ERROR_DAMAGED,
		    "do not begin with" },
		{ { { .body = PAGE(NEXT("t"), KEY("p/1")) },
		    { .body = PAGE(NEXT("t"), KEY("p/2")) } }, ERROR_DAMAGED,
		    "same page again" },
		{ { { .body = PAGE(LAST, KEY("p/stop") KEY("p/t")) } },
		    ERROR_FAILED, "stopped" },
		{ { { .status = 403, .body = ERROR_XML("AccessDenied") } },
		    ERROR_FAILED, "listing bucket bucket: GET failed: 403" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct server *server = server_start(cases[i].steps, 2);
		struct s3_client *client = client_of(server);
		struct error error = ERROR_INIT;
		char text[200] = "";

		assert_int_equal(s3_client_list(client, "p/", NULL, visit,
		    text, &error), -1);
		assert_int_equal(error.class, cases[i].class);
		if (strstr(error.message, cases[i].message) == NULL)
			fail_msg("%s", error.message);
		s3_client_free(client);
		server_stop(server);
	}
}

static void
test_delete_many(void **state)
{
	const struct step steps[] = {
	    { .body = "<DeleteResult><Error><Key>b</Key><Code>InternalError"
	    "</Code></Error><Error><Key>d</Key><Code>NoSuchKey</Code></Error>"
	    "</DeleteResult>" },
	    { .status = 204 },	/* b by itself */
	    { .status = 204 } };	/* the key with a control character */
	const char *const keys[] = { "a<&>", "b", "c\x01", "d" };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct error error = ERROR_INIT;
	const struct seen *seen;
	char md5[64];

	(void)state;
	assert_ok(s3_client_delete_many(client, keys, COUNT(keys), &error),
	    error);
	assert_int_equal(server_count(server), 3);
	seen = server_seen(server, 0);
	assert_string_equal(seen->method, "POST");
	assert_string_equal(seen->target, "/bucket?delete=");
	assert_non_null(strstr(seen->body, "<Object><Key>a&lt;&amp;&gt;</Key>"
	    "</Object><Object><Key>b</Key></Object><Object><Key>d</Key>"
	    "</Object></Delete>"));
	assert_int_equal(strlen(seen_header(seen, "content-md5", md5,
	    sizeof(md5))), 24);
	s3_client_free(client);
	server_stop(server);
}

static void
test_delete_many_without_batches(void **state)
{
	struct step steps[] = {
	    { .status = 501, .body = ERROR_XML("NotImplemented") },
	    { .status = 204 }, { .status = 204 }, { .status = 204 },
	    { .status = 204 }, { .status = 204 },
	    { .status = 403, .body = ERROR_XML("AccessDenied") } };
	const char *const keys[] = { "a", "b", "c", "d" };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = client_of(server);
	struct error error = ERROR_INIT;

	(void)state;
	assert_ok(s3_client_delete_many(client, keys, 3, &error), error);
	assert_int_equal(server_count(server), 4);
	/* It is not asked again for what it does not have. */
	assert_int_equal(s3_client_delete_many(client, keys + 1, 3, &error),
	    -1);
	assert_int_equal(error.cause, CAUSE_DENIED);
	for (size_t i = 1; i < server_count(server); i++)
		assert_string_equal(server_seen(server, i)->method, "DELETE");
	s3_client_free(client);
	server_stop(server);
}

static int
setup(void **state)
{
	(void)state;
	server_clean_environment();
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_what_a_request_is, setup),
		cmocka_unit_test_setup(test_try_again_after_faults, setup),
		cmocka_unit_test_setup(test_connection_is_kept, setup),
		cmocka_unit_test_setup(test_closed_connection_is_no_fault,
		    setup),
		cmocka_unit_test_setup(test_give_up, setup),
		cmocka_unit_test_setup(test_what_lasts_is_not_tried_again,
		    setup),
		cmocka_unit_test_setup(test_redirects_are_refused, setup),
		cmocka_unit_test_setup(test_body_that_does_not_fit_its_hash,
		    setup),
		cmocka_unit_test_setup(test_if_absent, setup),
		cmocka_unit_test_setup(test_cut_body_goes_on, setup),
		cmocka_unit_test_setup(test_range_goes_on, setup),
		cmocka_unit_test_setup(test_wrong_ranges, setup),
		cmocka_unit_test_setup(test_object_replaced_while_read,
		    setup),
		cmocka_unit_test_setup(test_silence, setup),
		cmocka_unit_test_setup(test_silence_of_a_put, setup),
		cmocka_unit_test_setup(test_slow_upload_is_no_silence, setup),
		cmocka_unit_test_setup(test_drip_is_no_stall, setup),
		cmocka_unit_test_setup(test_pace_is_no_stall, setup),
		cmocka_unit_test_setup(test_wrong_clock_is_corrected, setup),
		cmocka_unit_test_setup(test_clock_is_not_corrected_for_ever,
		    setup),
		cmocka_unit_test_setup(test_wrong_region_is_corrected, setup),
		cmocka_unit_test_setup(test_region_is_corrected_once, setup),
		cmocka_unit_test_setup(test_head, setup),
		cmocka_unit_test_setup(test_delete, setup),
		cmocka_unit_test_setup(test_body_that_cannot_be_read, setup),
		cmocka_unit_test_setup(test_wrong_requests, setup),
		cmocka_unit_test_setup(test_cancel_and_free, setup),
		cmocka_unit_test_setup(test_deadline, setup),
		cmocka_unit_test_setup(test_proxy_of_the_environment, setup),
		cmocka_unit_test_setup(test_list, setup),
		cmocka_unit_test_setup(test_bad_lists, setup),
		cmocka_unit_test_setup(test_delete_many, setup),
		cmocka_unit_test_setup(test_delete_many_without_batches,
		    setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
