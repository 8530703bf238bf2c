#include "watch/pattern.h"

#include <stddef.h>
#include <string.h>

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Match one alternative, ${pattern} up to ${end}.  The last star seen is the
 * only one that needs to be tried again, so the time is bounded by the
 * product of the lengths.  A `#` takes all the digits there are, since
 * nothing in the table follows it with a digit.
 */
static bool
matches(const char *pattern, const char *end, const char *name)
{
	const char *star = NULL, *retry = NULL;

	for (;;) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			retry = name;
		} else if (pattern < end && *pattern == '#' &&
		    is_digit(*name)) {
			pattern++;
			while (is_digit(*name))
				name++;
		} else if (pattern < end && *name != '\0' &&
		    *pattern != '#' && (*pattern == *name ||
		    (*pattern == '?' && *name != '/'))) {
			pattern++;
			name++;
		} else if (pattern == end && *name == '\0') {
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
		const char *end = patterns + strcspn(patterns, "|");

		if (matches(patterns, end, name))
			return true;
		if (*end == '\0')
			return false;
		patterns = end + 1;
	}
}
