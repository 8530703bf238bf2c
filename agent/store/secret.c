#include "store/secret.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Words that make a name secret wherever they stand in it. */
static const char *const secret_words[] = {
	"apikey", "auth", "authorization", "bearer", "credential",
	"credentials", "passphrase", "passwd", "password", "pat", "pwd",
	"secret", "sig", "signature", "token" };

/* Words that make a following "key" secret. */
static const char *const key_words[] = {
	"access", "account", "api", "auth", "encryption", "hf", "license",
	"openai", "private", "secret", "signing", "ssh", "wandb" };

/* Beginnings of tokens, and how many letters and digits must follow. */
static const struct {
	const char *start;
	size_t least;
} shapes[] = {
	{ "AKIA", 16 }, { "ASIA", 16 },		/* AWS access key ids */
	{ "hf_", 20 },				/* Hugging Face */
	{ "sk-", 20 },				/* OpenAI and others */
	{ "ghp_", 20 }, { "gho_", 20 }, { "ghs_", 20 }, { "ghu_", 20 },
	{ "github_pat_", 20 }, { "glpat-", 20 },
	{ "xoxb-", 10 }, { "xoxp-", 10 },	/* Slack */
	{ "AIza", 30 }, { "ya29.", 20 },	/* Google */
	{ "eyJ", 30 },				/* a signed JSON token */
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define MASK "***"

static bool
is_word_of(const char *word, size_t length, const char *const *words,
    size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strlen(words[i]) == length &&
		    strncasecmp(words[i], word, length) == 0)
			return true;
	}
	return false;
}

/* Length of the word that starts ${text}: up to a sign or a new capital. */
static size_t
word_length(const char *text, size_t length)
{
	size_t i;

	for (i = 0; i < length && isalnum((unsigned char)text[i]); i++) {
		if (i > 0 && isupper((unsigned char)text[i]) &&
		    islower((unsigned char)text[i - 1]))
			break;
	}
	return i;
}

bool
secret_is_name(const char *name, unsigned long length)
{
	bool after_key_word = false;
	size_t step, i;

	for (i = 0; i < length; i += step) {
		step = word_length(name + i, length - i);
		if (step == 0) {
			step = 1;
			continue;
		}
		if (is_word_of(name + i, step, secret_words,
		    COUNT(secret_words)))
			return true;
		if (after_key_word && step == 3 &&
		    strncasecmp(name + i, "key", 3) == 0)
			return true;
		after_key_word = is_word_of(name + i, step, key_words,
		    COUNT(key_words));
	}
	return false;
}

static bool
is_name_letter(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* Letters of which tokens are made. */
static bool
is_token_letter(char c)
{
	return is_name_letter(c) || c == '/' || c == '+' || c == '=';
}

/* Length of the token of a well-known shape at ${text}, or 0. */
static size_t
token_length(const char *text)
{
	size_t i, start, length;

	for (i = 0; i < COUNT(shapes); i++) {
		start = strlen(shapes[i].start);
		if (strncmp(text, shapes[i].start, start) != 0)
			continue;
		for (length = start; is_token_letter(text[length]);)
			length++;
		if (length - start >= shapes[i].least)
			return length;
	}
	return 0;
}

/*
 * At "name=", "name: " or "name":" whose name is secret: the length up to the
 * value, else 0.
 */
static size_t
assignment_length(const char *text)
{
	size_t length = 0, at;

	while (is_name_letter(text[length]))
		length++;
	if (length == 0 || !secret_is_name(text, length))
		return 0;
	at = length;
	if (text[at] == '"' || text[at] == '\'')
		at++;
	if (text[at] != '=' && text[at] != ':')
		return 0;
	at++;
	if (text[at - 1] == ':' && text[at] == '/' && text[at + 1] == '/')
		return 0;	/* a URL's scheme */
	while (text[at] == ' ')
		at++;
	if (text[at] == '"' || text[at] == '\'')
		at++;
	if (strncasecmp(text + at, "bearer ", 7) == 0 ||
	    strncasecmp(text + at, "basic ", 6) == 0)
		at += strcspn(text + at, " ") + 1;
	return at;
}

/* Length of the value at ${text}. */
static size_t
value_length(const char *text)
{
	return strcspn(text, " \t\r\n&;,\"'}");
}

/* At "://": the length of "user:password" before the '@', or 0. */
static size_t
credentials_length(const char *text)
{
	size_t length = strcspn(text, "/@?# \t\r\n\"'");

	return text[length] == '@' ? length : 0;
}

static char *
add(char *to, const char *from, size_t length)
{
	memcpy(to, from, length);
	return to + length;
}

char *
secret_mask(const char *text)
{
	/* A mask may be longer than what it hides: at most one per letter. */
	char *copy = malloc(strlen(text) * strlen(MASK) + strlen(MASK) + 1);
	char *to = copy;
	bool begins = true;	/* a word may begin here */
	size_t length;

	if (copy == NULL)
		return NULL;
	while (*text != '\0') {
		if (begins && (length = token_length(text)) > 0) {
			to = add(to, MASK, strlen(MASK));
			text += length;
		} else if (begins && (length = assignment_length(text)) > 0) {
			to = add(to, text, length);
			text += length;
			length = value_length(text);
			if (length > 0)
				to = add(to, MASK, strlen(MASK));
			text += length;
		} else if (strncmp(text, "://", 3) == 0 &&
		    (length = credentials_length(text + 3)) > 0) {
			to = add(to, "://" MASK, 3 + strlen(MASK));
			text += 3 + length;
		} else {
			begins = !is_name_letter(*text) || *text == '-' ||
			    *text == '+';
			*to++ = *text++;
			continue;
		}
		begins = false;
	}
	*to = '\0';
	return copy;
}
