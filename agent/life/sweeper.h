#ifndef LIFE_SWEEPER_H
#define LIFE_SWEEPER_H

#include <stdint.h>

#include "base/error.h"

struct writer;

/*
 * A thread of its own that sends the deletes that are due and asks once a
 * minute whether a newer agent has taken over.  Neither ever delays an upload.
 */
struct sweeper;

/**
 * sweeper_start(writer, error):
 * Begin; ${writer} must outlive it.  NULL when there is no thread to be had.
 */
struct sweeper *sweeper_start(struct writer *writer, struct error *error);

/**
 * sweeper_fd(sweeper):
 * Readable when sweeper_superseded has something to say.
 */
int sweeper_fd(struct sweeper *sweeper);

/**
 * sweeper_superseded(sweeper, error):
 * Whether a newer agent has taken over, and then by whom, in ${error}.  Said
 * once.
 */
int sweeper_superseded(struct sweeper *sweeper, struct error *error);

/**
 * sweeper_stop(sweeper, until):
 * End the thread and free all, waiting until ${until} (clock_monotonic) for a
 * request that is on its way.  Return 0, or -1 when it is still running: then
 * nothing of it was freed, and the writer must stay too.  NULL is fine.
 */
int sweeper_stop(struct sweeper *sweeper, uint64_t until);

#endif
