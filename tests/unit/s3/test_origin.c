#include "asked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Keys of the environment, the profile files and a process, and their order.
 */
static void
set_environment(const char *id)
{
	setenv("AWS_ACCESS_KEY_ID", id, 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
}

static void
test_environment(void **state)
{
	struct error error = ERROR_INIT;
	struct credentials *credentials;
	struct keys keys;
	char text[100];

	(void)state;
	set_environment("IDenv");
	setenv("AWS_SESSION_TOKEN", "token", 1);
	credentials = asked_credentials(NULL, &error);
	assert_int_equal(credentials_get(credentials, 0, &keys, &error),
	    CREDENTIALS_READY);
	assert_string_equal(keys.access_key, "IDenv");
	assert_string_equal(keys.secret, "secret");
	assert_string_equal(keys.token, "token");
	assert_false(credentials_refuse(credentials, keys.number));
	assert_string_equal(credentials_text(credentials, text, sizeof(text)),
	    "the environment");
	asked_end(credentials);
}

static void
test_wrong_environment(void **state)
{
	(void)state;
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	asked_check_unusable(NULL, "no keys for S3");
	setenv("AWS_ACCESS_KEY_ID", "id", 1);
	asked_check_unusable(NULL, "the secret key is missing");
	setenv("AWS_SECRET_ACCESS_KEY", "two words", 1);
	asked_check_unusable(NULL, "holds a blank");
	setenv("AWS_SECRET_ACCESS_KEY", "line\nbreak", 1);
	asked_check_unusable(NULL, "holds a blank");
}

static void
test_order(void **state)
{
	(void)state;
	asked_aws_files("[profile p]\nregion = r\n",
	    "[default]\naws_access_key_id = IDdefault\n"
	    "aws_secret_access_key = s\n"
	    "[p]\naws_access_key_id = IDp\naws_secret_access_key = s\n");
	set_environment("IDenv");
	asked_check_first(NULL, "env", NULL);
	/* A variable does not make the environment's keys void... */
	setenv("AWS_PROFILE", "p", 1);
	asked_check_first(NULL, "env", NULL);
	/* ...but who names a profile here means that one. */
	asked_check_first("p", "p", NULL);
	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	asked_again();
	asked_check_first(NULL, "p", NULL);
	unsetenv("AWS_PROFILE");
	asked_again();
	asked_check_first(NULL, "default", NULL);
}

static void
test_unsupported_profiles(void **state)
{
	(void)state;
	asked_aws_files("[profile role]\nrole_arn = arn:r\nsource_profile = x\n"
	    "[profile sso]\nsso_session = s\n"
	    "[profile open]\ncredential_process = 'x\n", "");
	asked_check_unusable("role", "role_arn");
	asked_check_unusable("sso", "single sign-on");

	struct error error = ERROR_INIT;

	assert_null(asked_credentials("open", &error));
	assert_non_null(strstr(error.message, "open quote"));
	profile_free(asked_profile);
}

static void
test_process(void **state)
{
	char config[4096];
	const char *script = asked_file("keys", "#!/bin/sh\n"
	    "test \"$1\" = 'two words' && test $# = 2 && echo '{\"Version\": 1,"
	    "\"AccessKeyId\":\"IDprocess\",\"SecretAccessKey\":\"s\","
	    "\"SessionToken\":\"t\"}'\n");

	(void)state;
	chmod(script, 0755);
	snprintf(config, sizeof(config), "[profile p]\ncredential_process = "
	    "\"%s\" 'two words' x\n[profile fails]\ncredential_process = "
	    "false\n[profile nonsense]\ncredential_process = echo hello\n",
	    script);
	asked_aws_files(config, "");
	asked_check_first("p", "process", NULL);
	asked_again();
	asked_check_first("fails", NULL, "");
	asked_again();
	asked_check_first("nonsense", NULL, "");
}

static void
test_files_are_read_again(void **state)
{
	struct error error = ERROR_INIT;
	struct credentials *credentials;
	struct keys keys;

	(void)state;
	asked_aws_files("", "[default]\naws_access_key_id = ID1\n"
	    "aws_secret_access_key = s\n");
	credentials = asked_credentials(NULL, &error);
	assert_int_equal(asked_first(credentials, &keys, &error),
	    CREDENTIALS_READY);
	assert_string_equal(keys.access_key, "ID1");
	asked_aws_files("", "[default]\naws_access_key_id = ID2\n"
	    "aws_secret_access_key = s\n");
	assert_true(credentials_refuse(credentials, keys.number));
	assert_int_equal(credentials_get(credentials, 0, &keys, &error),
	    CREDENTIALS_WAIT);
	asked_wait(2);
	assert_int_equal(credentials_get(credentials, 0, &keys, &error),
	    CREDENTIALS_READY);
	assert_string_equal(keys.access_key, "ID2");
	asked_end(credentials);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ASKED(test_environment),
		ASKED(test_wrong_environment),
		ASKED(test_order),
		ASKED(test_unsupported_profiles),
		ASKED(test_process),
		ASKED(test_files_are_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
