#ifndef STORE_SECRET_H
#define STORE_SECRET_H

#include <stdbool.h>

/*
 * What looks like a secret in a command line or in a command's output.  It
 * errs on the side of masking, but leaves "--tokenizer" and "max_tokens".
 */

/**
 * secret_is_name(name, length):
 * Whether a setting with this name holds a secret: one of its words (between
 * '-', '_', '.' or a change of case) is "password", "token", ... or it ends in
 * "api key" and the like.
 */
bool secret_is_name(const char *name, unsigned long length);

/**
 * secret_mask(text):
 * A copy of ${text} in which the values of secret settings (`name=value`,
 * `"name": "value"`), the credentials in URLs and tokens of well-known shapes
 * are "***".  NULL when out of memory.
 */
char *secret_mask(const char *text);

#endif
