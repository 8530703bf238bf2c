#include "play.h"

#include <stdlib.h>
#include <string.h>

#include "base/rate.h"

/*
 * Servers and connections that say nothing, and those that are only slow.
 */
static void
test_silence(void **state)
{
	const struct step rest = { .status = 206, .body = &HUNDRED[10],
	    .headers = "Content-Range: bytes 10-99/100\r\n" };
	/* Several, for a machine so slow that an answer seems missing. */
	const struct step steps[] = { { .kind = STEP_SILENT },
	    { .kind = STEP_STALL, .body = HUNDRED, .cut = 10 },
	    rest, rest, rest, rest };
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_config config = play_config(server);
	struct s3_client *client;
	struct s3_request request;
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes, 1000);
	config.first_byte_timeout = CLOCK_SECOND / 5;
	config.stall_timeout = CLOCK_SECOND / 5;
	client = play_client_with(&config);
	assert_ok(play_get(client, 0, 0, &bytes, &request), request.error);
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
	struct s3_config config = play_config(server);
	struct s3_client *client;
	struct s3_request request;
	char *data = calloc(1, size);

	config.give_up_after = 1;
	config.first_byte_timeout = CLOCK_SECOND / 5;
	config.stall_timeout = CLOCK_SECOND / 5;
	client = play_client_with(&config);
	assert_int_equal(play_put(client, data, size, &request), -1);
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
	struct s3_config config = play_config(server);
	struct s3_client *client;
	struct s3_request request;
	size_t size = 8 << 20;
	char *data = calloc(1, size);

	(void)state;
	/* Less than what the kernel's buffers take to drain. */
	config.first_byte_timeout = CLOCK_SECOND / 2;
	client = play_client_with(&config);
	assert_ok(play_put(client, data, size, &request), request.error);
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
	struct s3_config config = play_config(server);
	struct s3_client *client;
	struct s3_request request;
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes, 1000);
	config.stall_timeout = CLOCK_SECOND;
	client = play_client_with(&config);
	assert_ok(play_get(client, 0, 0, &bytes, &request), request.error);
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
	struct s3_config config = play_config(server);
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
	client = play_client_with(&config);
	request = (struct s3_request){ .operation = S3_GET, .key = "k",
	    .sink = play_collect, .context = &bytes, .rate = rate };
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		PLAY(test_silence),
		PLAY(test_silence_of_a_put),
		PLAY(test_slow_upload_is_no_silence),
		PLAY(test_drip_is_no_stall),
		PLAY(test_pace_is_no_stall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
