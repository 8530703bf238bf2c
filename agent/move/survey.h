#ifndef MOVE_SURVEY_H
#define MOVE_SURVEY_H

#include "move/selection.h"

/*
 * What lies in the target, compared with what is wanted.
 */

/**
 * survey_make(restore, target, selection, error):
 * Look at the place of every item beneath ${target} (a descriptor): is it
 * there already, is something else there that may be replaced, which bytes
 * of it are useful.  Changes nothing.  -1 with CAUSE_EXISTS when something
 * complete that the remote does not know is in the way, CAUSE_UNSUPPORTED for
 * a mount point in the way.
 */
int survey_make(const struct restore *restore, int target,
    struct selection *selection, struct error *error);

#endif
