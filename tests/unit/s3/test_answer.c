#include "kit/kit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "s3/answer.h"

#define XML "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define LIST XML "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/" \
    "2006-03-01/\"><Name>b</Name>"

static int
read_page(const char *text, struct answer_page *page, struct error *error)
{
	error_clear(error);
	return answer_read_page(text, strlen(text), page, error);
}

static void
test_error(void **state)
{
	const char *text = XML "<Error><Code>AuthorizationHeaderMalformed"
	    "</Code><Message>The &lt;region&gt; is wrong</Message><Region>"
	    "eu-west-1</Region><RequestId>4442587FB7D0A2F9</RequestId>"
	    "<HostId>x</HostId></Error>";
	struct answer_error failure;

	(void)state;
	assert_int_equal(answer_read_error(text, strlen(text), &failure), 0);
	assert_string_equal(failure.code, "AuthorizationHeaderMalformed");
	assert_string_equal(failure.message, "The <region> is wrong");
	assert_string_equal(failure.region, "eu-west-1");
	assert_string_equal(failure.request_id, "4442587FB7D0A2F9");

	text = XML "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/"
	    "2011-06-15/\"><Error><Type>Sender</Type><Code>InvalidIdentity"
	    "Token</Code><Message>bad</Message></Error><RequestId>r1"
	    "</RequestId></ErrorResponse>";
	assert_int_equal(answer_read_error(text, strlen(text), &failure), 0);
	assert_string_equal(failure.code, "InvalidIdentityToken");
	assert_string_equal(failure.request_id, "r1");
}

static void
test_error_that_is_none(void **state)
{
	static const char *const texts[] = { "", " ", "<html><body>502</body>"
	    "</html>", "<Error></Error>", "no XML", "<Error", "<A><Error>"
	    "<Code>x</Code></Error></A>", "<!DOCTYPE Error><Error><Code>x"
	    "</Code></Error>" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct answer_error failure;

		if (answer_read_error(texts[i], strlen(texts[i]),
		    &failure) == 0)
			fail_msg("taken as an error: %s", texts[i]);
	}
}

static void
test_error_with_long_texts(void **state)
{
	struct answer_error failure;
	struct buffer text;
	struct error error = ERROR_INIT;

	(void)state;
	buffer_init(&text, 1 << 20);
	assert_ok(buffer_format(&text, &error, "<Error><Code>C</Code>"
	    "<CanonicalRequest>%0100000d</CanonicalRequest><Message>%05000d"
	    "</Message></Error>", 1, 2), error);
	assert_int_equal(answer_read_error(text.data, text.length, &failure),
	    0);
	assert_string_equal(failure.code, "C");
	assert_int_equal(strlen(failure.message), sizeof(failure.message) - 1);

	/* What was read before the end was cut off counts. */
	assert_int_equal(answer_read_error(text.data, 30, &failure), 0);
	assert_string_equal(failure.code, "C");
	buffer_free(&text);
}

static void
test_page(void **state)
{
	struct answer_page page;
	struct error error = ERROR_INIT;

	(void)state;
	answer_page_init(&page);
	assert_ok(read_page(LIST "<KeyCount>4</KeyCount><IsTruncated>true"
	    "</IsTruncated><NextContinuationToken>t/1+=</NextContinuationToken>"
	    "<Contents><Key>a&amp;b</Key><LastModified>2026</LastModified>"
	    "<Size>0</Size></Contents><Contents><Key>z</Key><Size>"
	    "9007199254740993</Size><Owner><ID>1</ID></Owner></Contents>"
	    "<CommonPrefixes><Prefix>m/</Prefix></CommonPrefixes>"
	    "<CommonPrefixes><Prefix>\xc3\xa9/</Prefix></CommonPrefixes>"
	    "</ListBucketResult>", &page, &error), error);
	assert_int_equal(page.count, 4);
	assert_string_equal(answer_page_key(&page, 0), "a&b");
	assert_string_equal(answer_page_key(&page, 1), "m/");
	assert_true(page.entries[1].is_prefix);
	assert_string_equal(answer_page_key(&page, 2), "z");
	assert_true(page.entries[2].size == UINT64_C(9007199254740993));
	assert_string_equal(answer_page_key(&page, 3), "\xc3\xa9/");
	assert_true(page.truncated);
	assert_string_equal(page.next, "t/1+=");

	/* It is emptied before the next one. */
	assert_ok(read_page(LIST "</ListBucketResult>", &page, &error), error);
	assert_int_equal(page.count, 0);
	assert_false(page.truncated);
	answer_page_free(&page);
}

static void
test_damaged_pages(void **state)
{
	static const char *const texts[] = {
	    "",
	    "{}",
	    XML,
	    LIST,				/* cut off */
	    LIST "<Contents><Key>a</Key>",
	    XML "<Other/>",
	    LIST "<Contents><Key>a</Key></Contents></ListBucketResult>",
	    LIST "<Contents><Size>1</Size></Contents></ListBucketResult>",
	    LIST "<Contents><Key/><Size>1</Size></Contents>"
	    "</ListBucketResult>",
	    LIST "<Contents><Key>a</Key><Key>b</Key><Size>1</Size></Contents>"
	    "</ListBucketResult>",
	    LIST "<Contents><Key>a</Key><Size>-1</Size></Contents>"
	    "</ListBucketResult>",
	    LIST "<Contents><Key>a</Key><Size>1e9</Size></Contents>"
	    "</ListBucketResult>",
	    LIST "<Contents><Key>a</Key><Size>18446744073709551616</Size>"
	    "</Contents></ListBucketResult>",
	    LIST "<Contents><Key>a</Key><Size>9223372036854775808</Size>"
	    "</Contents></ListBucketResult>",
	    LIST "<IsTruncated>true</IsTruncated></ListBucketResult>",
	    LIST "<Contents><Key>&#0;</Key><Size>1</Size></Contents>"
	    "</ListBucketResult>",
	    LIST "</ListBucketResult><ListBucketResult/>",
	    "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult/>",
	    LIST "<Contents><Key>\xff</Key><Size>1</Size></Contents>"
	    "</ListBucketResult>" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct answer_page page;
		struct error error = ERROR_INIT;

		answer_page_init(&page);
		if (read_page(texts[i], &page, &error) != -1)
			fail_msg("accepted: %s", texts[i]);
		assert_int_equal(error.class, ERROR_DAMAGED);
		assert_true(error.message[0] != '\0');
		answer_page_free(&page);
	}
}

