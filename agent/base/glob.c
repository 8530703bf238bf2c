#include "base/glob.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

/*
 * A pattern is read once into steps; then all places in the pattern where the
 * path read so far may have got to are kept side by side.  Trying one way
 * after the other, as fnmatch(3) does, takes exponential time for some
 * patterns.
 */
#define LONGEST 4096

enum kind {
	LITERAL,	/* this character */
	ANY_ONE,	/* a character but the slash */
	SET,		/* one of a set, never the slash */
	ANY_NAME,	/* any characters but the slash, also none */
	ANY_PATH,	/* any characters */
	ANY_FOLDERS	/* nothing, or any characters that end in a slash */
};

struct step {
	uint32_t code;		/* LITERAL: the character */
	uint16_t kind;
	uint16_t begin, end;	/* SET: what is between the brackets */
};

struct glob {
	const char *pattern;
	size_t count;
	struct step steps[LONGEST + 3];
};

/* A byte that is not UTF-8 is a character of its own, as in no other text. */
static uint32_t
next_character(const char **text, const char *end)
{
	uint32_t code;
	size_t used = text_decode(*text, (size_t)(end - *text), &code);

	if (used == 0) {
		code = UINT32_C(0x80000000) | (unsigned char)**text;
		used = 1;
	}
	*text += used;
	return code;
}

/* The same, where a backslash takes the meaning from what follows. */
static uint32_t
next_literal(const char **text, const char *end)
{
	if (**text == '\\' && end - *text > 1)
		(*text)++;
	return next_character(text, end);
}

static void
add(struct glob *glob, struct step step)
{
	glob->steps[glob->count++] = step;
}

/*
 * The bracket that closes the set whose inside begins at ${text}; NULL when
 * there is none.  One that comes first is a member.
 */
static const char *
set_end(const char *text, const char *end)
{
	if (text < end && (*text == '!' || *text == '^'))
		text++;
	if (text < end && *text == ']')
		text++;
	while (text < end && *text != ']' && *text != '/')
		text += *text == '\\' && end - text > 1 ? 2 : 1;
	return text < end && *text == ']' ? text : NULL;
}

/* Read "*", "**" or "**" and a slash at the beginning of a component. */
static const char *
read_stars(struct glob *glob, const char *text, const char *end,
    bool at_beginning)
{
	size_t stars = 0;

	while (text < end && *text == '*') {
		text++;
		stars++;
	}
	if (stars == 1) {
		add(glob, (struct step){ .kind = ANY_NAME });
	} else if (at_beginning && text < end && *text == '/') {
		add(glob, (struct step){ .kind = ANY_FOLDERS });
		text++;
	} else {
		add(glob, (struct step){ .kind = ANY_PATH });
	}
	return text;
}

/* Each step takes at least one byte of the text, so LONGEST bounds them. */
static void
read_steps(struct glob *glob, const char *text, const char *end)
{
	const char *begin = text, *close;

	while (text < end) {
		if (*text == '*') {
			text = read_stars(glob, text, end,
			    text == begin || text[-1] == '/');
		} else if (*text == '?') {
			add(glob, (struct step){ .kind = ANY_ONE });
			text++;
		} else if (*text == '[' &&
		    (close = set_end(text + 1, end)) != NULL) {
			add(glob, (struct step){ .kind = SET,
			    .begin = (uint16_t)(text + 1 - glob->pattern),
			    .end = (uint16_t)(close - glob->pattern) });
			text = close + 1;
		} else {
			add(glob, (struct step){ .kind = LITERAL,
			    .code = next_literal(&text, end) });
		}
	}
}

/* Read a whole pattern.  Return 0, or -1 when it is empty or too long. */
static int
read_pattern(struct glob *glob, const char *pattern)
{
	size_t length = strlen(pattern);
	const char *end = pattern + length;
	bool beneath, anchored;

	glob->pattern = pattern;
	glob->count = 0;
	if (length == 0 || length > LONGEST)
		return -1;
	beneath = end[-1] == '/';
	while (end > pattern && end[-1] == '/')
		end--;
	anchored = memchr(pattern, '/', (size_t)(end - pattern)) != NULL;
	while (pattern < end && *pattern == '/')
		pattern++;

	if (!anchored && pattern < end)
		add(glob, (struct step){ .kind = ANY_FOLDERS });
	read_steps(glob, pattern, end);
	if (beneath && pattern < end)
		add(glob, (struct step){ .kind = LITERAL, .code = '/' });
	if (beneath)
		add(glob, (struct step){ .kind = ANY_PATH });
	return 0;
}

static bool
set_holds(const struct glob *glob, const struct step *step, uint32_t code)
{
	const char *text = glob->pattern + step->begin;
	const char *end = glob->pattern + step->end;
	bool negated = *text == '!' || *text == '^', found = false;

	if (code == '/')
		return false;
	if (negated)
		text++;
	while (text < end) {
		uint32_t low = next_literal(&text, end), high = low;

		if (end - text >= 2 && *text == '-') {
			text++;
			high = next_literal(&text, end);
		}
		found |= low <= code && code <= high;
	}
	return found != negated;
}

/*
 * Mark the place ${at}, and those behind it that can be reached without a
 * character.
 */
static void
reach(const struct glob *glob, bool *places, size_t at)
{
	while (!places[at]) {
		places[at] = true;
		if (at == glob->count || glob->steps[at].kind < ANY_NAME)
			return;
		at++;
	}
}

/* Mark where one character leads to from the place ${at}. */
static void
advance(const struct glob *glob, bool *places, size_t at, uint32_t code)
{
	const struct step *step = &glob->steps[at];

	switch ((enum kind)step->kind) {
	case LITERAL:
		if (code == step->code)
			reach(glob, places, at + 1);
		break;
	case ANY_ONE:
		if (code != '/')
			reach(glob, places, at + 1);
		break;
	case SET:
		if (set_holds(glob, step, code))
			reach(glob, places, at + 1);
		break;
	case ANY_NAME:
		if (code != '/')
			reach(glob, places, at);
		break;
	case ANY_PATH:
		reach(glob, places, at);
		break;
	case ANY_FOLDERS:
		/* Inside a name it stays without a way to go on. */
		places[at] = true;
		if (code == '/')
			reach(glob, places, at + 1);
		break;
	}
}

bool
glob_matches(const char *pattern, const char *path)
{
	struct glob glob;
	bool places[2][LONGEST + 4];
	bool *now = places[0], *next = places[1];
	const char *end = path + strlen(path);

	if (path == end || read_pattern(&glob, pattern) != 0)
		return false;
	memset(now, 0, glob.count + 1);
	reach(&glob, now, 0);
	while (path < end) {
		uint32_t code = next_character(&path, end);
		bool *before = now;

		memset(next, 0, glob.count + 1);
		for (size_t at = 0; at < glob.count; at++) {
			if (now[at])
				advance(&glob, next, at, code);
		}
		now = next;
		next = before;
	}
	return now[glob.count];
}

bool
glob_is_sound(const char *pattern)
{
	const char *text = pattern, *end = pattern + strlen(pattern);

	if (end - pattern > LONGEST)
		return false;
	while (text < end) {
		if (*text == '[') {
			text = set_end(text + 1, end);
			if (text == NULL)
				return false;
			text++;
		} else {
			(void)next_literal(&text, end);
		}
	}
	return true;
}
