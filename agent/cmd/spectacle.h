#ifndef CMD_SPECTACLE_H
#define CMD_SPECTACLE_H

#include <stdbool.h>

#include "move/progress.h"

struct error;

/**
 * spectacle_run(what, quiet, progress, work, context, error):
 * Call ${work} and return what it returns.  On a terminal it is on a thread
 * of its own, and a line shows how far ${progress} is with ${what}.
 */
int spectacle_run(const char *what, bool quiet,
    const struct progress *progress, int (*work)(void *context),
    void *context, struct error *error);

#endif
