#include "kit/kit.h"

#include <stdbool.h>
#include <string.h>

#include "base/buffer.h"
#include "s3/url.h"

static void
check_encoding(const char *text, bool keep_slashes, const char *expected)
{
	struct buffer buffer;
	struct error error = ERROR_INIT;

	buffer_init(&buffer, 1024);
	assert_ok(url_encode(text, keep_slashes, &buffer, &error), error);
	assert_string_equal(buffer_text(&buffer), expected);
	buffer_free(&buffer);
}

static void
test_encoding(void **state)
{
	(void)state;
	check_encoding("", true, "");
	check_encoding("AZaz09-_.~", true, "AZaz09-_.~");
	check_encoding("a b+c/d%e", true, "a%20b%2Bc/d%25e");
	check_encoding("a/b=*'()!", false, "a%2Fb%3D%2A%27%28%29%21");
	check_encoding("\xc3\xa9\x7f\x01", true, "%C3%A9%7F%01");
}

static void
test_encoding_has_a_limit(void **state)
{
	struct buffer buffer;
	struct error error = ERROR_INIT;

	(void)state;
	buffer_init(&buffer, 4);
	assert_int_equal(url_encode("a  ", true, &buffer, &error), -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	buffer_free(&buffer);
}

static void
test_addresses(void **state)
{
	struct error error = ERROR_INIT;
	struct url url;

	(void)state;
	assert_ok(url_parse("https://S3.Example.com", &url, &error), error);
	assert_true(url.tls && url.default_port && url.bare);
	assert_string_equal(url.host, "s3.example.com");
	assert_int_equal(url.port, 443);

	assert_ok(url_parse("http://[::1]:9000/", &url, &error), error);
	assert_true(!url.tls && !url.default_port && url.bare);
	assert_string_equal(url.host, "[::1]");
	assert_int_equal(url.port, 9000);
	assert_true(url_host_is_address(url.host));

	assert_ok(url_parse("http://127.0.0.1:80/a?b", &url, &error), error);
	assert_true(url.default_port && !url.bare);
	assert_true(url_host_is_address(url.host));
	assert_false(url_host_is_address("localhost"));
	assert_false(url_host_is_address("1.2.3.example.com"));
}

static void
test_bad_addresses(void **state)
{
	static const char *const addresses[] = { "", "s3.example.com",
	    "ftp://example.com", "http://", "http://user@example.com",
	    "http://user:secret@example.com", "http://example.com:0",
	    "http://example.com:65536", "http://exa mple.com",
	    "http://example.com:80:80", "file:///etc/passwd",
	    "http://[::1", "http://a\nb" };

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct error error = ERROR_INIT;
		struct url url;

		if (url_parse(addresses[i], &url, &error) != -1)
			fail_msg("accepted: %s", addresses[i]);
		assert_int_equal(error.class, ERROR_USAGE);
		assert_null(strstr(error.message, "secret"));
	}
}

static void
test_long_host(void **state)
{
	char address[400] = "http://";
	struct error error = ERROR_INIT;
	struct url url;

	(void)state;
	memset(address + 7, 'a', 300);
	assert_int_equal(url_parse(address, &url, &error), -1);
	assert_int_equal(error.class, ERROR_USAGE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encoding),
		cmocka_unit_test(test_encoding_has_a_limit),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_bad_addresses),
		cmocka_unit_test(test_long_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
