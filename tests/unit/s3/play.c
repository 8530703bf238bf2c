#include <stdlib.h>
#include <string.h>

#include "play.h"

int
play_setup(void **state)
{
	(void)state;
	server_clean_environment();
	setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	return 0;
}

struct s3_config
play_config(const struct server *server)
{
	return (struct s3_config){ .bucket = "bucket",
	    .endpoint_url = server_url(server), .threads = 1,
	    .connections = 4, .first_byte_timeout = 10 * CLOCK_SECOND,
	    .stall_timeout = 10 * CLOCK_SECOND };
}

struct s3_client *
play_client_with(const struct s3_config *config)
{
	struct error error = ERROR_INIT;
	struct s3_client *client;

	client = s3_client_new(config, &error);
	if (client == NULL)
		fail_msg("%s", error.message);
	return client;
}

struct s3_client *
play_client(const struct server *server)
{
	struct s3_config config = play_config(server);

	return play_client_with(&config);
}

int
play_collect(void *context, const void *data, size_t length,
    struct error *error)
{
	return buffer_append(context, data, length, error);
}

int
play_get(struct s3_client *client, uint64_t offset, uint64_t length,
    struct buffer *bytes, struct s3_request *request)
{
	*request = (struct s3_request){ .operation = S3_GET, .key = "dir/key",
	    .offset = offset, .length = length, .sink = play_collect,
	    .context = bytes };
	buffer_clear(bytes);
	return s3_client_perform(client, request);
}

int
play_put(struct s3_client *client, const void *data, size_t length,
    struct s3_request *request)
{
	struct source_memory memory = { data, length };
	struct source body = source_from_memory(&memory);

	*request = (struct s3_request){ .operation = S3_PUT, .key = "dir/key",
	    .body = &body, .length = length };
	sha256_of(data, length, request->sha256);
	return s3_client_perform(client, request);
}

int
play_head(struct s3_client *client, struct s3_request *request)
{
	*request = (struct s3_request){ .operation = S3_HEAD,
	    .key = "dir/key" };
	return s3_client_perform(client, request);
}

void
assert_says(const struct s3_request *request, const char *text)
{
	if (strstr(request->error.message, text) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", text,
		    request->error.message);
}
