#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "s3/answer.h"
#include "s3/endpoint.h"
#include "s3/fetch.h"
#include "s3/identity.h"
#include "s3/keys.h"
#include "s3/profile.h"
#include "s3/retry.h"

#define TIMEOUT (10 * CLOCK_SECOND)
#define ANSWER_LIMIT (64 * 1024)
#define TOKEN_LIMIT (32 * 1024)
#define FORM_LIMIT (128 * 1024)

struct identity {
	CURL *easy;
	const atomic_bool *stop;
	char *address;
	char *ca_bundle;
	char *token_file;
	char *role;
	char *session;
};

/* Each setting by its two names. */
static const char *
setting(const struct profile *profile, const char *variable, const char *key)
{
	const char *value = profile == NULL ? getenv(variable) :
	    profile_get(profile, key);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *
setting_token_file(const struct profile *profile)
{
	return setting(profile, "AWS_WEB_IDENTITY_TOKEN_FILE",
	    "web_identity_token_file");
}

static const char *
setting_role(const struct profile *profile)
{
	return setting(profile, "AWS_ROLE_ARN", "role_arn");
}

bool
identity_configured(const struct profile *profile)
{
	return setting_token_file(profile) != NULL &&
	    setting_role(profile) != NULL;
}

static char *
address_make(const struct profile *profile, const char *region)
{
	const char *configured = endpoint_configured(profile, "sts",
	    "AWS_ENDPOINT_URL_STS");
	char *address = NULL;

	if (configured != NULL)
		return strdup(configured);
	if (strcmp(region, "auto") == 0)
		return strdup("https://sts.amazonaws.com");
	if (asprintf(&address, "https://sts.%s.%s", region,
	    endpoint_suffix(region)) < 0)
		return NULL;
	return address;
}

static char *
session_make(const struct profile *from)
{
	const char *named = setting(from, "AWS_ROLE_SESSION_NAME",
	    "role_session_name");
	char *session = NULL;

	if (named != NULL)
		return strdup(named);
	if (asprintf(&session, "s3-client-%lld",
	    (long long)clock_wall().tv_sec) < 0)
		return NULL;
	return session;
}

struct identity *
identity_new(const struct profile *from, const struct profile *profile,
    const char *region, const char *ca_bundle, const atomic_bool *stop,
    struct error *error)
{
	struct identity *identity = calloc(1, sizeof(*identity));
	struct url url;

	if (identity == NULL)
		goto no_memory;
	identity->stop = stop;
	identity->address = address_make(profile, region);
	identity->token_file = strdup(setting_token_file(from));
	identity->role = strdup(setting_role(from));
	identity->session = session_make(from);
	if (ca_bundle != NULL)
		identity->ca_bundle = strdup(ca_bundle);
	if (identity->address == NULL || identity->token_file == NULL ||
	    identity->role == NULL || identity->session == NULL ||
	    (ca_bundle != NULL && identity->ca_bundle == NULL))
		goto no_memory;
	identity->easy = fetch_new(error);
	if (identity->easy == NULL)
		goto fail;
	if (url_parse(identity->address, &url, error) != 0) {
		error_prefix(error, "address of STS");
		goto fail;
	}
	return identity;
no_memory:
	error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL, "out of memory");
fail:
	identity_free(identity);
	return NULL;
}

void
identity_free(struct identity *identity)
{
	if (identity == NULL)
		return;
	curl_easy_cleanup(identity->easy);
	free(identity->address);
	free(identity->ca_bundle);
	free(identity->token_file);
	free(identity->role);
	free(identity->session);
	free(identity);
}

static int
form_make(const struct identity *identity, struct buffer *form,
    struct error *error)
{
	struct buffer token;
	int result = -1;

	buffer_init(&token, TOKEN_LIMIT);
	if (path_read_at(AT_FDCWD, identity->token_file, &token, error) != 0) {
		error_prefix(error, "web identity token");
		goto out;
	}
	while (token.length > 0 && (token.data[token.length - 1] == '\n' ||
	    token.data[token.length - 1] == '\r'))
		token.data[--token.length] = '\0';
	if (buffer_format(form, error, "Action=AssumeRoleWithWebIdentity"
	    "&Version=2011-06-15&RoleArn=") != 0 ||
	    url_encode(identity->role, false, form, error) != 0 ||
	    buffer_format(form, error, "&RoleSessionName=") != 0 ||
	    url_encode(identity->session, false, form, error) != 0 ||
	    buffer_format(form, error, "&WebIdentityToken=") != 0 ||
	    url_encode(buffer_text(&token), false, form, error) != 0)
		goto out;
	result = 0;
out:
	if (token.data != NULL)
		explicit_bzero(token.data, token.length);
	buffer_free(&token);
	return result;
}

static int
refuse(const struct identity *identity, int status,
    const struct buffer *answer, struct error *error)
{
	struct answer_error failure;
	bool passing;

	answer_read_error(answer->data, answer->length, &failure);
	/* STS says so while it cannot reach the identity provider. */
	passing = status >= 500 ||
	    strcmp(failure.code, "IDPCommunicationError") == 0 ||
	    retry_kind_of(status, failure.code) != RETRY_NEVER;
	return error_set(error, ERROR_FAILED, passing ? CAUSE_UNREACHABLE :
	    CAUSE_DENIED, identity->role, "STS at %s answered %d %s: %s",
	    identity->address, status, failure.code, failure.message);
}

static int
role_read(const struct buffer *answer, struct keys *keys,
    struct error *error)
{
	struct answer_role role;
	int result = answer_read_role(answer->data, answer->length, &role,
	    error);

	if (result == 0)
		result = keys_set(keys, role.access_key, role.secret,
		    role.token, role.expiration, error);
	explicit_bzero(&role, sizeof(role));
	return result != 0 ? error_prefix(error, "STS") : 0;
}

int
identity_fetch(struct identity *identity, struct keys *keys,
    struct error *error)
{
	struct buffer form;
	struct buffer answer;
	struct fetch fetch = { .method = "POST", .url = identity->address,
	    .headers = { "Accept: text/xml" }, .header_count = 1,
	    .ca_bundle = identity->ca_bundle, .timeout = TIMEOUT,
	    .stop = identity->stop, .answer = &answer };
	int result = -1;

	buffer_init(&form, FORM_LIMIT);
	buffer_init(&answer, ANSWER_LIMIT);
	if (form_make(identity, &form, error) != 0)
		goto out;
	fetch.body = buffer_text(&form);
	if (fetch_run(identity->easy, &fetch, error) != 0)
		goto out;
	result = fetch.status == 200 ? role_read(&answer, keys, error) :
	    refuse(identity, fetch.status, &answer, error);
out:
	if (form.data != NULL)
		explicit_bzero(form.data, form.length);
	if (answer.data != NULL)
		explicit_bzero(answer.data, answer.length);
	buffer_free(&form);
	buffer_free(&answer);
	return result;
}
