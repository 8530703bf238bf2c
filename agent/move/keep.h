#ifndef MOVE_KEEP_H
#define MOVE_KEEP_H

#include <stddef.h>

/**
 * keep_limit():
 * How many files one transfer may keep open: half of the descriptors that the
 * process may have (the rest is for connections and everybody else), at least
 * 64 and at most 4096.
 */
size_t keep_limit(void);

#endif
