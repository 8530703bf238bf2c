#include "kit/kit.h"

#include <stdbool.h>
#include <string.h>

#include "store/key.h"

static const struct term term = { 12, 3, UINT64_C(0x9f2c5d1e0a7b4c68) };

#define TERM "node-0012/term-00000003-9f2c5d1e0a7b4c68/"
#define HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void
fill(uint8_t digest[SHA256_SIZE])
{
	size_t i;

	for (i = 0; i < SHA256_SIZE; i++)
		digest[i] = (uint8_t)i;
}

static void
test_made_keys(void **state)
{
	uint8_t digest[SHA256_SIZE];
	char key[KEY_SIZE];

	(void)state;
	fill(digest);
	assert_string_equal(key_node(0, key), "node-0000/");
	assert_string_equal(key_term(&term, key), TERM);
	assert_string_equal(key_term_object(&term, "claim", key), TERM "claim");
	assert_string_equal(key_chunk(&term, 17, digest, key),
	    TERM "chunks/0000000017/" HEX);
	assert_string_equal(key_manifest(&term, KEY_ATTEMPT_MAXIMUM, digest,
	    key), TERM "checkpoints/9999999999-" HEX ".json");
}

static void
test_parsed_keys(void **state)
{
	static const struct {
		const char *key;
		enum key_kind kind;
		uint64_t attempt;
	} keys[] = {
		{ TERM, KEY_TERM, 0 },
		{ TERM "claim", KEY_CLAIM, 0 },
		{ TERM "open.json", KEY_OPEN, 0 },
		{ TERM "close.json", KEY_CLOSE, 0 },
		{ TERM "chunks/0000000017/" HEX, KEY_CHUNK, 17 },
		{ TERM "checkpoints/0000000009-" HEX ".json", KEY_MANIFEST, 9 },
	};
	uint8_t digest[SHA256_SIZE];
	struct key_parts parts;
	size_t i;

	(void)state;
	fill(digest);
	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		key_parse(keys[i].key, &parts);
		assert_int_equal(parts.kind, keys[i].kind);
		assert_true(term_same(&parts.term, &term));
		assert_int_equal(parts.attempt, keys[i].attempt);
		if (parts.attempt != 0)
			assert_memory_equal(parts.digest, digest, SHA256_SIZE);
	}
}

static void
test_keys_that_are_not_ours(void **state)
{
	static const char *const keys[] = {
		"", "ckptsync.json", "node-0012", "node-0012/",
		"node-0012/term-00000000-9f2c5d1e0a7b4c68/claim",
		"node-012/term-00000003-9f2c5d1e0a7b4c68/claim",
		"node-0012/term-3-9f2c5d1e0a7b4c68/claim",
		"node-0012/term-00000003-9F2c5d1e0a7b4c68/claim",
		"node-0012/term-00000003-9f2c5d1e0a7b4c6/claim",
		TERM "claim/", TERM "claims", TERM "open.json ", TERM "chunks/",
		TERM "chunks/17/" HEX, TERM "chunks/0000000017/" HEX "0",
		TERM "chunks/0000000017/0" HEX, TERM "chunks/000000017/" HEX,
		TERM "chunks/0000000017/00/" HEX,
		TERM "checkpoints/0000000009-" HEX,
		TERM "checkpoints/0000000009-" HEX ".json2",
		TERM "checkpoints/0000000009" HEX ".json",
		TERM "checkpoints/0000000009-" HEX ".JSON",
		"x" TERM "claim", "node--001/term-00000003-9f2c5d1e0a7b4c68/",
	};
	struct key_parts parts;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		key_parse(keys[i], &parts);
		if (parts.kind != KEY_OTHER)
			fail_msg("\"%s\" was taken for one of ours", keys[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_keys),
		cmocka_unit_test(test_parsed_keys),
		cmocka_unit_test(test_keys_that_are_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
