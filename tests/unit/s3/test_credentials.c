#include "kit/kit.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "s3/client.h"
#include "s3/credentials.h"
#include "s3/profile.h"
#include "server.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define END 4102444800	/* 2100-01-01T00:00:00Z */
#define KEYS(n) "{\"Code\":\"Success\",\"AccessKeyId\":\"ID" n "\"," \
    "\"SecretAccessKey\":\"S" n "\",\"Token\":\"T" n "\"," \
    "\"Expiration\":\"2100-01-01T00:00:00Z\"}"

static char *scratch;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned woken;

static void
on_wake(void *context)
{
	(void)context;
	pthread_mutex_lock(&lock);
	woken++;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

/* Wait until the source was asked ${count} times in this test. */
static void
wait_woken(unsigned count)
{
	pthread_mutex_lock(&lock);
	while (woken < count)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static struct profile *profile;

static struct credentials *
credentials_of(const char *name, struct error *error)
{
	struct s3_config config = { .bucket = "b", .profile = name };

	profile = profile_load(name, error);
	assert_non_null(profile);
	return credentials_new(&config, profile, "eu-west-1", NULL, on_wake,
	    NULL, error);
}

static void
end(struct credentials *credentials)
{
	credentials_free(credentials);
	profile_free(profile);
}

/* The first set, waited for. */
static enum credentials_state
first(struct credentials *credentials, struct keys *keys,
    struct error *error)
{
	enum credentials_state state = credentials_get(credentials,
	    clock_wall().tv_sec, keys, error);

	if (state == CREDENTIALS_WAIT) {
		wait_woken(1);
		state = credentials_get(credentials, clock_wall().tv_sec,
		    keys, error);
	}
	return state;
}

/* The source gives the keys number ${n}, or fails saying ${message}. */
static void
check_first(const char *name, const char *n, const char *message)
{
	struct error error = ERROR_INIT;
	struct credentials *credentials = credentials_of(name, &error);
	struct keys keys;
	char id[32];

	if (credentials == NULL)
		fail_msg("%s", error.message);
	if (n == NULL) {
		assert_int_equal(first(credentials, &keys, &error),
		    CREDENTIALS_NONE);
		if (strstr(error.message, message) == NULL)
			fail_msg("%s", error.message);
	} else {
		if (first(credentials, &keys, &error) != CREDENTIALS_READY)
			fail_msg("%s", error.message);
		snprintf(id, sizeof(id), "ID%s", n);
		assert_string_equal(keys.access_key, id);
	}
	end(credentials);
}

static void
check_unusable(const char *name, const char *message)
{
	struct error error = ERROR_INIT;

	assert_null(credentials_of(name, &error));
	assert_int_equal(error.class, ERROR_USAGE);
	if (strstr(error.message, message) == NULL)
		fail_msg("%s", error.message);
	assert_true(error.cure[0] != '\0');
	profile_free(profile);
}

static void
set_environment(const char *id)
{
	setenv("AWS_ACCESS_KEY_ID", id, 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
}

static void
set_files(const char *config, const char *credentials)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/config", scratch);
	kit_write_file(path, config, strlen(config));
	setenv("AWS_CONFIG_FILE", path, 1);
	snprintf(path, sizeof(path), "%s/credentials", scratch);
	kit_write_file(path, credentials, strlen(credentials));
	setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
}

static const char *
file_with(const char *name, const char *text)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	kit_write_file(path, text, strlen(text));
	return path;
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
	credentials = credentials_of(NULL, &error);
	assert_int_equal(credentials_get(credentials, 0, &keys, &error),
	    CREDENTIALS_READY);
	assert_string_equal(keys.access_key, "IDenv");
	assert_string_equal(keys.secret, "secret");
	assert_string_equal(keys.token, "token");
	assert_false(credentials_refuse(credentials, keys.number));
	assert_string_equal(credentials_text(credentials, text, sizeof(text)),
	    "the environment");
	end(credentials);
}

static void
test_wrong_environment(void **state)
{
	(void)state;
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	check_unusable(NULL, "no keys for S3");
	setenv("AWS_ACCESS_KEY_ID", "id", 1);
	check_unusable(NULL, "the secret key is missing");
	setenv("AWS_SECRET_ACCESS_KEY", "two words", 1);
	check_unusable(NULL, "holds a blank");
	setenv("AWS_SECRET_ACCESS_KEY", "line\nbreak", 1);
	check_unusable(NULL, "holds a blank");
}

static void
test_order(void **state)
{
	(void)state;
	set_files("[profile p]\nregion = r\n",
	    "[default]\naws_access_key_id = IDdefault\n"
	    "aws_secret_access_key = s\n"
	    "[p]\naws_access_key_id = IDp\naws_secret_access_key = s\n");
	set_environment("IDenv");
	check_first(NULL, "env", NULL);
	/* A variable does not make the environment's keys void... */
	setenv("AWS_PROFILE", "p", 1);
	check_first(NULL, "env", NULL);
	/* ...but who names a profile here means that one. */
	check_first("p", "p", NULL);
	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	woken = 0;
	check_first(NULL, "p", NULL);
	unsetenv("AWS_PROFILE");
	woken = 0;
	check_first(NULL, "default", NULL);
}

static void
test_unsupported_profiles(void **state)
{
	(void)state;
	set_files("[profile role]\nrole_arn = arn:r\nsource_profile = x\n"
	    "[profile sso]\nsso_session = s\n"
	    "[profile open]\ncredential_process = 'x\n", "");
	check_unusable("role", "role_arn");
	check_unusable("sso", "single sign-on");

	struct error error = ERROR_INIT;

	assert_null(credentials_of("open", &error));
	assert_non_null(strstr(error.message, "open quote"));
	profile_free(profile);
}

static void
test_process(void **state)
{
	char config[4096];
	const char *script = file_with("keys", "#!/bin/sh\n"
	    "test \"$1\" = 'two words' && test $# = 2 && echo '{\"Version\": 1,"
	    "\"AccessKeyId\":\"IDprocess\",\"SecretAccessKey\":\"s\","
	    "\"SessionToken\":\"t\"}'\n");

	(void)state;
	chmod(script, 0755);
	snprintf(config, sizeof(config), "[profile p]\ncredential_process = "
	    "\"%s\" 'two words' x\n[profile fails]\ncredential_process = "
	    "false\n[profile nonsense]\ncredential_process = echo hello\n",
	    script);
	set_files(config, "");
	check_first("p", "process", NULL);
	woken = 0;
	check_first("fails", NULL, "");
	woken = 0;
	check_first("nonsense", NULL, "");
}

static void
test_files_are_read_again(void **state)
{
	struct error error = ERROR_INIT;
	struct credentials *credentials;
	struct keys keys;

	(void)state;
	set_files("", "[default]\naws_access_key_id = ID1\n"
	    "aws_secret_access_key = s\n");
	credentials = credentials_of(NULL, &error);
	assert_int_equal(first(credentials, &keys, &error),
	    CREDENTIALS_READY);
	assert_string_equal(keys.access_key, "ID1");
	set_files("", "[default]\naws_access_key_id = ID2\n"
	    "aws_secret_access_key = s\n");
	assert_true(credentials_refuse(credentials, keys.number));
	assert_int_equal(credentials_get(credentials, 0, &keys, &error),
	    CREDENTIALS_WAIT);
	wait_woken(2);
	assert_int_equal(credentials_get(credentials, 0, &keys, &error),
	    CREDENTIALS_READY);
	assert_string_equal(keys.access_key, "ID2");
	end(credentials);
}

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
	setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file_with("token", "a+b/c\n"),
	    1);
	check_first(NULL, "sts", NULL);
	seen = server_seen(server, 0);
	assert_string_equal(seen->method, "POST");
	assert_string_equal(seen->body, "Action=AssumeRoleWithWebIdentity&"
	    "Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&"
	    "RoleSessionName=session&WebIdentityToken=a%2Bb%2Fc");
	assert_string_equal(seen_header(seen, "authorization", value,
	    sizeof(value)), "");
	woken = 0;
	check_first(NULL, NULL, "400 ExpiredTokenException: too old");
	woken = 0;
	check_first(NULL, NULL, "answered 307");
	woken = 0;
	check_first(NULL, NULL, "STS");
	assert_int_equal(server_count(server), 4);
	setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nonexistent", 1);
	woken = 0;
	check_first(NULL, NULL, "web identity token");
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
	    "sts =\n  endpoint_url = %s\n", file_with("token", "t"),
	    server_url(server));
	set_files(config, "");
	check_first("p", "sts", NULL);
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
	check_first(NULL, "ecs", NULL);
	assert_string_equal(server_seen(server, 1)->target,
	    "/v1/credentials?x=1");
	assert_string_equal(seen_header(server_seen(server, 1),
	    "authorization", value, sizeof(value)), "plain");

	/* The file counts before the variable, and is read each time. */
	setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	    file_with("token", "Bearer x\n"), 1);
	woken = 0;
	check_first(NULL, "ecs", NULL);
	assert_string_equal(seen_header(server_seen(server, 2),
	    "authorization", value, sizeof(value)), "Bearer x");
	woken = 0;
	check_first(NULL, NULL, "answered 302");
	woken = 0;
	check_first(NULL, NULL, "secret key is missing");
	assert_int_equal(server_count(server), 5);

	file_with("token", "Bearer x\r\nX-Evil: 1\n");
	woken = 0;
	check_first(NULL, NULL, "line break");
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
		credentials = credentials_of(NULL, &error);
		if ((credentials != NULL) != cases[i].allowed)
			fail_msg("%s: %s", cases[i].uri, error.message);
		if (!cases[i].allowed)
			assert_int_equal(error.class, ERROR_USAGE);
		end(credentials);
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
	check_first(NULL, "imds", NULL);
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
	check_first(NULL, NULL, "this machine has no role");
	woken = 0;
	check_first(NULL, NULL, "names no role");
	woken = 0;
	check_first(NULL, NULL, "names no role");
	woken = 0;
	check_first(NULL, NULL, "answered 302");
	woken = 0;
	check_first(NULL, NULL, "");
	woken = 0;
	check_first(NULL, NULL, "answered 400");
	assert_int_equal(server_count(server), COUNT(steps));
	server_stop(server);

	/* Nobody there at all. */
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1", 1);
	woken = 0;
	check_first(NULL, NULL, "no keys for S3 in the environment");
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "nonsense", 1);
	check_unusable(NULL, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
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
	check_first(NULL, "v1", NULL);
	assert_string_equal(seen_header(server_seen(server, 2),
	    "x-aws-ec2-metadata-token", value, sizeof(value)), "");
	setenv("AWS_EC2_METADATA_V1_DISABLED", "true", 1);
	woken = 0;
	check_first(NULL, NULL, "answered 403");
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
	check_first(NULL, "x", NULL);
	assert_string_equal(seen_header(server_seen(server, 3),
	    "x-aws-ec2-metadata-token", value, sizeof(value)), "NEW");
	server_stop(server);
}

