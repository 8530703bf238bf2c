#include "kit/kit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "s3/profile.h"
#include "server.h"

static struct profile *
profile_of(const char *name, const char *config, const char *credentials)
{
	struct error error = ERROR_INIT;
	struct profile *profile = profile_empty(name, &error);

	assert_non_null(profile);
	assert_ok(profile_read(profile, PROFILE_CONFIG, config,
	    strlen(config), &error), error);
	assert_ok(profile_read_services(profile, config, strlen(config),
	    &error), error);
	assert_ok(profile_read(profile, PROFILE_CREDENTIALS, credentials,
	    strlen(credentials), &error), error);
	return profile;
}

static void
check(const struct profile *profile, const char *key, const char *expected)
{
	const char *value = profile_get(profile, key);

	if (expected == NULL)
		assert_null(value);
	else if (value == NULL)
		fail_msg("%s is not set", key);
	else
		assert_string_equal(value, expected);
}

static void
test_names(void **state)
{
	const char *config = "[default]\nregion = r-default\n"
	    "[profile one]\nregion=r-one\n"
	    "[ profile \t two ]\nregion = r-two\n"
	    "[profile \"with blank\"]\nregion = r-blank\n"
	    "[profile 'quoted']\nregion = r-quoted\n"
	    "[one]\nregion = wrong\n[profilex]\nregion = wrong\n";
	const struct { const char *name; const char *region; } cases[] = {
		{ "default", "r-default" }, { "one", "r-one" },
		{ "two", "r-two" }, { "with blank", "r-blank" },
		{ "quoted", "r-quoted" }, { "profilex", NULL },
		{ "x", NULL }, { "profile one", NULL }, { "", NULL } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profile *profile = profile_of(cases[i].name, config,
		    "");

		check(profile, "region", cases[i].region);
		profile_free(profile);
	}
}

static void
test_default_has_two_names(void **state)
{
	struct profile *profile = profile_of("default",
	    "[profile default]\nregion = right\n"
	    "[default]\nregion = wrong\nonly_there = 1\n", "");

	(void)state;
	check(profile, "region", "right");
	check(profile, "only_there", NULL);
	profile_free(profile);
}

static void
test_credentials_win(void **state)
{
	struct profile *profile = profile_of("p",
	    "[profile p]\naws_access_key_id = config\nregion = r\n",
	    "[profile p]\naws_access_key_id = wrong\n"
	    "[p]\naws_access_key_id = right\n"
	    "aws_secret_access_key = a/b+c=d\naws_session_token : t\n");

	(void)state;
	check(profile, "aws_access_key_id", "right");
	check(profile, "aws_secret_access_key", "a/b+c=d");
	check(profile, "aws_session_token", "t");
	check(profile, "region", "r");
	profile_free(profile);
}

static void
test_nested_and_services(void **state)
{
	const char *config =
	    "[services other]\ns3 =\n  endpoint_url = http://wrong\n"
	    "[profile p]\n"
	    "services = mine\n"
	    "s3 =\n"
	    "    addressing_style = path\n"
	    "    # a comment\n"
	    "\tmax_concurrent_requests=20\n"
	    "REGION = r\n"
	    "empty =\n"
	    "[services mine]\n"
	    "dynamodb =\n  endpoint_url = http://dynamo\n"
	    "s3 = \n  endpoint_url = http://right:9000/?a=b\n"
	    "sts =\n  endpoint_url = http://sts\n"
	    "endpoint_url = http://not-nested\n";
	struct profile *profile = profile_of("p", config, "");

	(void)state;
	check(profile, "s3.addressing_style", "path");
	check(profile, "s3.max_concurrent_requests", "20");
	check(profile, "region", "r");
	check(profile, "empty", NULL);
	check(profile, "services.s3.endpoint_url", "http://right:9000/?a=b");
	check(profile, "services.sts.endpoint_url", "http://sts");
	check(profile, "services.endpoint_url", NULL);
	check(profile, "endpoint_url", NULL);
	profile_free(profile);
}

static void
test_odd_lines(void **state)
{
	struct profile *profile = profile_of("p",
	    "\xef\xbb\xbf# byte order mark\r\n"
	    "no section = 1\r\n"
	    "[profile p]\r\n"
	    "no equals sign\r\n"
	    "  indented = below nothing\r\n"
	    "a = 1 ; comment\r\n"
	    "b = #2\r\n"
	    "a = 2\r\n"
	    "[unclosed\r\nc = 3\r\n"
	    "[]\r\nd = 4\r\n"
	    "[profile p]\r\n"
	    "e = 5", "");

	(void)state;
	check(profile, "a", "2");
	check(profile, "b", "#2");
	check(profile, "c", NULL);
	check(profile, "d", NULL);
	check(profile, "e", "5");
	check(profile, "indented", NULL);
	profile_free(profile);
}

