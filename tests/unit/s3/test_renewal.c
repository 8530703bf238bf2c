#include "asked.h"

#include <stdlib.h>
#include <string.h>

/*
 * Keys that have an end.
 */
/* The state at a time before the end of the keys, and whose keys. */
static void
check_at(struct credentials *credentials, int before,
    enum credentials_state expected, const char *id)
{
	struct error error = ERROR_INIT;
	struct keys keys;
	enum credentials_state state = credentials_get(credentials,
	    END - before, &keys, &error);

	assert_int_equal(state, expected);
	if (id != NULL)
		assert_string_equal(keys.access_key, id);
	if (state == CREDENTIALS_NONE)
		assert_int_equal(error.cause, CAUSE_UNREACHABLE);
}

static void
test_renewal(void **state)
{
	const struct step steps[] = { { .body = KEYS("1") },
	    { .body = KEYS("2") },			/* 14 min before */
	    { .status = 500 }, { .status = 500 }, { .status = 500 },
	    { .body = KEYS("3") },
	    { .status = 400 },				/* after the end */
	    { .body = KEYS("4") } };
	struct server *server = server_start(steps, COUNT(steps));
	struct timespec wall = { .tv_sec = END - 7200 };
	struct error error = ERROR_INIT;
	struct credentials *credentials;

	(void)state;
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server_url(server), 1);
	clock_test_start(wall);
	credentials = asked_credentials(NULL, &error);
	check_at(credentials, 7200, CREDENTIALS_WAIT, NULL);
	asked_wait(1);
	check_at(credentials, 7200, CREDENTIALS_READY, "ID1");
	check_at(credentials, 901, CREDENTIALS_READY, "ID1");

	/* Within 15 minutes: tried in the background, used meanwhile. */
	clock_test_turn(61 * CLOCK_SECOND);
	check_at(credentials, 840, CREDENTIALS_READY, "ID1");
	asked_wait(2);
	check_at(credentials, 840, CREDENTIALS_READY, "ID2");

	/* Within 10 minutes: insisted on; the old set serves when it fails,
	 * and is not asked for again at once. */
	clock_test_turn(61 * CLOCK_SECOND);
	check_at(credentials, 300, CREDENTIALS_WAIT, NULL);
	asked_wait(3);
	check_at(credentials, 300, CREDENTIALS_READY, "ID2");
	check_at(credentials, 290, CREDENTIALS_READY, "ID2");
	clock_test_turn(31 * CLOCK_SECOND);
	check_at(credentials, 280, CREDENTIALS_WAIT, NULL);
	asked_wait(4);
	check_at(credentials, 280, CREDENTIALS_READY, "ID3");

	/* Expired: told, then asked for again. */
	check_at(credentials, 0, CREDENTIALS_WAIT, NULL);
	asked_wait(5);
	check_at(credentials, 0, CREDENTIALS_NONE, NULL);
	clock_test_turn(2 * CLOCK_SECOND);
	check_at(credentials, 0, CREDENTIALS_WAIT, NULL);
	asked_wait(6);
	check_at(credentials, 7200, CREDENTIALS_READY, "ID4");
	asked_end(credentials);
	clock_test_stop();
	server_stop(server);
}

/* The whole client: a token that the server calls expired. */
static void
test_expired_token(void **state)
{
	const struct step keys[] = { { .body = KEYS("1") },
	    { .body = KEYS("2") } };
	const struct step expired = { .status = 400, .body =
	    "<Error><Code>ExpiredToken</Code></Error>" };
	const struct step steps[] = { expired, { .status = 204 }, expired,
	    expired };
	struct server *source = server_start(keys, COUNT(keys));
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_config config = { .bucket = "b",
	    .endpoint_url = server_url(server) };
	struct s3_request request = { .operation = S3_DELETE, .key = "k" };
	struct error error = ERROR_INIT;
	struct s3_client *client;
	char value[64], text[200];

	(void)state;
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server_url(source), 1);
	client = s3_client_new(&config, &error);
	assert_non_null(client);
	assert_int_equal(server_count(source), 0);
	assert_ok(s3_client_perform(client, &request), request.error);
	assert_int_equal(request.attempts, 2);
	assert_string_equal(seen_header(server_seen(server, 0),
	    "x-amz-security-token", value, sizeof(value)), "T1");
	assert_string_equal(seen_header(server_seen(server, 1),
	    "x-amz-security-token", value, sizeof(value)), "T2");
	assert_string_equal(s3_client_credentials_text(client, text,
	    sizeof(text)), "the container's role, until "
	    "2100-01-01T00:00:00.000Z");
	s3_client_free(client);
	server_stop(server);
	server_stop(source);
}

/* The whole client: a source that is down at first, and one that refuses. */
static void
test_source_that_fails(void **state)
{
	const struct step keys[] = { { .status = 500 }, { .status = 500 },
	    { .status = 500 }, { .body = KEYS("1") }, { .status = 403 } };
	const struct step steps[] = { { .status = 204 } };
	struct server *source = server_start(keys, COUNT(keys));
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_config config = { .bucket = "b",
	    .endpoint_url = server_url(server) };
	struct s3_request request = { .operation = S3_DELETE, .key = "k" };
	struct error error = ERROR_INIT;
	struct s3_client *client;

	(void)state;
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server_url(source), 1);
	client = s3_client_new(&config, &error);
	assert_ok(s3_client_perform(client, &request), request.error);
	assert_int_equal(request.attempts, 1);
	s3_client_free(client);

	client = s3_client_new(&config, &error);
	assert_int_equal(s3_client_perform(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_DENIED);
	assert_non_null(strstr(request.error.message,
	    "no credentials: the container's credentials endpoint "
	    "answered 403"));
	s3_client_free(client);
	assert_int_equal(server_count(server), 1);
	server_stop(server);
	server_stop(source);
}

/* A client that is closed while its credentials are on their way. */
static void
test_free_while_fetching(void **state)
{
	const struct step keys[] = { { .kind = STEP_SILENT },
	    { .kind = STEP_SILENT }, { .kind = STEP_SILENT } };
	struct server *source = server_start(keys, COUNT(keys));
	struct s3_config config = { .bucket = "b",
	    .endpoint_url = "http://127.0.0.1:1" };
	struct s3_request request = { .operation = S3_HEAD, .key = "k",
	    .deadline = clock_monotonic() + CLOCK_SECOND / 4 };
	struct error error = ERROR_INIT;
	struct s3_client *client;

	(void)state;
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server_url(source), 1);
	client = s3_client_new(&config, &error);
	assert_int_equal(s3_client_perform(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_UNREACHABLE);
	assert_non_null(strstr(request.error.message,
	    "no credentials have come yet"));
	s3_client_free(client);
	server_stop(source);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ASKED(test_renewal),
		ASKED(test_expired_token),
		ASKED(test_source_that_fails),
		ASKED(test_free_while_fetching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
