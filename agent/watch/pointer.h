#ifndef WATCH_POINTER_H
#define WATCH_POINTER_H

#include <stddef.h>

struct error;
struct map;

/**
 * pointer_read(map, node):
 * Which unit the link or text file ${node} names, or SIZE_MAX.  Paths from
 * other machines are taken by their last component.
 */
size_t pointer_read(const struct map *map, size_t node);

#endif
