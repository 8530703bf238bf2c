#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "s3/container.h"
#include "s3/fetch.h"
#include "s3/keys.h"
#include "s3/url.h"

/* botocore's `ContainerMetadataFetcher`. */
#define RELATIVE_ADDRESS "http://169.254.170.2"
#define TRIES 3
#define TIMEOUT (2 * CLOCK_SECOND)
#define ANSWER_LIMIT (64 * 1024)
#define TOKEN_LIMIT (16 * 1024)

static const char *const allowed_hosts[] = {
	"localhost", "[::1]", "169.254.170.2", "169.254.170.23",
	"[fd00:ec2::23]",
};

struct container {
	CURL *easy;
	const atomic_bool *stop;
	char *address;
	char *token_file;
	char *token;
};

static const char *
environment(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

bool
container_configured(void)
{
	return environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != NULL ||
	    environment("AWS_CONTAINER_CREDENTIALS_FULL_URI") != NULL;
}

static bool
host_is_allowed(const struct url *url)
{
	struct in_addr address;

	if (url->tls)
		return true;
	for (size_t i = 0; i < sizeof(allowed_hosts) /
	    sizeof(allowed_hosts[0]); i++)
		if (strcmp(url->host, allowed_hosts[i]) == 0)
			return true;
	return inet_pton(AF_INET, url->host, &address) == 1 &&
	    ntohl(address.s_addr) >> 24 == 127;
}

static int
address_find(struct container *container, struct error *error)
{
	const char *relative =
	    environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	struct url url;

	if (asprintf(&container->address, "%s%s%s",
	    relative != NULL ? RELATIVE_ADDRESS : full,
	    relative != NULL && relative[0] != '/' ? "/" : "",
	    relative != NULL ? relative : "") < 0) {
		container->address = NULL;
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	}
	if (url_parse(container->address, &url, error) != 0)
		return error_prefix(error, "container credentials");
	if (!host_is_allowed(&url)) {
		error_set(error, ERROR_USAGE, CAUSE_DENIED, full,
		    "keys are not asked for over plain http from this host");
		return error_cure(error, "AWS_CONTAINER_CREDENTIALS_FULL_URI "
		    "needs https, or this machine's or the container agent's "
		    "own address");
	}
	return 0;
}

static int
variable_copy(const char *name, char **copy, struct error *error)
{
	const char *value = environment(name);

	if (value == NULL)
		return 0;
	*copy = strdup(value);
	if (*copy == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	return 0;
}

struct container *
container_new(const atomic_bool *stop, struct error *error)
{
	struct container *container = calloc(1, sizeof(*container));

	if (container == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	container->stop = stop;
	container->easy = fetch_new(error);
	if (container->easy == NULL || address_find(container, error) != 0 ||
	    variable_copy("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	    &container->token_file, error) != 0 ||
	    variable_copy("AWS_CONTAINER_AUTHORIZATION_TOKEN",
	    &container->token, error) != 0) {
		container_free(container);
		return NULL;
	}
	return container;
}

void
container_free(struct container *container)
{
	if (container == NULL)
		return;
	curl_easy_cleanup(container->easy);
	free(container->address);
	free(container->token_file);
	free(container->token);
	free(container);
}

/* The `Authorization` header, left empty when no token is configured. */
static int
header_make(struct container *container, struct buffer *header,
    struct error *error)
{
	const char *name = "Authorization: ";

	if (container->token_file == NULL && container->token == NULL)
		return 0;
	if (buffer_append(header, name, strlen(name), error) != 0)
		return -1;
	if (container->token_file == NULL)
		return buffer_append(header, container->token,
		    strlen(container->token), error);
	if (path_read_at(AT_FDCWD, container->token_file, header, error) != 0)
		return error_prefix(error, "container authorization token");

	/* An editor's line end is not part of the token; any other line break
	 * is refused by fetch_run. */
	while (header->length > 0 &&
	    (header->data[header->length - 1] == '\n' ||
	    header->data[header->length - 1] == '\r'))
		header->data[--header->length] = '\0';
	return 0;
}

static int
answer_check(const struct container *container, int status,
    const struct buffer *answer, struct keys *keys, struct error *error)
{
	if (status != 200)
		return error_set(error, ERROR_FAILED,
		    status >= 500 || status == 429 ? CAUSE_UNREACHABLE :
		    CAUSE_DENIED, container->address,
		    "the container's credentials endpoint answered %d",
		    status);
	return keys_read_json(answer, "container credentials", "Token", keys,
	    error);
}

int
container_fetch(struct container *container, struct keys *keys,
    struct error *error)
{
	struct buffer header;
	struct buffer answer;
	int result;

	buffer_init(&header, TOKEN_LIMIT);
	buffer_init(&answer, ANSWER_LIMIT);
	result = header_make(container, &header, error);
	for (int try = 0; result == 0 && try < TRIES; try++) {
		struct fetch fetch = { .method = "GET",
		    .url = container->address, .timeout = TIMEOUT,
		    .direct = true, .stop = container->stop,
		    .answer = &answer };
		int one;

		if (header.length > 0)
			fetch.headers[fetch.header_count++] =
			    buffer_text(&header);
		buffer_clear(&answer);
		one = fetch_run(container->easy, &fetch, error);
		if (one == 0)
			one = answer_check(container, fetch.status, &answer,
			    keys, error);
		if (one == 0)
			goto out;
		if (error->cause != CAUSE_UNREACHABLE)
			break;
	}
	result = -1;
out:
	if (header.data != NULL)
		explicit_bzero(header.data, header.length);
	if (answer.data != NULL)
		explicit_bzero(answer.data, answer.length);
	buffer_free(&header);
	buffer_free(&answer);
	return result;
}