/* The state at a time before the end of the keys, and whose keys. */
static void
check_at(struct credentials *credentials, int before,
    enum credentials_state expected, const char *id)
{
	struct error error = ERROR_INIT;
	struct keys keys;
	enum credentials_state state = credentials_get(credentials,
	    END - before, &keys, &error);

	assert_int_equal(state, expected);
	if (id != NULL)
		assert_string_equal(keys.access_key, id);
	if (state == CREDENTIALS_NONE)
		assert_int_equal(error.cause, CAUSE_UNREACHABLE);
}

static void
test_renewal(void **state)
{
	const struct step steps[] = { { .body = KEYS("1") },
	    { .body = KEYS("2") },			/* 14 min before */
	    { .status = 500 }, { .status = 500 }, { .status = 500 },
	    { .body = KEYS("3") },
	    { .status = 400 },				/* after the end */
	    { .body = KEYS("4") } };
	struct server *server = server_start(steps, COUNT(steps));
	struct timespec wall = { .tv_sec = END - 7200 };
	struct error error = ERROR_INIT;
	struct credentials *credentials;

	(void)state;
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server_url(server), 1);
	clock_test_start(wall);
	credentials = credentials_of(NULL, &error);
	check_at(credentials, 7200, CREDENTIALS_WAIT, NULL);
	wait_woken(1);
	check_at(credentials, 7200, CREDENTIALS_READY, "ID1");
	check_at(credentials, 901, CREDENTIALS_READY, "ID1");

	/* Within 15 minutes: tried in the background, used meanwhile. */
	clock_test_turn(61 * CLOCK_SECOND);
	check_at(credentials, 840, CREDENTIALS_READY, "ID1");
	wait_woken(2);
	check_at(credentials, 840, CREDENTIALS_READY, "ID2");

	/* Within 10 minutes: insisted on; the old set serves when it fails,
	 * and is not asked for again at once. */
	clock_test_turn(61 * CLOCK_SECOND);
	check_at(credentials, 300, CREDENTIALS_WAIT, NULL);
	wait_woken(3);
	check_at(credentials, 300, CREDENTIALS_READY, "ID2");
	check_at(credentials, 290, CREDENTIALS_READY, "ID2");
	clock_test_turn(31 * CLOCK_SECOND);
	check_at(credentials, 280, CREDENTIALS_WAIT, NULL);
	wait_woken(4);
	check_at(credentials, 280, CREDENTIALS_READY, "ID3");

	/* Expired: told, then asked for again. */
	check_at(credentials, 0, CREDENTIALS_WAIT, NULL);
	wait_woken(5);
	check_at(credentials, 0, CREDENTIALS_NONE, NULL);
	clock_test_turn(2 * CLOCK_SECOND);
	check_at(credentials, 0, CREDENTIALS_WAIT, NULL);
	wait_woken(6);
	check_at(credentials, 7200, CREDENTIALS_READY, "ID4");
	end(credentials);
	clock_test_stop();
	server_stop(server);
}

