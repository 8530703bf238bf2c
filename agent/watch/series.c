#include "watch/series.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"

/*
 * What a number counts is said by the word before it.  Steps are counted in
 * one sequence over a whole training, so they win over epochs; a word that is
 * not here ("rank", "val_loss", "resnet") gives no step.  A number behind a
 * name like "checkpoint" is a step or an epoch, whatever the trainer counts.
 */
static const struct {
	const char *word;
	int rank;
} counts[] = {
	{ "step", 4 }, { "steps", 4 }, { "iter", 4 }, { "iteration", 4 },
	{ "it", 4 }, { "update", 4 }, { "updates", 4 }, { "ba", 4 },
	{ "batch", 4 }, { "globalstep", 4 },
	{ "checkpoint", 3 }, { "ckpt", 3 }, { "model", 3 }, { "weights", 3 },
	{ "snapshot", 3 }, { "state", 3 },
	{ "epoch", 2 }, { "epochs", 2 }, { "ep", 2 }, { "e", 2 }
};

/* A run of digits in a name. */
struct number {
	const char *begin, *end;
	char word[32];		/* letters before it, lower case */
	bool joined;		/* nothing stands between the two */
	bool fraction;		/* "0.25" */
};

static int
rank_of(const char *word)
{
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		if (strcmp(word, counts[i].word) == 0)
			return counts[i].rank;
	}
	return 0;
}

static bool
is_separator(char c)
{
	return c == '-' || c == '_' || c == '=' || c == '.' || c == ' ' ||
	    c == '/';
}

/* Copy the letters that end at ${end} (not before ${begin}), lower case. */
static void
copy_word(char word[32], const char *begin, const char *end)
{
	const char *from = end;
	size_t length;

	while (from > begin && isalpha((unsigned char)from[-1]))
		from--;
	length = (size_t)(end - from);
	if (length > 31)
		length = 0;
	for (size_t i = 0; i < length; i++)
		word[i] = (char)tolower((unsigned char)from[i]);
	word[length] = '\0';
}

/*
 * Find the next number at or behind ${text} in the name that begins at
 * ${begin}.  ${before} is the number before it: "checkpoint_3_5000" counts
 * checkpoints with both.
 */
static bool
find_number(const char *begin, const char *text, const struct number *before,
    struct number *number)
{
	const char *from;

	while (*text != '\0' && !isdigit((unsigned char)*text))
		text++;
	if (*text == '\0')
		return false;
	*number = (struct number){ .begin = text };
	while (isdigit((unsigned char)*text))
		text++;
	while (*text == '.' && isdigit((unsigned char)text[1])) {
		number->fraction = true;
		text++;
		while (isdigit((unsigned char)*text))
			text++;
	}
	number->end = text;

	from = number->begin;
	number->joined = from > begin && !is_separator(from[-1]);
	while (from > begin && is_separator(from[-1]))
		from--;
	if (before != NULL && before->end == from && !number->joined)
		memcpy(number->word, before->word, sizeof(number->word));
	else
		copy_word(number->word, begin, from);
	return true;
}

/* "resnet50" and "h5" are names, "epoch5" and "-5" are numbers. */
static bool
is_counter(const struct number *number)
{
	return !number->joined || rank_of(number->word) > 0;
}

static bool
read_number(const struct number *number, uint64_t *value)
{
	*value = 0;
	for (const char *digit = number->begin; digit < number->end; digit++) {
		if (*value > (UINT64_MAX - 9) / 10)
			return false;
		*value = *value * 10 + (uint64_t)(*digit - '0');
	}
	/* JSON carries it as a signed integer. */
	return *value <= INT64_MAX;
}

/* The step that ${name} gives, if any. */
static void
find_step(const char *name, struct series *series)
{
	struct number number, before = { 0 };
	bool has_before = false;
	size_t nameless = 0;
	int best = 0;
	uint64_t value, nameless_value = 0;

	for (const char *text = name; find_number(name, text,
	    has_before ? &before : NULL, &number); text = number.end) {
		int rank = rank_of(number.word);

		before = number;
		has_before = true;
		if (number.fraction || !is_counter(&number) ||
		    !read_number(&number, &value))
			continue;
		if (number.word[0] == '\0') {
			nameless++;
			nameless_value = value;
		}
		if (rank > 0 && rank >= best) {
			best = rank;
			series->has_step = true;
			series->step = value;
		}
	}
	/* A lone number is a step ("500/"), several are a date. */
	if (best == 0 && nameless == 1) {
		series->has_step = true;
		series->step = nameless_value;
	}
	/* Lightning's hpc_ckpt_N counts the requeues, not the steps. */
	if (strncmp(name, "hpc_ckpt_", 9) == 0) {
		series->has_step = false;
		series->step = 0;
	}
}

/*
 * The "-v1" that Lightning puts before ".ckpt" when the name was taken: the
 * same checkpoint of a later run.
 */
static bool
is_version(const struct number *number, const char *name)
{
	return strcmp(number->word, "v") == 0 && number->joined &&
	    number->begin - name >= 2 && number->begin[-2] == '-' &&
	    strcmp(number->end, ".ckpt") == 0;
}

/* Write ${path} with the numbers of its last component replaced. */
static char *
make_name(const char *path)
{
	const char *name = path_base(path), *text = name;
	struct number number, before;
	bool has_before = false;
	char *made = calloc(1, strlen(path) + 1), *to;

	if (made == NULL)
		return NULL;
	memcpy(made, path, (size_t)(name - path));
	to = made + (name - path);
	while (find_number(name, text, has_before ? &before : NULL, &number)) {
		size_t length = (size_t)(number.begin - text);

		memcpy(to, text, length);
		to += length;
		if (is_version(&number, name)) {
			to -= 2;
		} else if (is_counter(&number)) {
			*to++ = '*';
		} else {
			length = (size_t)(number.end - number.begin);
			memcpy(to, number.begin, length);
			to += length;
		}
		text = number.end;
		before = number;
		has_before = true;
	}
	strcpy(to, text);
	return made;
}

/* Whether ${word} is a word of ${name}: "best" in "model_best.pth". */
static bool
has_word(const char *name, const char *word)
{
	size_t length = strlen(word);

	while (*name != '\0') {
		size_t part = 0;

		while (name[part] != '\0' && !is_separator(name[part]))
			part++;
		if (part == length && strncasecmp(name, word, length) == 0)
			return true;
		name += part;
		while (is_separator(*name))
			name++;
	}
	return false;
}

int
series_of(const char *path, struct series *series)
{
	const char *name = path_base(path);

	*series = (struct series){ .role = ROLE_RESUME };
	series->name = make_name(path);
	if (series->name == NULL)
		return -1;
	find_step(name, series);
	if (strncasecmp(name, "best", 4) == 0 || has_word(name, "best"))
		series->role = ROLE_BEST;
	else if (strncasecmp(name, "final", 5) == 0 || has_word(name, "final"))
		series->role = ROLE_FINAL;
	return 0;
}
