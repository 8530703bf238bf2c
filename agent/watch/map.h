#ifndef WATCH_MAP_H
#define WATCH_MAP_H

#include <stddef.h>

#include "watch/layout.h"
#include "watch/series.h"

struct error;
struct tree;

/*
 * The layout table applied to a tree: what in it is a checkpoint, a pointer,
 * a companion.  Refers to the tree, which must outlive it.
 */

/* A checkpoint as the layout sees it, before anything is proven. */
struct unit {
	const struct layout *layout;
	char *name;
	struct series series;
	size_t folder;		/* the node of the folder that holds it */
	size_t top;		/* its own folder, or SIZE_MAX: files */
	size_t *nodes;		/* what counts of it, in walking order */
	size_t count;
};

/* A link or small text that names a checkpoint. */
struct pointer {
	size_t node;
	size_t unit;		/* SIZE_MAX: names none of them */
};

struct map {
	const struct tree *tree;
	struct unit *units;
	size_t unit_count;
	size_t *owner;		/* per node: its unit, or one of these: */
	struct pointer *pointers;
	size_t pointer_count;
	size_t *companions;	/* nodes */
	size_t companion_count;
};

#define OWNER_NONE ((size_t)-1)
#define OWNER_IGNORED ((size_t)-2)	/* a passing file, or left out */
#define OWNER_COMPANION ((size_t)-3)
#define OWNER_POINTER ((size_t)-4)	/* may be one */

/**
 * map_make(tree, error):
 * Apply the table; reads the pointers.  NULL when out of memory.
 */
struct map *map_make(const struct tree *tree, struct error *error);

/**
 * map_unit(map, name):
 * The unit of that name, or SIZE_MAX.
 */
size_t map_unit(const struct map *map, const char *name);

/**
 * map_free(map):
 * Behave consistently with free(NULL).
 */
void map_free(struct map *map);

#endif
