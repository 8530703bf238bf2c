#ifndef UNIT_STORE_SUITE_H
#define UNIT_STORE_SUITE_H

#include "kit/kit.h"

struct backend;

/*
 * The protocol on any store: the same tests for the store in memory, file://
 * and a real S3 server.  A program sets suite_open and runs suite_tests.
 */

/* An empty store of its own for each call; the caller frees it. */
extern struct backend *(*suite_open)(void);

#define SUITE_TESTS 8
extern const struct CMUnitTest suite_tests[SUITE_TESTS];

#endif