/* Two names that are equal in the bytes that inih keeps. */
static void
test_long_names(void **state)
{
	struct buffer config;
	struct error error = ERROR_INIT;
	struct profile *profile;
	char name[101], token[5001];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memset(token, 't', sizeof(token) - 1);
	token[sizeof(token) - 1] = '\0';
	buffer_init(&config, 1 << 20);
	assert_ok(buffer_format(&config, &error, "[profile %s]\n"
	    "aws_session_token = %s\n[profile %sx]\naws_session_token = x\n",
	    name, token, name), error);
	profile = profile_of(name, buffer_text(&config), "");
	check(profile, "aws_session_token", token);
	profile_free(profile);
	buffer_free(&config);
}

static void
test_limits(void **state)
{
	struct buffer config;
	struct error error = ERROR_INIT;
	struct profile *profile = profile_empty("p", &error);

	(void)state;
	buffer_init(&config, 1 << 20);
	assert_ok(buffer_format(&config, &error, "[profile p]\n%070000d = 1\n",
	    1), error);
	assert_int_equal(profile_read(profile, PROFILE_CONFIG,
	    buffer_text(&config), config.length, &error), -1);
	assert_int_equal(error.class, ERROR_USAGE);
	assert_non_null(strstr(error.message, "too long"));

	assert_int_equal(profile_read(profile, PROFILE_CONFIG, "a\0b", 3,
	    &error), -1);
	assert_int_equal(error.class, ERROR_USAGE);

	buffer_clear(&config);
	assert_ok(buffer_format(&config, &error, "[profile p]\n"), error);
	for (int i = 0; i < 600; i++)
		assert_ok(buffer_format(&config, &error, "k%d = 1\n", i),
		    error);
	assert_int_equal(profile_read(profile, PROFILE_CONFIG,
	    buffer_text(&config), config.length, &error), -1);
	assert_non_null(strstr(error.message, "settings"));
	profile_free(profile);
	buffer_free(&config);
}

static char *scratch;

static void
write_file(const char *variable, const char *name, const char *text)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	kit_write_file(path, text, strlen(text));
	if (variable != NULL)
		setenv(variable, path, 1);
}

static void
test_files(void **state)
{
	struct error error = ERROR_INIT;
	struct profile *profile;
	struct profile *again;

	(void)state;
	write_file("AWS_CONFIG_FILE", "c", "[profile a]\nregion = ra\n"
	    "[default]\nregion = rd\n");
	write_file("AWS_SHARED_CREDENTIALS_FILE", "k",
	    "[a]\naws_access_key_id = one\n");
	setenv("AWS_PROFILE", "a", 1);
	profile = profile_load(NULL, &error);
	assert_non_null(profile);
	assert_string_equal(profile_name(profile), "a");
	check(profile, "region", "ra");
	check(profile, "aws_access_key_id", "one");

	/* The files are read again, wherever the variables point now. */
	write_file(NULL, "k", "[a]\naws_access_key_id = two\n");
	unsetenv("AWS_SHARED_CREDENTIALS_FILE");
	again = profile_again(profile, &error);
	assert_non_null(again);
	check(again, "aws_access_key_id", "two");
	profile_free(again);
	profile_free(profile);

	/* An argument counts before the variable. */
	profile = profile_load("default", &error);
	check(profile, "region", "rd");
	profile_free(profile);
}

static void
test_files_that_are_missing(void **state)
{
	struct error error = ERROR_INIT;
	struct profile *profile = profile_load(NULL, &error);

	(void)state;
	assert_non_null(profile);
	assert_string_equal(profile_name(profile), "default");
	profile_free(profile);
	assert_null(profile_load("nobody", &error));
	assert_int_equal(error.class, ERROR_USAGE);
	assert_string_equal(error.object, "nobody");
	assert_non_null(strstr(error.message, "no such profile"));

	setenv("AWS_CONFIG_FILE", scratch, 1);	/* a folder */
	assert_null(profile_load(NULL, &error));
	assert_int_equal(error.class, ERROR_USAGE);
}

static void
test_files_at_home(void **state)
{
	struct error error = ERROR_INIT;
	struct profile *profile;

	(void)state;
	write_file(NULL, ".aws/config", "[default]\nregion = home\n");
	setenv("HOME", scratch, 1);
	profile = profile_load(NULL, &error);
	assert_non_null(profile);
	check(profile, "region", "home");
	profile_free(profile);
}

static int
setup(void **state)
{
	(void)state;
	server_clean_environment();
	scratch = kit_scratch();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	kit_scratch_remove(scratch);
	free(scratch);
	return 0;
}

#define TEST(function) \
	cmocka_unit_test_setup_teardown(function, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names),
		TEST(test_default_has_two_names),
		TEST(test_credentials_win),
		TEST(test_nested_and_services),
		TEST(test_odd_lines),
		TEST(test_long_names),
		TEST(test_limits),
		TEST(test_files),
		TEST(test_files_that_are_missing),
		TEST(test_files_at_home),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
