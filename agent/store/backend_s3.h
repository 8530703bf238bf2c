#ifndef STORE_BACKEND_S3_H
#define STORE_BACKEND_S3_H

#include <stdbool.h>

struct backend;
struct error;
struct remote_options;
struct s3_facts;

/**
 * backend_s3_open(url, options, error):
 * The store behind "s3://bucket/prefix" (the prefix may be missing), or NULL
 * with ERROR_USAGE when the URL or a setting is wrong.  Sends nothing yet.
 */
struct backend *backend_s3_open(const char *url,
    const struct remote_options *options, struct error *error);

/**
 * backend_s3_facts(backend, facts):
 * What the client behind ${backend} has found out so far (s3/client.h).
 * Return false when ${backend} is not such a store.  Any thread.
 */
bool backend_s3_facts(struct backend *backend, struct s3_facts *facts);

#endif
