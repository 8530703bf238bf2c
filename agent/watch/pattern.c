#include "watch/pattern.h"

#include <stddef.h>

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_end(char c)
{
	return c == '\0' || c == '|';
}

/*
 * Match the alternative at ${pattern}.  The last star seen is the only one
 * that needs to be tried again, so the time is bounded by the product of the
 * lengths.  A `#` takes all the digits there are, since nothing in the table
 * follows it with a digit.
 */
static bool
matches(const char *pattern, const char *name)
{
	const char *star = NULL, *retry = NULL;

	for (;;) {
		if (*pattern == '*') {
			star = ++pattern;
			retry = name;
		} else if (*pattern == '#' && is_digit(*name)) {
			pattern++;
			while (is_digit(*name))
				name++;
		} else if (!is_end(*pattern) && *name != '\0' &&
		    *pattern != '#' && (*pattern == *name ||
		    (*pattern == '?' && *name != '/'))) {
			pattern++;
			name++;
		} else if (is_end(*pattern) && *name == '\0') {
			return true;
		} else if (star != NULL && *retry != '\0' && *retry != '/') {
			pattern = star;
			name = ++retry;
		} else {
			return false;
		}
	}
}

bool
pattern_matches(const char *patterns, const char *name)
{
	for (;;) {
		if (matches(patterns, name))
			return true;
		while (!is_end(*patterns))
			patterns++;
		if (*patterns == '\0')
			return false;
		patterns++;
	}
}