/* The whole client: a token that the server calls expired. */
static void
test_expired_token(void **state)
{
	const struct step keys[] = { { .body = KEYS("1") },
	    { .body = KEYS("2") } };
	const struct step expired = { .status = 400, .body =
	    "<Error><Code>ExpiredToken</Code></Error>" };
	const struct step steps[] = { expired, { .status = 204 }, expired,
	    expired };
	struct server *source = server_start(keys, COUNT(keys));
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_config config = { .bucket = "b",
	    .endpoint_url = server_url(server) };
	struct s3_request request = { .operation = S3_DELETE, .key = "k" };
	struct error error = ERROR_INIT;
	struct s3_client *client;
	char value[64], text[200];

	(void)state;
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server_url(source), 1);
	client = s3_client_new(&config, &error);
	assert_non_null(client);
	assert_int_equal(server_count(source), 0);
	assert_ok(s3_client_perform(client, &request), request.error);
	assert_int_equal(request.attempts, 2);
	assert_string_equal(seen_header(server_seen(server, 0),
	    "x-amz-security-token", value, sizeof(value)), "T1");
	assert_string_equal(seen_header(server_seen(server, 1),
	    "x-amz-security-token", value, sizeof(value)), "T2");
	assert_string_equal(s3_client_credentials_text(client, text,
	    sizeof(text)), "the container's role, until "
	    "2100-01-01T00:00:00.000Z");
	s3_client_free(client);
	server_stop(server);
	server_stop(source);
}

