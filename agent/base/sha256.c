#include "base/sha256.h"

#include <assert.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#include "base/error.h"

struct sha256 {
	EVP_MD_CTX *context;
};

/*
 * OpenSSL fails here only without memory or with a broken installation; a
 * wrong digest would be worse than an end.
 */
static void
require(int done)
{
	if (done != 1)
		abort();
}

struct sha256 *
sha256_new(struct error *error)
{
	struct sha256 *sha256 = malloc(sizeof(*sha256));

	if (sha256 == NULL)
		goto failed;
	sha256->context = EVP_MD_CTX_new();
	if (sha256->context == NULL)
		goto failed;
	if (EVP_DigestInit_ex(sha256->context, EVP_sha256(), NULL) != 1)
		goto failed_context;
	return sha256;

failed_context:
	EVP_MD_CTX_free(sha256->context);
failed:
	free(sha256);
	error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "could not start a SHA-256");
	return NULL;
}

void
sha256_add(struct sha256 *sha256, const void *data, size_t length)
{
	require(EVP_DigestUpdate(sha256->context, data, length));
}

void
sha256_end(struct sha256 *sha256, uint8_t digest[SHA256_SIZE])
{
	require(EVP_DigestFinal_ex(sha256->context, digest, NULL));
	require(EVP_DigestInit_ex(sha256->context, NULL, NULL));
}

void
sha256_free(struct sha256 *sha256)
{
	if (sha256 == NULL)
		return;
	EVP_MD_CTX_free(sha256->context);
	free(sha256);
}

void
sha256_of(const void *data, size_t length, uint8_t digest[SHA256_SIZE])
{
	require(EVP_Digest(data, length, digest, NULL, EVP_sha256(), NULL));
}

void
sha256_hmac(const void *key, size_t key_length, const void *data,
    size_t length, uint8_t digest[SHA256_SIZE])
{
	assert(key_length <= INT_MAX);
	require(HMAC(EVP_sha256(), key, (int)key_length, data, length, digest,
	    NULL) != NULL);
}

char *
sha256_hex(const uint8_t digest[SHA256_SIZE], char text[SHA256_HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < SHA256_SIZE; i++) {
		text[2 * i] = digits[digest[i] >> 4];
		text[2 * i + 1] = digits[digest[i] & 15];
	}
	text[2 * SHA256_SIZE] = '\0';
	return text;
}

/* The value of a lower-case digit, or -1. */
static int
digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return -1;
}

int
sha256_from_hex(const char *text, uint8_t digest[SHA256_SIZE])
{
	uint8_t bytes[SHA256_SIZE];

	/* A NUL is no digit, so a short text ends the loop before its end. */
	for (size_t i = 0; i < SHA256_SIZE; i++) {
		int high = digit_value(text[2 * i]);
		int low = high < 0 ? -1 : digit_value(text[2 * i + 1]);

		if (low < 0)
			return -1;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	for (size_t i = 0; i < SHA256_SIZE; i++)
		digest[i] = bytes[i];
	return 0;
}
