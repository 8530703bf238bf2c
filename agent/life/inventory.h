#ifndef LIFE_INVENTORY_H
#define LIFE_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "life/precedence.h"

struct error;
struct truth;
struct view;

/*
 * What lies in the directory, told apart by what the remote knows of it.
 */
struct inventory {
	struct inventory_item {
		const struct checkpoint *checkpoint;	/* the view's */
		const struct manifest *known;	/* the truth's; NULL: unknown */
		enum { INVENTORY_KNOWN, INVENTORY_NEWER, INVENTORY_OLDER } standing;
	} *items;		/* the complete ones */
	size_t count;
};

/**
 * inventory_take(folder, view, truth, inventory, error):
 * Compare every complete checkpoint in ${view} with the valid manifests of
 * ${truth} (NULL: there are none) by content.  The unknown ones are newer
 * until inventory_sort was called.  Return 0 or -1.
 */
int inventory_take(const char *folder, const struct view *view,
    const struct truth *truth, struct inventory *inventory,
    struct error *error);

/**
 * inventory_holds(inventory, manifest):
 * Whether ${manifest} lies here.
 */
bool inventory_holds(const struct inventory *inventory,
    const struct manifest *manifest);

/**
 * inventory_sort(inventory, precedence):
 * Tell which unknown ones are newer than the resume point and which are
 * older; what is only best or final is always newer.
 */
void inventory_sort(struct inventory *inventory,
    const struct precedence *precedence);

/**
 * inventory_resume(inventory, view, resume):
 * What a trainer goes on from.  Return the item to be used as it lies there,
 * or NULL when the remote's ${resume} has to be brought (or, when that is NULL
 * too, there is nothing at all).  An unknown newer one that is no more than
 * best or final does not count while ${resume} is there.
 */
const struct inventory_item *inventory_resume(
    const struct inventory *inventory, const struct view *view,
    const struct manifest *resume);

void inventory_free(struct inventory *inventory);

#endif
