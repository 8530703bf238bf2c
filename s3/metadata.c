#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "s3/fetch.h"
#include "s3/metadata.h"
#include "s3/url.h"

/* "Use IMDSv2" in Amazon's EC2 User Guide; botocore's `IMDSFetcher`. */
#define USUAL_ADDRESS "http://169.254.169.254"
#define USUAL_ADDRESS_IPV6 "http://[fd00:ec2::254]"
#define TOKEN_PATH "/latest/api/token"
#define TOKEN_LIFE 21600
#define TOKEN_LIMIT 1024
#define TIMEOUT (2 * CLOCK_SECOND)

struct metadata {
	CURL *easy;
	const atomic_bool *stop;
	char *address;
	bool needs_token;		/* v1 is forbidden */
	struct buffer token;		/* empty: none */
	uint64_t token_until;		/* clock_boot() */
	bool without_token;		/* the server has no tokens */
};

static bool
variable_is_true(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && strcasecmp(value, "true") == 0;
}

bool
metadata_disabled(void)
{
	return variable_is_true("AWS_EC2_METADATA_DISABLED");
}

static char *
address_find(const char *value, struct error *error)
{
	const char *mode = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
	struct url url;
	char *address;

	if (value == NULL)
		value = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	if (value == NULL || value[0] == '\0')
		value = mode != NULL && strcasecmp(mode, "ipv6") == 0 ?
		    USUAL_ADDRESS_IPV6 : USUAL_ADDRESS;
	if (url_parse(value, &url, error) != 0) {
		error_prefix(error, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
		return NULL;
	}
	address = strdup(value);
	if (address == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	for (size_t n = strlen(address); n > 0 && address[n - 1] == '/'; n--)
		address[n - 1] = '\0';
	return address;
}

struct metadata *
metadata_new(const atomic_bool *stop, struct error *error)
{
	return metadata_new_at(NULL, stop, error);
}

struct metadata *
metadata_new_at(const char *address, const atomic_bool *stop,
    struct error *error)
{
	struct metadata *metadata = calloc(1, sizeof(*metadata));

	if (metadata == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	metadata->stop = stop;
	buffer_init(&metadata->token, TOKEN_LIMIT);
	metadata->needs_token =
	    variable_is_true("AWS_EC2_METADATA_V1_DISABLED");
	metadata->address = address_find(address, error);
	if (metadata->address == NULL)
		goto fail;
	metadata->easy = fetch_new(error);
	if (metadata->easy == NULL)
		goto fail;
	return metadata;
fail:
	metadata_free(metadata);
	return NULL;
}

const char *
metadata_address(const struct metadata *metadata)
{
	return metadata->address;
}

void
metadata_free(struct metadata *metadata)
{
	if (metadata == NULL)
		return;
	curl_easy_cleanup(metadata->easy);
	buffer_free(&metadata->token);
	free(metadata->address);
	free(metadata);
}

static int
ask(struct metadata *metadata, const char *method, const char *path,
    const char *header, struct buffer *answer, int *status,
    struct error *error)
{
	char url[1024];
	struct fetch fetch = { .method = method, .url = url,
	    .timeout = TIMEOUT, .direct = true, .stop = metadata->stop,
	    .answer = answer };

	if ((size_t)snprintf(url, sizeof(url), "%s%s", metadata->address,
	    path) >= sizeof(url))
		return error_set(error, ERROR_FAILED, CAUSE_LIMIT, path,
		    "too long a path");
	if (header != NULL)
		fetch.headers[fetch.header_count++] = header;
	if (fetch_run(metadata->easy, &fetch, error) != 0)
		return -1;
	*status = fetch.status;
	return 0;
}

static int
refuse(const struct metadata *metadata, const char *path, int status,
    struct error *error)
{
	enum error_cause cause = status == 404 ? CAUSE_NOT_FOUND :
	    status >= 500 || status == 429 ? CAUSE_UNREACHABLE : CAUSE_DENIED;

	error_set(error, ERROR_FAILED, cause, path,
	    "the metadata server %s answered %d", metadata->address, status);
	if (status >= 300 && status < 400)
		error_cure(error, "a redirect is not followed; something else "
		    "answers at this address");
	return -1;
}

/* A token is 56 letters of base64 today; it goes into a header. */
static bool
token_is_plain(const struct buffer *token)
{
	if (token->length == 0)
		return false;
	for (size_t i = 0; i < token->length; i++)
		if (token->data[i] < 0x21 || token->data[i] > 0x7e)
			return false;
	return true;
}

static int
token_renew(struct metadata *metadata, struct error *error)
{
	char header[64];
	int status;

	if (metadata->without_token || (metadata->token.length > 0 &&
	    clock_boot() < metadata->token_until))
		return 0;
	buffer_clear(&metadata->token);
	snprintf(header, sizeof(header),
	    "X-aws-ec2-metadata-token-ttl-seconds: %d", TOKEN_LIFE);
	if (ask(metadata, "PUT", TOKEN_PATH, header, &metadata->token,
	    &status, error) != 0) {
		buffer_clear(&metadata->token);
		return -1;
	}
	if (status == 200 && token_is_plain(&metadata->token)) {
		metadata->token_until = clock_boot() +
		    (TOKEN_LIFE - 60) * CLOCK_SECOND;
		return 0;
	}
	buffer_clear(&metadata->token);
	/* An old server, or a proxy for containers, that knows v1 only. */
	if (!metadata->needs_token &&
	    (status == 404 || status == 403 || status == 405)) {
		metadata->without_token = true;
		return 0;
	}
	return refuse(metadata, TOKEN_PATH, status == 200 ? 502 : status,
	    error);
}

int
metadata_get(struct metadata *metadata, const char *path,
    struct buffer *answer, struct error *error)
{
	size_t before = answer->length;
	int status = 0;

	for (int try = 0; try < 2; try++) {
		char header[TOKEN_LIMIT + 64];

		if (token_renew(metadata, error) != 0)
			return -1;
		snprintf(header, sizeof(header),
		    "X-aws-ec2-metadata-token: %s",
		    buffer_text(&metadata->token));
		if (ask(metadata, "GET", path, metadata->token.length > 0 ?
		    header : NULL, answer, &status, error) != 0)
			return -1;
		if (status == 200)
			return 0;

		/* 401: the token is not valid any more, or is needed now. */
		answer->length = before;
		if (answer->data != NULL)
			answer->data[before] = '\0';
		if (status != 401)
			break;
		buffer_clear(&metadata->token);
		metadata->without_token = false;
	}
	return refuse(metadata, path, status, error);
}
