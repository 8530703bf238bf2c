#ifndef TESTS_S3_ASKED_H
#define TESTS_S3_ASKED_H

#include "kit/kit.h"

#include "base/clock.h"
#include "s3/client.h"
#include "s3/credentials.h"
#include "s3/profile.h"
#include "server.h"

/*
 * Credentials whose source is asked on a thread of its own: what these tests
 * share.
 */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define END 4102444800	/* 2100-01-01T00:00:00Z */
#define KEYS(n) "{\"Code\":\"Success\",\"AccessKeyId\":\"ID" n "\"," \
    "\"SecretAccessKey\":\"S" n "\",\"Token\":\"T" n "\"," \
    "\"Expiration\":\"2100-01-01T00:00:00Z\"}"

extern char *asked_scratch;		/* this test's folder */
extern struct profile *asked_profile;	/* read by asked_credentials */

/**
 * asked_setup(state) / asked_teardown(state):
 * A clean environment and a scratch folder; for each test.
 */
int asked_setup(void **state);
int asked_teardown(void **state);

#define ASKED(function) cmocka_unit_test_setup_teardown(function, \
    asked_setup, asked_teardown)

/**
 * asked_wait(count):
 * Wait until the source was asked ${count} times since asked_again.
 */
void asked_wait(unsigned count);
void asked_again(void);

/**
 * asked_credentials(name, error) / asked_end(credentials):
 * Credentials by a profile's name (or NULL), with the profile; free both.
 */
struct credentials *asked_credentials(const char *name, struct error *error);
void asked_end(struct credentials *credentials);

/**
 * asked_first(credentials, keys, error):
 * The first set, waited for.
 */
enum credentials_state asked_first(struct credentials *credentials,
    struct keys *keys, struct error *error);

/**
 * asked_check_first(name, n, message):
 * By that profile's name the source gives the access key "ID${n}"; with NULL
 * it fails, saying ${message}.
 */
void asked_check_first(const char *name, const char *n, const char *message);

/**
 * asked_check_unusable(name, message):
 * By that name there is no source at all, for that reason.
 */
void asked_check_unusable(const char *name, const char *message);

/**
 * asked_file(name, text):
 * Write a file in the scratch folder; its path, valid until the next call.
 */
const char *asked_file(const char *name, const char *text);

/**
 * asked_aws_files(config, credentials):
 * Write the two AWS files and name them in the environment.
 */
void asked_aws_files(const char *config, const char *credentials);

#endif
