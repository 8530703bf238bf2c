#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "s3/words.h"

#define WORDS_LIMIT 64

struct words {
	char *array[WORDS_LIMIT + 1];
	char text[];	/* all words, each with its NUL */
};

static bool
is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Copy one word to ${target}; return what follows it, NULL when a quote is
 * left open. */
static const char *
word_copy(const char *text, char **target)
{
	char quote = '\0';
	char *out = *target;

	for (; *text != '\0' && (quote != '\0' || !is_blank(*text)); text++) {
		if (quote == '\0' && (*text == '\'' || *text == '"')) {
			quote = *text;
		} else if (*text == quote) {
			quote = '\0';
		} else if (*text == '\\' && text[1] != '\0' &&
		    (quote == '\0' || (quote == '"' &&
		    (text[1] == '"' || text[1] == '\\')))) {
			*out++ = *++text;
		} else {
			*out++ = *text;
		}
	}
	*out++ = '\0';
	*target = out;
	return quote == '\0' ? text : NULL;
}

struct words *
words_split(const char *text, struct error *error)
{
	/* A word takes at most its bytes and a NUL for the blank behind. */
	struct words *words = calloc(1, sizeof(*words) + strlen(text) + 2);
	char *target;
	size_t count = 0;

	if (words == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	target = words->text;
	for (;;) {
		while (is_blank(*text))
			text++;
		if (*text == '\0')
			break;
		if (count == WORDS_LIMIT) {
			error_set(error, ERROR_USAGE, CAUSE_LIMIT, NULL,
			    "credential_process has too many words");
			goto fail;
		}
		words->array[count++] = target;
		text = word_copy(text, &target);
		if (text == NULL) {
			error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
			    "credential_process has an open quote");
			goto fail;
		}
	}
	if (count > 0)
		return words;
	error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
	    "credential_process is empty");
fail:
	words_free(words);
	return NULL;
}

char *const *
words_array(const struct words *words)
{
	return words->array;
}

void
words_free(struct words *words)
{
	free(words);
}
