#include "play.h"

#include <string.h>
#include <time.h>

/*
 * What the server teaches the client: its clock, the bucket's region.
 */
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
	struct s3_client *client = play_client(server);
	struct s3_request request;

	(void)state;
	date_after(7200, date, sizeof(date));
	assert_ok(play_put(client, "x", 1, &request), request.error);
	assert_int_equal(request.attempts, 2);
	/* The next request begins with the right clock. */
	assert_ok(play_put(client, "x", 1, &request), request.error);
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
	struct s3_client *client = play_client(server);
	struct s3_request request;

	(void)state;
	date_after(7200, far, sizeof(far));
	date_after(0, date, sizeof(date));
	assert_int_equal(play_put(client, "x", 1, &request), -1);
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
	struct s3_client *client = play_client(server);
	struct s3_request request;
	char value[512];

	assert_ok(play_put(client, "x", 1, &request), request.error);
	assert_int_equal(request.attempts, 2);
	assert_ok(play_put(client, "x", 1, &request), request.error);
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
	struct s3_client *client = play_client(server);
	struct s3_request request;

	(void)state;
	assert_int_equal(play_put(client, "x", 1, &request), -1);
	assert_int_equal(request.attempts, 2);
	s3_client_free(client);
	server_stop(server);

	server = server_start(hostile, COUNT(hostile));
	client = play_client(server);
	assert_int_equal(play_put(client, "x", 1, &request), -1);
	assert_int_equal(request.attempts, 1);
	s3_client_free(client);
	server_stop(server);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		PLAY(test_wrong_clock_is_corrected),
		PLAY(test_clock_is_not_corrected_for_ever),
		PLAY(test_wrong_region_is_corrected),
		PLAY(test_region_is_corrected_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