/* ${count} times ${part} between a head and a tail. */
static void
check_refused(const char *head, const char *part, size_t count,
    const char *tail, const char *why)
{
	struct answer_page page;
	struct buffer text;
	struct error error = ERROR_INIT;

	buffer_init(&text, 64 << 20);
	buffer_append(&text, head, strlen(head), &error);
	for (size_t i = 0; i < count; i++)
		buffer_append(&text, part, strlen(part), &error);
	buffer_append(&text, tail, strlen(tail), &error);
	answer_page_init(&page);
	assert_int_equal(answer_read_page(text.data, text.length, &page,
	    &error), -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	if (strstr(error.message, why) == NULL)
		fail_msg("%s", error.message);
	answer_page_free(&page);
	buffer_free(&text);
}

static void
test_limits(void **state)
{
	(void)state;
	check_refused(LIST, "<a>", 10000, "", "nested too deeply");
	check_refused(LIST "<Contents><Key>", "0123456789", 1000, "</Key>",
	    "too long");
	check_refused(LIST "<", "abcdefghij", 10, "/>", "too long a name");
	check_refused(LIST, "<Contents><Key>k</Key><Size>1</Size></Contents>",
	    ANSWER_ENTRIES_LIMIT + 1, "</ListBucketResult>",
	    "too many keys");
}

static void
test_long_token(void **state)
{
	struct answer_page page;
	struct buffer text;
	struct error error = ERROR_INIT;

	(void)state;
	buffer_init(&text, 1 << 20);
	assert_ok(buffer_format(&text, &error, LIST "<NextContinuationToken>"
	    "%0*d</NextContinuationToken></ListBucketResult>",
	    ANSWER_TOKEN_SIZE, 1), error);
	answer_page_init(&page);
	assert_int_equal(answer_read_page(text.data, text.length, &page,
	    &error), -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
	answer_page_free(&page);
	buffer_free(&text);
}

static int
on_refused(void *context, const char *key, const struct answer_error *failure,
    struct error *error)
{
	char *text = context;

	snprintf(text + strlen(text), 1000 - strlen(text), "%s=%s;", key,
	    failure->code);
	if (strcmp(key, "stop") == 0)
		return error_set(error, ERROR_FAILED, CAUSE_DENIED, key,
		    "stopped");
	return 0;
}

static void
test_deletes(void **state)
{
	const char *text = XML "<DeleteResult xmlns=\"x\"><Deleted><Key>a"
	    "</Key></Deleted><Error><Key>b&lt;</Key><Code>AccessDenied</Code>"
	    "<Message>no</Message></Error><Error><Key>c</Key><Code>"
	    "InternalError</Code></Error></DeleteResult>";
	struct error error = ERROR_INIT;
	char found[1000] = "";

	(void)state;
	assert_ok(answer_read_deletes(text, strlen(text), on_refused, found,
	    &error), error);
	assert_string_equal(found, "b<=AccessDenied;c=InternalError;");

	text = "<DeleteResult><Error><Key>stop</Key></Error><Error><Key>d"
	    "</Key></Error></DeleteResult>";
	found[0] = '\0';
	assert_int_equal(answer_read_deletes(text, strlen(text), on_refused,
	    found, &error), -1);
	assert_string_equal(error.message, "stopped");
	assert_string_equal(found, "stop=;");

	text = "<DeleteResult><Error><Key>d</Key>";
	assert_int_equal(answer_read_deletes(text, strlen(text), on_refused,
	    found, &error), -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
	text = "<Other/>";
	assert_int_equal(answer_read_deletes(text, strlen(text), on_refused,
	    found, &error), -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
}

static void
test_role(void **state)
{
	const char *text = "<AssumeRoleWithWebIdentityResponse xmlns=\"https:"
	    "//sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentity"
	    "Result><SubjectFromWebIdentityToken>s</SubjectFromWebIdentity"
	    "Token><Credentials><SessionToken>token</SessionToken>"
	    "<SecretAccessKey>secret</SecretAccessKey><Expiration>"
	    "2026-11-30T18:00:00Z</Expiration><AccessKeyId>id</AccessKeyId>"
	    "</Credentials></AssumeRoleWithWebIdentityResult>"
	    "</AssumeRoleWithWebIdentityResponse>";
	struct error error = ERROR_INIT;
	struct answer_role role;

	(void)state;
	assert_ok(answer_read_role(text, strlen(text), &role, &error), error);
	assert_string_equal(role.access_key, "id");
	assert_string_equal(role.secret, "secret");
	assert_string_equal(role.token, "token");
	assert_string_equal(role.expiration, "2026-11-30T18:00:00Z");
	assert_int_equal(answer_read_role("<A/>", 4, &role, &error), -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_error_that_is_none),
		cmocka_unit_test(test_error_with_long_texts),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_damaged_pages),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_long_token),
		cmocka_unit_test(test_deletes),
		cmocka_unit_test(test_role),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
