#ifndef S3_METADATA_H
#define S3_METADATA_H

#include <stdatomic.h>
#include <stdbool.h>

struct buffer;
struct error;

/*
 * The EC2 instance metadata server (IMDSv2), never through a proxy, never
 * following a redirect; its connection and its token are kept.
 *
 * AWS_EC2_METADATA_SERVICE_ENDPOINT gives another address,
 * AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE=IPv6 the other usual one;
 * AWS_EC2_METADATA_V1_DISABLED=true forbids going on without a token.
 *
 * One thread at a time.
 */
struct metadata;

/**
 * metadata_disabled():
 * Whether AWS_EC2_METADATA_DISABLED is true.  Reads the environment.
 */
bool metadata_disabled(void);

/**
 * metadata_new(stop, error):
 * A client, or NULL (ERROR_USAGE for a variable that makes no sense).  Reads
 * the environment, sends nothing.  When ${stop} (may be NULL) gets true,
 * requests end.
 */
struct metadata *metadata_new(const atomic_bool *stop, struct error *error);

/**
 * metadata_new_at(address, stop, error):
 * The same for the server at ${address} ("http://host[:port]"), whatever the
 * environment says; NULL: as metadata_new.
 */
struct metadata *metadata_new_at(const char *address, const atomic_bool *stop,
    struct error *error);

/**
 * metadata_address(metadata):
 * Where it asks, without a slash at the end; ${metadata}'s.
 */
const char *metadata_address(const struct metadata *metadata);

/**
 * metadata_get(metadata, path, answer, error):
 * Add what lies at ${path} ("/latest/meta-data/...") to ${answer}; one try of
 * at most 2 s for the token, where one is needed, and 2 s for the answer.
 * Return 0; or -1 with CAUSE_NOT_FOUND for 404, CAUSE_DENIED when the server
 * refuses, CAUSE_UNREACHABLE when it does not answer or is not well.
 */
int metadata_get(struct metadata *metadata, const char *path,
    struct buffer *answer, struct error *error);

/**
 * metadata_free(metadata):
 * Behave consistently with free(NULL).
 */
void metadata_free(struct metadata *metadata);

#endif
