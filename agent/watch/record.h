#ifndef WATCH_RECORD_H
#define WATCH_RECORD_H

#include <stddef.h>

#include "format/checkpoint.h"

struct error;
struct map;

/**
 * record_checkpoint(map, unit, error):
 * The unit of that number as a checkpoint that stands alone, without state.
 * NULL when out of memory.
 */
struct checkpoint *record_checkpoint(const struct map *map, size_t unit,
    struct error *error);

/**
 * record_surroundings(map, error):
 * What lies around the checkpoints.  NULL when out of memory.
 */
struct surroundings *record_surroundings(const struct map *map,
    struct error *error);

#endif
