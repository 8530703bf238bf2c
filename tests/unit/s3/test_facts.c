#include "play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * What the client tells those who look for a fault.
 */
static void
date_after(time_t seconds, char *text, size_t size)
{
	time_t when = clock_wall().tv_sec + seconds;
	struct tm parts;

	gmtime_r(&when, &parts);
	strftime(text, size, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
}

static void
test_nothing_is_known_before_an_answer(void **state)
{
	struct server *server = server_start(NULL, 0);
	struct s3_client *client = play_client(server);
	struct s3_facts facts;

	(void)state;
	s3_client_facts(client, &facts);
	assert_string_equal(facts.address, server_url(server));
	assert_string_equal(facts.source, "the environment");
	assert_string_equal(facts.region, facts.first_region);
	assert_false(facts.clock_known);
	s3_client_free(client);
	server_stop(server);
}

static void
test_another_region_is_told(void **state)
{
	const struct step steps[] = { { .status = 301,
	    .headers = "x-amz-bucket-region: eu-west-3\r\n",
	    .body = ERROR_XML("PermanentRedirect") }, { .status = 200 } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = play_client(server);
	struct s3_request request;
	struct s3_facts facts;

	(void)state;
	assert_ok(play_put(client, "x", 1, &request), request.error);
	s3_client_facts(client, &facts);
	assert_string_equal(facts.first_region, "us-east-1");
	assert_string_equal(facts.region, "eu-west-3");
	s3_client_free(client);
	server_stop(server);
}

/* The clock is told also by answers that refuse, and without any effect. */
static void
test_the_clock_is_told(void **state)
{
	char ahead[64], behind[64];
	const struct step steps[] = {
	    { .status = 200, .headers = ahead },
	    { .status = 403, .headers = behind,
	    .body = ERROR_XML("AccessDenied") }, };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client = play_client(server);
	struct s3_request request;
	struct s3_facts facts;
	char value[64];
	struct tm parts = { 0 };

	(void)state;
	date_after(3600, ahead, sizeof(ahead));
	date_after(-3600, behind, sizeof(behind));
	assert_ok(play_put(client, "x", 1, &request), request.error);
	s3_client_facts(client, &facts);
	assert_true(facts.clock_known);
	assert_in_range(facts.clock_offset, 3540, 3660);
	assert_int_equal(play_put(client, "x", 1, &request), -1);
	s3_client_facts(client, &facts);
	assert_in_range(-facts.clock_offset, 3540, 3660);
	seen_header(server_seen(server, 1), "x-amz-date", value,
	    sizeof(value));
	assert_non_null(strptime(value, "%Y%m%dT%H%M%SZ", &parts));
	assert_true(llabs((long long)(timegm(&parts) -
	    clock_wall().tv_sec)) < 60);
	s3_client_free(client);
	server_stop(server);
}

static void
test_keys_are_told_without_secrets(void **state)
{
	const struct step steps[] = { { .status = 200 } };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_client *client;
	struct s3_request request;
	struct s3_facts facts;

	(void)state;
	setenv("AWS_SESSION_TOKEN", "token", 1);
	setenv("AWS_CREDENTIAL_EXPIRATION", "2100-01-01T00:00:00Z", 1);
	client = play_client(server);
	assert_ok(play_put(client, "x", 1, &request), request.error);
	s3_client_facts(client, &facts);
	assert_true(facts.keys_known);
	assert_true(facts.temporary);
	assert_false(facts.renewable);
	assert_int_equal(facts.expires, 4102444800);
	s3_client_free(client);
	server_stop(server);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		PLAY(test_nothing_is_known_before_an_answer),
		PLAY(test_another_region_is_told),
		PLAY(test_the_clock_is_told),
		PLAY(test_keys_are_told_without_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
