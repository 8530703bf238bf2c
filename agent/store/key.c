#include "store/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool
term_same(const struct term *a, const struct term *b)
{
	return a->node == b->node && a->number == b->number &&
	    a->random == b->random;
}

char *
key_node(uint32_t node, char key[KEY_SIZE])
{
	snprintf(key, KEY_SIZE, "node-%04" PRIu32 "/", node);
	return key;
}

char *
key_term(const struct term *term, char key[KEY_SIZE])
{
	return key_term_object(term, "", key);
}

char *
key_term_object(const struct term *term, const char *name, char key[KEY_SIZE])
{
	snprintf(key, KEY_SIZE,
	    "node-%04" PRIu32 "/term-%08" PRIu32 "-%016" PRIx64 "/%s",
	    term->node, term->number, term->random, name);
	return key;
}

char *
key_chunk(const struct term *term, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE], char key[KEY_SIZE])
{
	char hex[SHA256_HEX_SIZE];

	snprintf(key, KEY_SIZE, "node-%04" PRIu32 "/term-%08" PRIu32
	    "-%016" PRIx64 "/chunks/%010" PRIu64 "/%s", term->node,
	    term->number, term->random, attempt, sha256_hex(digest, hex));
	return key;
}

char *
key_manifest(const struct term *term, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE], char key[KEY_SIZE])
{
	char hex[SHA256_HEX_SIZE];

	snprintf(key, KEY_SIZE, "node-%04" PRIu32 "/term-%08" PRIu32
	    "-%016" PRIx64 "/checkpoints/%010" PRIu64 "-%s.json", term->node,
	    term->number, term->random, attempt, sha256_hex(digest, hex));
	return key;
}

/* Step over ${word} at *${text}. */
static bool
skip(const char **text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*text, word, length) != 0)
		return false;
	*text += length;
	return true;
}

/* Exactly ${digits} digits of ${base} (10 or 16, lower case). */
static bool
take_number(const char **text, int digits, unsigned base, uint64_t *number)
{
	unsigned digit;
	int i;

	*number = 0;
	for (i = 0; i < digits; i++) {
		char c = (*text)[i];

		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if (base == 16 && c >= 'a' && c <= 'f')
			digit = (unsigned)(c - 'a') + 10;
		else
			return false;
		*number = *number * base + digit;
	}
	*text += digits;
	return true;
}

static bool
take_digest(const char **text, uint8_t digest[SHA256_SIZE])
{
	if (strlen(*text) < SHA256_HEX_SIZE - 1 ||
	    sha256_from_hex(*text, digest) != 0)
		return false;
	*text += SHA256_HEX_SIZE - 1;
	return true;
}

static bool
take_term(const char **text, struct term *term)
{
	uint64_t node, number;

	if (!skip(text, "node-") || !take_number(text, 4, 10, &node) ||
	    !skip(text, "/term-") || !take_number(text, 8, 10, &number) ||
	    number == 0 || !skip(text, "-") ||
	    !take_number(text, 16, 16, &term->random) || !skip(text, "/"))
		return false;
	term->node = (uint32_t)node;
	term->number = (uint32_t)number;
	return true;
}

/* What stands behind "node-.../term-.../". */
static enum key_kind
take_object(const char *text, struct key_parts *parts)
{
	if (*text == '\0')
		return KEY_TERM;
	if (strcmp(text, "claim") == 0)
		return KEY_CLAIM;
	if (strcmp(text, "open.json") == 0)
		return KEY_OPEN;
	if (strcmp(text, "close.json") == 0)
		return KEY_CLOSE;
	if (skip(&text, "chunks/")) {
		if (take_number(&text, 10, 10, &parts->attempt) &&
		    skip(&text, "/") && take_digest(&text, parts->digest) &&
		    *text == '\0')
			return KEY_CHUNK;
	} else if (skip(&text, "checkpoints/")) {
		if (take_number(&text, 10, 10, &parts->attempt) &&
		    skip(&text, "-") && take_digest(&text, parts->digest) &&
		    strcmp(text, ".json") == 0)
			return KEY_MANIFEST;
	}
	return KEY_OTHER;
}

void
key_parse(const char *key, struct key_parts *parts)
{
	memset(parts, 0, sizeof(*parts));
	if (take_term(&key, &parts->term))
		parts->kind = take_object(key, parts);
	if (parts->kind == KEY_OTHER)
		memset(parts, 0, sizeof(*parts));
}
