#ifndef WATCH_RULE_H
#define WATCH_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "watch/layout.h"

struct map;

/* What the layout's row says of a unit (DESIGN 6.2), by names and times. */
struct rule {
	bool met;
	bool proves;		/* the marker is a proof by itself */
	enum layout_settle settle;
	char reason[200];	/* not met: what is missing */
};

/**
 * rule_check(map, unit):
 * Hold the row of the unit of that number against what is there.
 */
struct rule rule_check(const struct map *map, size_t unit);

#endif
