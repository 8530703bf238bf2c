#ifndef WATCH_TOLD_H
#define WATCH_TOLD_H

#include <stdint.h>

#include "watch/watch.h"

struct error;
struct view;

/*
 * What was told of each checkpoint, so that each version is told once, and
 * none that is older than one of its series told before.
 */
struct told;

/**
 * told_new():
 * Nothing was told.  NULL when out of memory.
 */
struct told *told_new(void);

/**
 * told_update(told, view, tell, context):
 * Call ${tell} for all that ${view} has and that was not told: the complete
 * ones in the order of completion (they get their numbers), then torn, then
 * waiting; ${checkpoint} becomes the callee's.  Return 0, or -1 when memory
 * ran out: what was not told is told with the next view.
 */
int told_update(struct told *told, const struct view *view,
    void (*tell)(void *context, enum watch_kind kind,
    struct checkpoint *checkpoint), void *context);

/**
 * told_free(told):
 * Behave consistently with free(NULL).
 */
void told_free(struct told *told);

#endif
