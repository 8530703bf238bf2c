#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct error;

/*
 * SHA-256 (FIPS 180-4) and HMAC-SHA-256, by OpenSSL.
 */
#define SHA256_SIZE 32
#define SHA256_HEX_SIZE 65	/* 64 digits and the NUL */

struct sha256;

/**
 * sha256_new(error):
 * A running hash, or NULL.  One thread at a time.
 */
struct sha256 *sha256_new(struct error *error);

/**
 * sha256_add(sha256, data, length):
 * Add bytes.
 */
void sha256_add(struct sha256 *sha256, const void *data, size_t length);

/**
 * sha256_end(sha256, digest):
 * Write the digest of all that was added, and start anew.
 */
void sha256_end(struct sha256 *sha256, uint8_t digest[SHA256_SIZE]);

/**
 * sha256_free(sha256):
 * Behave consistently with free(NULL).
 */
void sha256_free(struct sha256 *sha256);

/**
 * sha256_of(data, length, digest):
 * The digest of one run of bytes.
 */
void sha256_of(const void *data, size_t length, uint8_t digest[SHA256_SIZE]);

/**
 * sha256_hmac(key, key_length, data, length, digest):
 * HMAC-SHA-256.
 */
void sha256_hmac(const void *key, size_t key_length, const void *data,
    size_t length, uint8_t digest[SHA256_SIZE]);

/**
 * sha256_hex(digest, text):
 * Write 64 lower-case digits and return ${text}.
 */
char *sha256_hex(const uint8_t digest[SHA256_SIZE], char text[SHA256_HEX_SIZE]);

/**
 * sha256_from_hex(text, digest):
 * Read exactly 64 lower-case digits (more may follow).  Return 0 or -1.
 */
int sha256_from_hex(const char *text, uint8_t digest[SHA256_SIZE]);

#endif
