#ifndef S3_CREDENTIALS_H
#define S3_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "s3/keys.h"

struct error;
struct profile;
struct s3_config;
struct s3_facts;

/*
 * Where the keys come from, first found counts (the order of the AWS SDKs):
 *
 * 1. the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
 *    AWS_SESSION_TOKEN - passed over when a profile is named in the config;
 * 2. the profile: role_arn with web_identity_token_file; aws_access_key_id...
 *    of either file; credential_process;
 * 3. web identity by AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN: STS;
 * 4. the container's endpoint: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or
 *    _FULL_URI (ECS, EKS pod identity);
 * 5. the machine's role by the EC2 metadata server, unless
 *    AWS_EC2_METADATA_DISABLED.
 *
 * The environment variables of web identity come before the profile's.
 *
 * What has an end is renewed by a thread of its own from 15 minutes before
 * it; within the last 10 minutes a request waits for a try; while the source
 * is down the old keys are used until they really expire.
 */
struct credentials;

/**
 * credentials_new(config, profile, region, ca_bundle, wake, context,
 * error):
 * Find the source, without asking it yet.  ${wake} is called, on the renewing
 * thread, when a set came or could not be had.  NULL with ERROR_USAGE when
 * there is no source, or one that we cannot use.  The environment is read
 * here and never again; ${profile} must outlive the credentials.
 */
struct credentials *credentials_new(const struct s3_config *config,
    const struct profile *profile, const char *region,
    const char *ca_bundle, void (*wake)(void *context), void *context,
    struct error *error);

/**
 * credentials_stop(credentials):
 * End the thread: `wake` is not called any more, nothing is renewed.
 */
void credentials_stop(struct credentials *credentials);

/**
 * credentials_free(credentials):
 * Stop and forget the keys.  Behave consistently with free(NULL).
 */
void credentials_free(struct credentials *credentials);

enum credentials_state { CREDENTIALS_READY, CREDENTIALS_WAIT, CREDENTIALS_NONE };

/**
 * credentials_get(credentials, now, keys, error):
 * The keys for a request that is signed at ${now} (seconds, the server's idea
 * of them).  Never blocks.  READY: in ${keys}; WAIT: being fetched, ask again
 * after `wake`; NONE: ${error} says why (CAUSE_UNREACHABLE: later may work).
 * Any thread.
 */
enum credentials_state credentials_get(struct credentials *credentials,
    time_t now, struct keys *keys, struct error *error);

/**
 * credentials_refuse(credentials, number):
 * The server says that the set ${number} has expired.  Return whether another
 * one can be had: then credentials_get says WAIT until it is there.
 */
bool credentials_refuse(struct credentials *credentials, unsigned long number);

/**
 * credentials_look(credentials, facts):
 * Fill in what ${facts} says of credentials.
 */
void credentials_look(struct credentials *credentials,
    struct s3_facts *facts);

/**
 * credentials_text(credentials, text, size):
 * "the environment", "profile x (credential_process), until ...": for people,
 * without any secret.  Return ${text}.
 */
char *credentials_text(struct credentials *credentials, char *text,
    size_t size);

#endif