/* The whole client: a source that is down at first, and one that refuses. */
static void
test_source_that_fails(void **state)
{
	const struct step keys[] = { { .status = 500 }, { .status = 500 },
	    { .status = 500 }, { .body = KEYS("1") }, { .status = 403 } };
	const struct step steps[] = { { .status = 204 } };
	struct server *source = server_start(keys, COUNT(keys));
	struct server *server = server_start(steps, COUNT(steps));
	struct s3_config config = { .bucket = "b",
	    .endpoint_url = server_url(server) };
	struct s3_request request = { .operation = S3_DELETE, .key = "k" };
	struct error error = ERROR_INIT;
	struct s3_client *client;

	(void)state;
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server_url(source), 1);
	client = s3_client_new(&config, &error);
	assert_ok(s3_client_perform(client, &request), request.error);
	assert_int_equal(request.attempts, 1);
	s3_client_free(client);

	client = s3_client_new(&config, &error);
	assert_int_equal(s3_client_perform(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_DENIED);
	assert_non_null(strstr(request.error.message,
	    "no credentials: the container's credentials endpoint "
	    "answered 403"));
	s3_client_free(client);
	assert_int_equal(server_count(server), 1);
	server_stop(server);
	server_stop(source);
}

/* A client that is closed while its credentials are on their way. */
static void
test_free_while_fetching(void **state)
{
	const struct step keys[] = { { .kind = STEP_SILENT },
	    { .kind = STEP_SILENT }, { .kind = STEP_SILENT } };
	struct server *source = server_start(keys, COUNT(keys));
	struct s3_config config = { .bucket = "b",
	    .endpoint_url = "http://127.0.0.1:1" };
	struct s3_request request = { .operation = S3_HEAD, .key = "k",
	    .deadline = clock_monotonic() + CLOCK_SECOND / 4 };
	struct error error = ERROR_INIT;
	struct s3_client *client;

	(void)state;
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server_url(source), 1);
	client = s3_client_new(&config, &error);
	assert_int_equal(s3_client_perform(client, &request), -1);
	assert_int_equal(request.error.cause, CAUSE_UNREACHABLE);
	s3_client_free(client);
	server_stop(source);
}

static int
setup(void **state)
{
	(void)state;
	server_clean_environment();
	scratch = kit_scratch();
	woken = 0;
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
		TEST(test_environment),
		TEST(test_wrong_environment),
		TEST(test_order),
		TEST(test_unsupported_profiles),
		TEST(test_process),
		TEST(test_files_are_read_again),
		TEST(test_web_identity),
		TEST(test_web_identity_of_a_profile),
		TEST(test_container),
		TEST(test_container_hosts),
		TEST(test_machine),
		TEST(test_machine_that_fails),
		TEST(test_machine_without_tokens),
		TEST(test_machine_token_ends),
		TEST(test_renewal),
		TEST(test_expired_token),
		TEST(test_source_that_fails),
		TEST(test_free_while_fetching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
