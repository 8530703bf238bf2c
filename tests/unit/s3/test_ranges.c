#include "play.h"


/*
 * The bytes of an object: ranges, bodies that are cut off, sizes.
 */
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
	struct s3_client *client = play_client(server);
	struct s3_request request;
	struct buffer bytes;
	char value[64];

	(void)state;
	buffer_init(&bytes, 1000);
	assert_ok(play_get(client, 0, 0, &bytes, &request), request.error);
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
	struct s3_client *client = play_client(server);
	struct s3_request request;
	struct buffer bytes;
	char value[64];

	(void)state;
	buffer_init(&bytes, 1000);
	assert_ok(play_get(client, 100, 30, &bytes, &request),
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
		struct s3_client *client = play_client(server);
		struct s3_request request;
		struct buffer bytes;

		buffer_init(&bytes, 1000);
		assert_int_equal(play_get(client, 100, 30, &bytes,
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
	struct s3_client *client = play_client(server);
	struct s3_request request;
	struct buffer bytes;

	(void)state;
	buffer_init(&bytes, 1000);
	assert_int_equal(play_get(client, 0, 0, &bytes, &request), -1);
	assert_int_equal(request.error.class, ERROR_DAMAGED);
	assert_int_equal(request.error.cause, CAUSE_CHANGED);
	s3_client_free(client);
	server_stop(server);
	buffer_free(&bytes);
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
	struct s3_client *client = play_client(server);
	struct s3_request request;

	(void)state;
	assert_ok(play_head(client, &request), request.error);
	assert_int_equal(request.size, 123456);
	/* Only a code makes an absence certain, and HEAD has none. */
	assert_int_equal(play_head(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_NOT_FOUND);
	assert_string_equal(server_seen(server, 2)->method, "GET");
	assert_int_equal(play_head(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_DENIED);
	assert_ok(play_head(client, &request), request.error);
	assert_int_equal(request.size, 0);
	assert_ok(play_head(client, &request), request.error);
	assert_int_equal(request.size, 77);
	s3_client_free(client);
	server_stop(server);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		PLAY(test_cut_body_goes_on),
		PLAY(test_range_goes_on),
		PLAY(test_wrong_ranges),
		PLAY(test_object_replaced_while_read),
		PLAY(test_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
