#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>

/**
 * glob_matches(pattern, path):
 * What path_matches (path.h) promises.  The time is bounded by the product of
 * both lengths, whatever the pattern; one of more than 4096 bytes matches
 * nothing.
 */
bool glob_matches(const char *pattern, const char *path);

/**
 * glob_is_sound(pattern):
 * Whether ${pattern} is short enough to match anything, and every '[' of it is
 * closed or has a backslash before it: an open one would stand for itself,
 * which is not what its writer wants.
 */
bool glob_is_sound(const char *pattern);

#endif
