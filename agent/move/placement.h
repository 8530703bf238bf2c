#ifndef MOVE_PLACEMENT_H
#define MOVE_PLACEMENT_H

#include "move/selection.h"

struct error;
struct staging;

/**
 * placement_run(staging, target, selection, phase, error):
 * Put what was made for the items of ${phase} into place beneath the
 * directory ${target}, each by one rename (a directory that is there is
 * exchanged with the new one), then fsync each directory that changed.  What
 * was replaced goes to old/ in the staging; what is in place is `settled`.  -1:
 * CAUSE_UNSUPPORTED when a mount point is in the way, CAUSE_EXISTS when a
 * link is, ...
 */
int placement_run(struct staging *staging, int target,
    struct selection *selection, enum item_phase phase, struct error *error);

#endif
