#ifndef LIFE_BATCH_H
#define LIFE_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "store/backend.h"

struct batch;

/* One request of a batch; its `done` and `context` are the batch's. */
struct batch_item {
	struct backend_request request;
	uint64_t ended;		/* clock_monotonic() */
	struct batch *batch;
};

/**
 * batch_run(backend, items, count):
 * Submit ${count} PUTs or DELETEs at once and wait until all have ended.
 */
void batch_run(struct backend *backend, struct batch_item *items,
    size_t count);

/**
 * batch_failure(items, count):
 * The first item that failed, or NULL.
 */
const struct batch_item *batch_failure(const struct batch_item *items,
    size_t count);

#endif
