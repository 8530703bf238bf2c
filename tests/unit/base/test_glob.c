#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "kit/kit.h"

static const struct {
	const char *pattern;
	const char *path;
	bool match;
} cases[] = {
	/* Without a slash: the last component at any depth. */
	{ "*.pt", "last.pt", true },
	{ "*.pt", "a/b/last.pt", true },
	{ "*.pt", "last.pth", false },
	{ "*.pt", "last.pt/x", false },
	{ "last.pt", "a/last.pt", true },
	{ "last.pt", "notlast.pt", false },
	{ "last.pt", "a/notlast.pt", false },
	{ "*", "a", true },
	{ "*", ".hidden", true },
	{ "*", "a/b", true },
	{ "**", "a/b/c", true },
	{ "**.pt", "a/b.pt", true },
	{ "?.pt", "a.pt", true },
	{ "?.pt", ".pt", false },
	{ "?.pt", "ab.pt", false },
	{ "a?c", "a/c", false },

	/* With a slash: bound to the directory. */
	{ "/last.pt", "last.pt", true },
	{ "/last.pt", "a/last.pt", false },
	{ "a/*.pt", "a/b.pt", true },
	{ "a/*.pt", "x/a/b.pt", false },
	{ "a/*.pt", "a/b/c.pt", false },
	{ "a/*", "a/", true },
	{ "a/*/c", "a/b/c", true },
	{ "a/*/c", "a/b/b/c", false },
	{ "*/*", "a/b", true },
	{ "*/*", "a/b/c", false },
	{ "a*/b", "a/b", true },
	{ "a*/b", "axx/b", true },
	{ "a*/b", "a/x/b", false },

	/* Across components. */
	{ "**/c.pt", "c.pt", true },
	{ "**/c.pt", "a/b/c.pt", true },
	{ "**/c.pt", "a/bc.pt", false },
	{ "a/**/c", "a/c", true },
	{ "a/**/c", "a/b/c", true },
	{ "a/**/c", "a/b/b/c", true },
	{ "a/**/c", "ac", false },
	{ "a/**/c", "a/bc", false },
	{ "a/**", "a/b/c", true },
	{ "a/**", "a", false },
	{ "a/**", "b/a/c", false },
	{ "a/**/b/**/c", "a/b/c", true },
	{ "a/**/b/**/c", "a/x/b/y/z/c", true },
	{ "a/**/b/**/c", "a/x/y/c", false },
	{ "**/**/**/a", "a", true },
	{ "a/x**y/z", "a/x1/2/3y/z", true },
	{ "a**/b", "axx/yy/b", true },
	{ "***/b", "a/b", true },

	/* All beneath. */
	{ "wandb/", "wandb/run/x", true },
	{ "wandb/", "a/wandb/x", true },
	{ "wandb/", "wandb", false },
	{ "wandb/", "wandbx/y", false },
	{ "wandb/", "xwandb/y", false },
	{ "wandb//", "wandb/y", true },
	{ "/wandb/", "wandb/x", true },
	{ "/wandb/", "a/wandb/x", false },
	{ "a/b/", "a/b/c", true },
	{ "a/b/", "x/a/b/c", false },
	{ "tmp-*/", "tmp-checkpoint-5/model.pt", true },
	{ "/", "a/b", true },

	/* Sets. */
	{ "[abc].pt", "b.pt", true },
	{ "[abc].pt", "d.pt", false },
	{ "[a-c]", "b", true },
	{ "[a-c]", "d", false },
	{ "[!a-c]", "d", true },
	{ "[!a-c]", "b", false },
	{ "[^a]", "b", true },
	{ "[^a]", "a", false },
	{ "x/[!a]b", "x//b", false },
	{ "[]]", "]", true },
	{ "[!]]", "]", false },
	{ "[!]]", "x", true },
	{ "[a-]", "-", true },
	{ "[-a]", "-", true },
	{ "[a-]", "b", false },
	{ "[\\]]", "]", true },
	{ "[\\]]", "\\", false },
	{ "[a\\-c]", "b", false },
	{ "[a\\-c]", "-", true },
	{ "[z-a]", "m", false },
	{ "[abc", "[abc", true },
	{ "[abc", "a", false },
	{ "[", "[", true },
	{ "[]", "[]", true },
	{ "[!]", "[!]", true },
	{ "[!", "[!", true },
	{ "x[a/b]y", "x[a/b]y", true },
	{ "epoch=[0-9]*.ckpt", "epoch=10-step=5.ckpt", true },

	/* Backslashes. */
	{ "\\*", "*", true },
	{ "\\*", "a", false },
	{ "\\?x", "?x", true },
	{ "a\\", "a\\", true },
	{ "\\[a]", "[a]", true },

	/* Characters, not bytes; bytes where it is not UTF-8. */
	{ "?", "\xc3\xa9", true },
	{ "??", "\xc3\xa9", false },
	{ "[\xc3\xa8-\xc3\xaa]", "\xc3\xa9", true },
	{ "[\xc3\xa8-\xc3\xaa]", "\xc3\xab", false },
	{ "?", "\xff", true },
	{ "\xff", "\xff", true },
	{ "\xff", "\xc3\xbf", false },
	{ "\xfe", "\xff", false },
	{ "*\xa9", "\xc3\xa9", false },

	/* Nothing. */
	{ "", "a", false },
	{ "", "", false },
	{ "*", "", false },
	{ "**", "", false },
};

