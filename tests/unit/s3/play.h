#ifndef TESTS_S3_PLAY_H
#define TESTS_S3_PLAY_H

#include "kit/kit.h"

#include <stdint.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "s3/client.h"
#include "server.h"

/*
 * A client against a server that plays a script: what these tests share.
 */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ERROR_XML(code) "<?xml version=\"1.0\"?><Error><Code>" code \
    "</Code><Message>said so</Message><RequestId>R1</RequestId></Error>"
#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

/**
 * play_setup(state):
 * A clean environment with keys in it; for each test.
 */
int play_setup(void **state);

#define PLAY(function) cmocka_unit_test_setup(function, play_setup)

/**
 * play_config(server):
 * One thread, four connections, limits that no test reaches by accident.
 */
struct s3_config play_config(const struct server *server);

/**
 * play_client_with(config) / play_client(server):
 * A client; the test fails if there is none.
 */
struct s3_client *play_client_with(const struct s3_config *config);
struct s3_client *play_client(const struct server *server);

/**
 * play_collect(buffer, data, length, error):
 * A sink that adds to a struct buffer.
 */
int play_collect(void *context, const void *data, size_t length,
    struct error *error);

/**
 * play_get / play_put / play_head:
 * Perform one request on "dir/key"; ${bytes} is emptied first.
 */
int play_get(struct s3_client *client, uint64_t offset, uint64_t length,
    struct buffer *bytes, struct s3_request *request);
int play_put(struct s3_client *client, const void *data, size_t length,
    struct s3_request *request);
int play_head(struct s3_client *client, struct s3_request *request);

/**
 * assert_says(request, text):
 * The error's message holds ${text}.
 */
void assert_says(const struct s3_request *request, const char *text);

#endif
