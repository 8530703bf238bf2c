#include "asked.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Keys of STS, a container and the machine.
 */
#define STS(n) "<AssumeRoleWithWebIdentityResponse>" \
    "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ID" n \
    "</AccessKeyId><SecretAccessKey>S</SecretAccessKey><SessionToken>T" \
    "</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration>" \
    "</Credentials></AssumeRoleWithWebIdentityResult>" \
    "</AssumeRoleWithWebIdentityResponse>"

static void
test_web_identity(void **state)
{
	const struct step steps[] = { { .body = STS("sts") },
	    { .status = 400, .body = "<ErrorResponse><Error><Code>"
	    "ExpiredTokenException</Code><Message>too old</Message></Error>"
	    "</ErrorResponse>" },
	    { .status = 307, .headers = "Location: http://127.0.0.1:1/\r\n" },
	    { .body = "<html/>" } };
	struct server *server = server_start(steps, COUNT(steps));
	const struct seen *seen;
	char value[64];

	(void)state;
	setenv("AWS_ENDPOINT_URL_STS", server_url(server), 1);
	setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
	setenv("AWS_ROLE_SESSION_NAME", "session", 1);
	setenv("AWS_WEB_IDENTITY_TOKEN_FILE", asked_file("token", "a+b/c\n"),
	    1);
	asked_check_first(NULL, "sts", NULL);
	seen = server_seen(server, 0);
	assert_string_equal(seen->method, "POST");
	assert_string_equal(seen->body, "Action=AssumeRoleWithWebIdentity&"
	    "Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&"
	    "RoleSessionName=session&WebIdentityToken=a%2Bb%2Fc");
	assert_string_equal(seen_header(seen, "authorization", value,
	    sizeof(value)), "");
	asked_again();
	asked_check_first(NULL, NULL, "400 ExpiredTokenException: too old");
	asked_again();
	asked_check_first(NULL, NULL, "answered 307");
	asked_again();
	asked_check_first(NULL, NULL, "STS");
	assert_int_equal(server_count(server), 4);
	setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nonexistent", 1);
	asked_again();
	asked_check_first(NULL, NULL, "web identity token");
	server_stop(server);
}

static void
test_web_identity_of_a_profile(void **state)
{
	const struct step steps[] = { { .body = STS("sts") } };
	struct server *server = server_start(steps, COUNT(steps));
	char config[8192];

	(void)state;
	snprintf(config, sizeof(config), "[profile p]\nrole_arn = arn\n"
	    "services = s\nweb_identity_token_file = %s\n[services s]\n"
	    "sts =\n  endpoint_url = %s\n", asked_file("token", "t"),
	    server_url(server));
	asked_aws_files(config, "");
	asked_check_first("p", "sts", NULL);
	server_stop(server);
}

static void
test_container(void **state)
{
	const struct step steps[] = { { .status = 500 },
	    { .body = KEYS("ecs") }, { .body = KEYS("ecs") },
	    { .status = 302, .headers = "Location: http://127.0.0.1:1/\r\n" },
	    { .body = "{\"AccessKeyId\":\"x\"}" } };
	struct server *server = server_start(steps, COUNT(steps));
	char url[256], value[64];

	(void)state;
	snprintf(url, sizeof(url), "%s/v1/credentials?x=1",
	    server_url(server));
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
	setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "plain", 1);
	/* Never through a proxy. */
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	asked_check_first(NULL, "ecs", NULL);
	assert_string_equal(server_seen(server, 1)->target,
	    "/v1/credentials?x=1");
	assert_string_equal(seen_header(server_seen(server, 1),
	    "authorization", value, sizeof(value)), "plain");

	/* The file counts before the variable, and is read each time. */
	setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	    asked_file("token", "Bearer x\n"), 1);
	asked_again();
	asked_check_first(NULL, "ecs", NULL);
	assert_string_equal(seen_header(server_seen(server, 2),
	    "authorization", value, sizeof(value)), "Bearer x");
	asked_again();
	asked_check_first(NULL, NULL, "answered 302");
	asked_again();
	asked_check_first(NULL, NULL, "secret key is missing");
	assert_int_equal(server_count(server), 5);

	asked_file("token", "Bearer x\r\nX-Evil: 1\n");
	asked_again();
	asked_check_first(NULL, NULL, "line break");
	assert_int_equal(server_count(server), 5);
	server_stop(server);
}

