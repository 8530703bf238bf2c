#ifndef STORE_BACKEND_S3_H
#define STORE_BACKEND_S3_H

struct backend;
struct error;
struct remote_options;

/**
 * backend_s3_open(url, options, error):
 * The store behind "s3://bucket/prefix" (the prefix may be missing), or NULL
 * with ERROR_USAGE when the URL or a setting is wrong.  Sends nothing yet.
 */
struct backend *backend_s3_open(const char *url,
    const struct remote_options *options, struct error *error);

#endif
