#ifndef S3_KEYS_H
#define S3_KEYS_H

#include <time.h>

#include "s3/sign.h"

struct buffer;
struct error;

#define KEYS_ACCESS_KEY_SIZE 256
#define KEYS_TOKEN_SIZE 8192

/* One set of keys. */
struct keys {
	char access_key[KEYS_ACCESS_KEY_SIZE];
	char secret[SIGN_SECRET_LIMIT];
	char token[KEYS_TOKEN_SIZE];	/* "" for none */
	time_t expires;		/* 0: never, as far as we know */
	unsigned long number;	/* another one for each set; never 0 */
};

/**
 * keys_set(keys, access_key, secret, token, expires, error):
 * Fill ${keys}; ${token} and ${expires} (RFC 3339) may be NULL or empty.
 * Return 0, or -1 with ERROR_USAGE when one is missing, too long, or holds
 * what cannot be in a header.
 */
int keys_set(struct keys *keys, const char *access_key, const char *secret,
    const char *token, const char *expires, struct error *error);

/**
 * keys_read_json(text, name, token_field, keys, error):
 * Fill ${keys} from the JSON that metadata servers and credential processes
 * give: AccessKeyId, SecretAccessKey, ${token_field}, Expiration.  ${name} is
 * its origin in messages.  Return 0 or -1.
 */
int keys_read_json(const struct buffer *text, const char *name,
    const char *token_field, struct keys *keys, struct error *error);

#endif
