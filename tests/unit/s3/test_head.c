#include "kit/kit.h"

#include <stdio.h>
#include <string.h>

#include "s3/head.h"

static struct head
head_of(const char *lines)
{
	struct head head;

	memset(&head, 0, sizeof(head));
	while (*lines != '\0') {
		size_t length = strcspn(lines, "\n");

		length += lines[length] == '\n';
		head_read_line(&head, lines, length);
		lines += length;
	}
	return head;
}

static void
test_fields(void **state)
{
	struct head head = head_of("HTTP/1.1 206 Partial Content\r\n"
	    "X-Amz-Request-Id:  abc \r\nETag: \"e\"\r\n"
	    "Content-Length: 10\r\nContent-Range: bytes 5-14/20\r\n"
	    "Date: Fri, 24 May 2013 00:00:00 GMT\r\nAge: 60\r\n"
	    "x-amz-bucket-region: eu-west-1\r\nRetry-After: 3\r\n\r\n");

	(void)state;
	assert_int_equal(head.status, 206);
	assert_string_equal(head.request_id, "abc");
	assert_string_equal(head.etag, "\"e\"");
	assert_string_equal(head.region, "eu-west-1");
	assert_true(head.has_length && head.length == 10);
	assert_true(head.has_range && head.range_first == 5 &&
	    head.range_last == 14);
	assert_true(head.has_total && head.range_total == 20);
	assert_int_equal(head_server_time(&head), 1369353660);
	assert_true(head.retry_after == UINT64_C(3000000000));
	head = head_of("HTTP/1.1 503 x\r\nx-amz-retry-after: 250\r\n");
	assert_true(head.retry_after == UINT64_C(250000000));
}

static void
test_new_status_begins_anew(void **state)
{
	struct head head = head_of("HTTP/1.1 100 Continue\r\nETag: old\r\n\r\n"
	    "HTTP/1.1 200 OK\r\n");

	(void)state;
	assert_int_equal(head.status, 200);
	assert_string_equal(head.etag, "");
}

static void
test_ranges_without_total(void **state)
{
	struct head head = head_of("HTTP/1.1 206 x\r\n"
	    "Content-Range: bytes 0-9/*\r\n");

	(void)state;
	assert_true(head.has_range && !head.has_total);
	head = head_of("HTTP/1.1 416 x\r\nContent-Range: bytes */77\r\n");
	assert_true(!head.has_range && head.has_total);
	assert_int_equal(head.range_total, 77);
}

static void
test_hostile_lines(void **state)
{
	static const char *const ranges[] = { "bytes 9-5/20", "bytes 0-9/5",
	    "bytes -1-9/20", "0-9/20", "bytes 0-9", "bytes", "bytes /",
	    "bytes 18446744073709551616-18446744073709551617/9",
	    "bytes 0-9223372036854775808/9223372036854775809",
	    "bytes a-b/c", "bytes 1/2-3", "" };
	char line[5000];

	(void)state;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		struct head head = { .status = 206 };

		snprintf(line, sizeof(line), "Content-Range: %s\r\n",
		    ranges[i]);
		head_read_line(&head, line, strlen(line));
		if (head.has_range)
			fail_msg("taken: %s", ranges[i]);
	}

	struct head head = head_of("HTTP/1.1 banana\r\n");

	assert_int_equal(head.status, 0);
	head = head_of("HTTP/1.1 99999999999 OK\r\n");
	assert_int_equal(head.status, 0);
	head = head_of("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n"
	    "Date: nonsense\r\nAge: 99999999999999999999\r\n"
	    "Retry-After: 99999999999999999999\r\nno colon\r\n:\r\n");
	assert_int_equal(head.status, 200);
	assert_true(!head.has_length && head.retry_after == 0 &&
	    head_server_time(&head) == 0);

	/* Too long, and with a NUL inside. */
	memset(line, 'a', sizeof(line));
	memcpy(line, "ETag: ", 6);
	head_read_line(&head, line, sizeof(line));
	head_read_line(&head, "ETag: a\0b\r\n", 11);
	assert_string_equal(head.etag, "");
	memset(line, 'a', 600);
	memcpy(line, "ETag: ", 6);
	head_read_line(&head, line, 600);
	assert_int_equal(strlen(head.etag), sizeof(head.etag) - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_new_status_begins_anew),
		cmocka_unit_test(test_ranges_without_total),
		cmocka_unit_test(test_hostile_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
