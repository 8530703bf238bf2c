#include "play.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What is tried again, what is not, and how a request ends otherwise.
 */
static void
test_what_a_request_is(void **state)
{
	const struct step steps[] = { { .headers = "ETag: \"x\"\r\n" } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = play_client(server);
	struct s3_request request;
	const struct seen *seen;
	char value[512], host[64];

	(void)state;
	assert_ok(play_put(client, "hello", 5, &request), request.error);
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
	struct s3_client *client = play_client(server);
	struct s3_request request;

	(void)state;
	assert_ok(play_put(client, "hello", 5, &request), request.error);
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
	struct s3_client *client = play_client(server);
	struct s3_request request;
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes, 100);
	play_put(client, "1", 1, &request);
	play_put(client, "2", 1, &request);
	assert_int_equal(play_get(client, 0, 0, &bytes, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_NOT_FOUND);
	play_put(client, "3", 1, &request);
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
	struct s3_client *client = play_client(server);
	struct s3_request request;

	(void)state;
	play_put(client, "1", 1, &request);
	assert_ok(play_put(client, "2", 1, &request), request.error);
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
	config = play_config(server);
	config.give_up_after = CLOCK_SECOND / 4;
	client = play_client_with(&config);
	assert_int_equal(play_put(client, "x", 1, &request), -1);
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
		struct s3_client *client = play_client(server);
		struct s3_request request;

		assert_int_equal(play_put(client, "x", 1, &request), -1);
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
		struct s3_client *client = play_client(server);
		struct s3_request request;

		snprintf(headers, sizeof(headers), "Location: %s/\r\n",
		    server_url(other));
		assert_int_equal(play_put(client, "x", 1, &request), -1);
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
	struct s3_client *client = play_client(server);
	struct s3_request request;

	(void)state;
	assert_int_equal(play_put(client, "x", 1, &request), -1);
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
	struct s3_client *client = play_client(server);
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

static void
test_delete(void **state)
{
	const struct step steps[] = { { .status = 204 },
	    { .status = 404, .body = ERROR_XML("NoSuchKey") },
	    { .status = 404, .body = ERROR_XML("NoSuchBucket") } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = play_client(server);
	struct s3_request request = { .operation = S3_DELETE, .key = "k" };

	(void)state;
	assert_ok(s3_client_perform(client, &request), request.error);
	assert_string_equal(server_seen(server, 0)->method, "DELETE");
	assert_ok(s3_client_perform(client, &request), request.error);
	assert_int_equal(s3_client_perform(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_DENIED);
	assert_string_equal(request.error.cure, "make the bucket \"bucket\", "
	    "or check its name and the endpoint");
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
	struct s3_client *client = play_client(server);
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
	struct s3_client *client = play_client(server);
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
	    { .operation = S3_GET, .key = "k", .sink = play_collect,
	    .offset = UINT64_MAX, .length = 2 },
	    { .operation = S3_GET, .key = "k", .sink = play_collect,
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
	config = play_config(server);
	config.threads = 3;
	client = play_client_with(&config);
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
	struct s3_config config = play_config(server);
	struct outcome outcome = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .changed = PTHREAD_COND_INITIALIZER };
	struct s3_request requests[2];
	struct s3_client *client;

	(void)state;
	config.connections = 1;
	client = play_client_with(&config);
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
	client = play_client_with(&config);
	assert_ok(play_put(client, "x", 1, &request), request.error);
	unsetenv("http_proxy");
	assert_string_equal(server_seen(proxy, 0)->target,
	    "http://s3.test.invalid:8080/bucket/dir/key");
	s3_client_free(client);
	server_stop(proxy);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		PLAY(test_what_a_request_is),
		PLAY(test_try_again_after_faults),
		PLAY(test_connection_is_kept),
		PLAY(test_closed_connection_is_no_fault),
		PLAY(test_give_up),
		PLAY(test_what_lasts_is_not_tried_again),
		PLAY(test_redirects_are_refused),
		PLAY(test_body_that_does_not_fit_its_hash),
		PLAY(test_if_absent),
		PLAY(test_delete),
		PLAY(test_body_that_cannot_be_read),
		PLAY(test_wrong_requests),
		PLAY(test_cancel_and_free),
		PLAY(test_deadline),
		PLAY(test_proxy_of_the_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
