#ifndef S3_SIGN_H
#define S3_SIGN_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/sha256.h"

struct buffer;
struct error;

/*
 * AWS Signature Version 4, in the `Authorization` header.  The rules are
 * those of Amazon's S3 API reference, "Authenticating Requests: Using the
 * Authorization Header"; the path is signed exactly as it is on the wire.
 */

/* A header, or a parameter of the query, before any encoding. */
struct sign_field {
	const char *name;
	const char *value;	/* "" for a parameter without one */
};

/* More would be a mistake of ours. */
#define SIGN_FIELDS_LIMIT 64

struct sign_request {
	const char *method;
	const char *path;	/* percent-encoded, as on the wire */
	const char *query;	/* from sign_query; "" when there is none */
	const struct sign_field *headers;	/* all of them are signed */
	size_t header_count;
	const char *payload;	/* what x-amz-content-sha256 says */
};

/* "20130524T000000Z" and the NUL; the first 8 bytes are the date. */
#define SIGN_STAMP_SIZE 17

/**
 * sign_stamp(seconds, stamp):
 * Write the time as the signature wants it and return ${stamp}.
 */
char *sign_stamp(time_t seconds, char stamp[SIGN_STAMP_SIZE]);

/**
 * sign_query(parameters, count, buffer, error):
 * Add the canonical query: encoded, sorted by name then value, `name=` for an
 * empty value.  Return 0 or -1.
 */
int sign_query(const struct sign_field *parameters, size_t count,
    struct buffer *buffer, struct error *error);

/**
 * sign_canonical(request, canonical, names, error):
 * Add the canonical request to ${canonical} and the list of signed headers
 * ("host;x-amz-date") to ${names}.  Return 0 or -1.
 */
int sign_canonical(const struct sign_request *request,
    struct buffer *canonical, struct buffer *names, struct error *error);

/**
 * sign_string(canonical, stamp, region, service, buffer, error):
 * Add the string to sign for the canonical request ${canonical}.
 */
int sign_string(const struct buffer *canonical, const char *stamp,
    const char *region, const char *service, struct buffer *buffer,
    struct error *error);

/**
 * sign_key(secret, stamp, region, service, key):
 * Derive the signing key: it is the same for a whole day.  ${secret} has at
 * most SIGN_SECRET_LIMIT bytes.
 */
#define SIGN_SECRET_LIMIT 256
void sign_key(const char *secret, const char *stamp, const char *region,
    const char *service, uint8_t key[SHA256_SIZE]);

/**
 * sign_signature(key, string, signature):
 * Write the signature of the string to sign, in hex.
 */
void sign_signature(const uint8_t key[SHA256_SIZE],
    const struct buffer *string, char signature[SHA256_HEX_SIZE]);

#endif
