#ifndef STORE_STRENGTH_H
#define STORE_STRENGTH_H

#include <stdbool.h>

/**
 * strength_is_weak(endpoint):
 * Whether the object store behind the URL ${endpoint} (NULL: AWS) is one of
 * those that may answer a LIST from the past (DESIGN 5, weak stores).  Goes by
 * host name alone: `--store` says it where a name cannot tell.
 */
bool strength_is_weak(const char *endpoint);

#endif