static void
test_container_hosts(void **state)
{
	static const struct { const char *uri; bool allowed; } cases[] = {
		{ "http://127.0.0.1/x", true }, { "http://127.3.2.1:99/", true },
		{ "http://localhost/", true }, { "http://[::1]/x", true },
		{ "http://169.254.170.2/x", true },
		{ "http://169.254.170.23/v1/credentials", true },
		{ "http://[fd00:ec2::23]/v1/credentials", true },
		{ "https://example.com/x", true },
		{ "http://example.com/x", false },
		{ "http://169.254.169.254/x", false },
		{ "http://127.0.0.1.example.com/", false },
		{ "http://localhost.example.com/", false },
		{ "http://10.0.0.1/", false }, { "ftp://127.0.0.1/", false },
		{ "http://user@127.0.0.1/", false }, { "nonsense", false } };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error error = ERROR_INIT;
		struct credentials *credentials;

		setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", cases[i].uri, 1);
		credentials = asked_credentials(NULL, &error);
		if ((credentials != NULL) != cases[i].allowed)
			fail_msg("%s: %s", cases[i].uri, error.message);
		if (!cases[i].allowed)
			assert_int_equal(error.class, ERROR_USAGE);
		asked_end(credentials);
	}
}

static void
test_machine(void **state)
{
	const struct step steps[] = { { .body = "TOKEN==" },
	    { .body = "role-name\n" }, { .body = KEYS("imds") } };
	struct server *server = server_start(steps, COUNT(steps));
	char value[64];

	(void)state;
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server_url(server), 1);
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	asked_check_first(NULL, "imds", NULL);
	assert_int_equal(server_count(server), 3);
	assert_string_equal(server_seen(server, 0)->method, "PUT");
	assert_string_equal(server_seen(server, 0)->target,
	    "/latest/api/token");
	assert_string_equal(seen_header(server_seen(server, 0),
	    "x-aws-ec2-metadata-token-ttl-seconds", value, sizeof(value)),
	    "21600");
	assert_string_equal(server_seen(server, 1)->target,
	    "/latest/meta-data/iam/security-credentials/");
	assert_string_equal(server_seen(server, 2)->target,
	    "/latest/meta-data/iam/security-credentials/role-name");
	assert_string_equal(seen_header(server_seen(server, 2),
	    "x-aws-ec2-metadata-token", value, sizeof(value)), "TOKEN==");
	/* All of it on one connection. */
	assert_int_equal(server_seen(server, 2)->connection, 1);
	server_stop(server);
}

static void
test_machine_that_fails(void **state)
{
	const struct step steps[] = {
	    { .body = "TOKEN" }, { .status = 404 },	/* no role */
	    { .body = "TOKEN" }, { .body = "../evil" },
	    { .body = "TOKEN" }, { .body = "a b" },
	    { .body = "TOKEN" }, { .status = 302,
	    .headers = "Location: http://127.0.0.1:1/\r\n" },
	    { .body = "TOKEN" }, { .body = "role" }, { .body = "{" },
	    { .status = 400 } };
	struct server *server = server_start(steps, COUNT(steps));

	(void)state;
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server_url(server), 1);
	asked_check_first(NULL, NULL, "this machine has no role");
	asked_again();
	asked_check_first(NULL, NULL, "names no role");
	asked_again();
	asked_check_first(NULL, NULL, "names no role");
	asked_again();
	asked_check_first(NULL, NULL, "answered 302");
	asked_again();
	asked_check_first(NULL, NULL, "");
	asked_again();
	asked_check_first(NULL, NULL, "answered 400");
	assert_int_equal(server_count(server), COUNT(steps));
	server_stop(server);

	/* Nobody there at all. */
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1", 1);
	asked_again();
	asked_check_first(NULL, NULL, "no keys for S3 in the environment");
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "nonsense", 1);
	asked_check_unusable(NULL, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
}

static void
test_machine_without_tokens(void **state)
{
	const struct step steps[] = { { .status = 404 }, { .body = "role" },
	    { .body = KEYS("v1") }, { .status = 403 } };
	struct server *server = server_start(steps, COUNT(steps));
	char value[64];

	(void)state;
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server_url(server), 1);
	asked_check_first(NULL, "v1", NULL);
	assert_string_equal(seen_header(server_seen(server, 2),
	    "x-aws-ec2-metadata-token", value, sizeof(value)), "");
	setenv("AWS_EC2_METADATA_V1_DISABLED", "true", 1);
	asked_again();
	asked_check_first(NULL, NULL, "answered 403");
	assert_int_equal(server_count(server), 4);
	server_stop(server);
}

static void
test_machine_token_ends(void **state)
{
	const struct step steps[] = { { .body = "OLD" }, { .status = 401 },
	    { .body = "NEW" }, { .body = "role" }, { .body = KEYS("x") } };
	struct server *server = server_start(steps, COUNT(steps));
	char value[64];

	(void)state;
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server_url(server), 1);
	asked_check_first(NULL, "x", NULL);
	assert_string_equal(seen_header(server_seen(server, 3),
	    "x-aws-ec2-metadata-token", value, sizeof(value)), "NEW");
	server_stop(server);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ASKED(test_web_identity),
		ASKED(test_web_identity_of_a_profile),
		ASKED(test_container),
		ASKED(test_container_hosts),
		ASKED(test_machine),
		ASKED(test_machine_that_fails),
		ASKED(test_machine_without_tokens),
		ASKED(test_machine_token_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
