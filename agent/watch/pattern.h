#ifndef WATCH_PATTERN_H
#define WATCH_PATTERN_H

#include <stdbool.h>

/*
 * The patterns of the layout table: `#` is one or more digits, `*` any run of
 * characters but the slash, `?` one character but the slash; everything else
 * means itself.  `|` separates alternatives.
 */

/**
 * pattern_matches(patterns, name):
 * Whether one of ${patterns} matches all of ${name}.
 */
bool pattern_matches(const char *patterns, const char *name);

#endif
