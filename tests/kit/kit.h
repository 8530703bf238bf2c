#ifndef TESTS_KIT_H
#define TESTS_KIT_H

/* cmocka wants these four before its own header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"

/*
 * What the unit tests share.
 */

/**
 * kit_scratch():
 * A fresh empty folder for the running test, made beneath $TMPDIR; the caller
 * frees the name and calls kit_scratch_remove.
 */
char *kit_scratch(void);
void kit_scratch_remove(char *folder);

/**
 * kit_write_file(path, data, length):
 * Make a file with its parent folders; the test fails if that cannot be done.
 */
void kit_write_file(const char *path, const void *data, size_t length);

/**
 * kit_read_file(path, length):
 * The whole file in fresh memory, NUL added; the test fails if it is missing.
 */
char *kit_read_file(const char *path, size_t *length);

/**
 * kit_random(data, length, seed):
 * Fill ${data} with bytes that depend on ${seed} alone.
 */
void kit_random(void *data, size_t length, uint64_t seed);

/* Fail with the error's text when a call did not return 0. */
#define assert_ok(call, error) do { \
	if ((call) != 0) { \
		char kit_text[ERROR_TEXT_SIZE]; \
		fail_msg("%s: %s", #call, error_text(&(error), kit_text)); \
	} \
} while (0)

#endif
