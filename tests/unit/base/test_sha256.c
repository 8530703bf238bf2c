#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "kit/kit.h"

/* NIST's examples for FIPS 180-4. */
static const struct {
	const char *text;
	const char *hex;
} known[] = {
	{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

static void
gives_known_digests(void **state)
{
	struct error error = ERROR_INIT;
	struct sha256 *sha256 = sha256_new(&error);
	uint8_t digest[SHA256_SIZE], other[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];

	(void)state;
	assert_non_null(sha256);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t length = strlen(known[i].text);

		sha256_of(known[i].text, length, digest);
		assert_string_equal(sha256_hex(digest, hex), known[i].hex);

		/* The same hash again and again, byte by byte. */
		for (size_t k = 0; k < length; k++)
			sha256_add(sha256, known[i].text + k, 1);
		sha256_add(sha256, NULL, 0);
		sha256_end(sha256, other);
		assert_memory_equal(digest, other, SHA256_SIZE);

		assert_int_equal(sha256_from_hex(hex, other), 0);
		assert_memory_equal(digest, other, SHA256_SIZE);
	}
	sha256_free(sha256);
	sha256_free(NULL);
}

static void
digests_a_million(void **state)
{
	struct error error = ERROR_INIT;
	struct sha256 *sha256 = sha256_new(&error);
	uint8_t digest[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE], chunk[1000];

	(void)state;
	assert_non_null(sha256);
	memset(chunk, 'a', sizeof(chunk));
	for (int i = 0; i < 1000; i++)
		sha256_add(sha256, chunk, sizeof(chunk));
	sha256_end(sha256, digest);
	assert_string_equal(sha256_hex(digest, hex),
	    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	sha256_free(sha256);
}

/* RFC 4231, cases 1, 2 and 6. */
static void
gives_known_codes(void **state)
{
	uint8_t digest[SHA256_SIZE], key[131];
	char hex[SHA256_HEX_SIZE];
	const char *data = "Test Using Larger Than Block-Size Key - "
	    "Hash Key First";

	(void)state;
	memset(key, 0x0b, 20);
	sha256_hmac(key, 20, "Hi There", 8, digest);
	assert_string_equal(sha256_hex(digest, hex),
	    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	sha256_hmac("Jefe", 4, "what do ya want for nothing?", 28, digest);
	assert_string_equal(sha256_hex(digest, hex),
	    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	sha256_hmac(key, sizeof(key), data, strlen(data), digest);
	assert_string_equal(sha256_hex(digest, hex),
	    "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");

	/* No key and no data. */
	sha256_hmac("", 0, "", 0, digest);
	assert_string_equal(sha256_hex(digest, hex),
	    "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void
refuses_other_hex(void **state)
{
	char hex[SHA256_HEX_SIZE + 8];
	uint8_t digest[SHA256_SIZE] = { 7 };
	static const char bad[] = { 'A', 'g', ' ', '/', ':', '`', '\n', -1 };

	(void)state;
	strcpy(hex, known[1].hex);
	strcat(hex, ".json");
	assert_int_equal(sha256_from_hex(hex, digest), 0);
	digest[0] = 7;
	for (size_t i = 0; i < 64; i++) {
		char digit = hex[i];

		for (size_t k = 0; k < sizeof(bad); k++) {
			hex[i] = bad[k];
			assert_int_equal(sha256_from_hex(hex, digest), -1);
		}
		hex[i] = digit;
	}

	/* A short text must not be read past its end. */
	for (size_t length = 0; length < 64; length++) {
		char *text = strndup(hex, length);

		assert_non_null(text);
		assert_int_equal(sha256_from_hex(text, digest), -1);
		free(text);
	}
	assert_int_equal(digest[0], 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_known_digests),
		cmocka_unit_test(digests_a_million),
		cmocka_unit_test(gives_known_codes),
		cmocka_unit_test(refuses_other_hex),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