static void
matches_as_promised(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* In memory of its own, so that reading past it shows. */
		char *pattern = strdup(cases[i].pattern);
		char *path = strdup(cases[i].path);

		assert_true(pattern != NULL && path != NULL);
		if (glob_matches(pattern, path) != cases[i].match)
			fail_msg("%s on %s must be %d", pattern, path,
			    cases[i].match);
		free(path);
		free(pattern);
	}
}

/* The plain meaning, for short texts: try every way. */
static bool
try_all(const char *pattern, const char *path, bool at_beginning)
{
	if (*pattern == '\0')
		return *path == '\0';
	if (pattern[0] == '*' && pattern[1] == '*') {
		const char *rest = pattern + strspn(pattern, "*");
		bool folders = at_beginning && *rest == '/';

		for (size_t used = 0; used <= strlen(path); used++) {
			if (folders && used > 0 && path[used - 1] != '/')
				continue;
			if (try_all(folders ? rest + 1 : rest, path + used,
			    folders))
				return true;
		}
		return false;
	}
	if (*pattern == '*') {
		for (;; path++) {
			if (try_all(pattern + 1, path, false))
				return true;
			if (*path == '\0' || *path == '/')
				return false;
		}
	}
	if (*path == '\0')
		return false;
	if (*pattern == '?' ? *path == '/' : *pattern != *path)
		return false;
	return try_all(pattern + 1, path + 1, *pattern == '/');
}

static void
agrees_with_trying_everything(void **state)
{
	static const char pattern_letters[] = "ab/?**";
	static const char path_letters[] = "ab/";
	unsigned matches = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 40000; seed++) {
		unsigned char bits[16];
		char pattern[16] = "/", path[16] = "";
		bool expected;

		kit_random(bits, sizeof(bits), seed * 0x10001);
		for (size_t i = 0; i < 1u + bits[0] % 7; i++)
			pattern[i + 1] = pattern_letters[bits[i + 1] % 6];
		for (size_t i = 0; i < 1u + bits[15] % 6; i++)
			path[i] = path_letters[bits[i + 8] % 3];

		/* A slash at an end has a meaning of its own. */
		if (pattern[1] == '/' || pattern[strlen(pattern) - 1] == '/')
			continue;
		expected = try_all(pattern + 1, path, true);
		matches += expected;
		if (glob_matches(pattern, path) != expected)
			fail_msg("%s on %s must be %d", pattern, path,
			    expected);
	}
	assert_true(matches > 500);
}

/* These take ages where one way is tried after the other. */
static void
hostile_patterns_end(void **state)
{
	static char pattern[4097], path[4096];
	static const char *const pieces[] = { "*a", "**/", "**a", "*/",
	    "[a-b]*", "?*", "**", "[", "*[!b]" };

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		size_t length = strlen(pieces[i]), at = 0;

		while (at + length + 1 < sizeof(pattern)) {
			memcpy(pattern + at, pieces[i], length);
			at += length;
		}
		pattern[at++] = 'X';
		pattern[at] = '\0';
		assert_false(glob_matches(pattern, path));
	}
}

static void
too_long_patterns_match_nothing(void **state)
{
	char *pattern = malloc(5000);

	(void)state;
	assert_non_null(pattern);
	memset(pattern, '*', 4999);
	pattern[4999] = '\0';
	assert_false(glob_matches(pattern, "a"));
	pattern[4097] = '\0';
	assert_false(glob_matches(pattern, "a"));
	pattern[4096] = '\0';
	assert_true(glob_matches(pattern, "a"));
	memset(pattern, 'a', 4096);
	pattern[4095] = '/';
	assert_false(glob_matches(pattern, "a"));
	free(pattern);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_as_promised),
		cmocka_unit_test(agrees_with_trying_everything),
		cmocka_unit_test(hostile_patterns_end),
		cmocka_unit_test(too_long_patterns_match_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
