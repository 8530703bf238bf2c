#ifndef NOTICE_CLOUD_H
#define NOTICE_CLOUD_H

#include <stdint.h>

#include "base/error.h"

struct lookout;
struct lookout_cloud;

/*
 * Which cloud this is: what the firmware says, else short probes of all at
 * once, again and again with growing pauses: no answer is never a lasting no.
 */
struct cloud_search;

struct cloud_search *cloud_new(struct lookout *lookout, struct error *error);

/**
 * cloud_step(search, found):
 * Go on.  Set *${found} when it is known.  Return when to be called again, on
 * clock_monotonic(), if no answer comes before.
 */
uint64_t cloud_step(struct cloud_search *search,
    const struct lookout_cloud **found);

/**
 * cloud_free(search):
 * Behave consistently with free(NULL).
 */
void cloud_free(struct cloud_search *search);

#endif
