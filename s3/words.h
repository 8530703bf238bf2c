#ifndef S3_WORDS_H
#define S3_WORDS_H

struct error;

/*
 * A command line taken apart into words as a POSIX shell would, without any
 * expansion: blanks separate, '...' and "..." keep, a backslash takes the
 * next byte as it is (in "..." only before " and \).
 */
struct words;

/**
 * words_split(text, error):
 * At least one word, at most 64.  NULL with ERROR_USAGE.
 */
struct words *words_split(const char *text, struct error *error);

/**
 * words_array(words):
 * The words with a NULL at the end, as execvp wants them.
 */
char *const *words_array(const struct words *words);

/**
 * words_free(words):
 * Behave consistently with free(NULL).
 */
void words_free(struct words *words);

#endif
