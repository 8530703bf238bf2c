#ifndef UNIT_STORE_DELAYING_H
#define UNIT_STORE_DELAYING_H

#include <stdbool.h>
#include <stddef.h>

#include "store/backend.h"

/*
 * A store in memory whose every request does what a test decides: it is
 * applied and answered, applied and not answered, applied later than its
 * sender knows, applied twice, or never.  PUTs replace, as in S3.
 */

enum delaying_fate {
	DELAYING_ANSWERED,	/* applied, and the sender hears of it */
	DELAYING_UNANSWERED,	/* applied, but the sender gets no answer */
	DELAYING_LATER,		/* no answer; applied by delaying_release */
	DELAYING_TWICE,		/* applied and answered, and once more later */
	DELAYING_NEVER,		/* no answer, and never applied */
	DELAYING_DENIED		/* answered: not allowed */
};

/* A GET or a LIST (`key` is its prefix) that gets no answer fails. */
enum delaying_operation { DELAYING_PUT, DELAYING_GET, DELAYING_DELETE,
    DELAYING_LIST };

typedef enum delaying_fate (*delaying_decide)(void *context,
    enum delaying_operation operation, const char *key);

/**
 * delaying_new(decide, context):
 * An empty store; ${decide} (NULL: answer all) is called on the thread of the
 * request before it is applied, with no lock held.
 */
struct backend *delaying_new(delaying_decide decide, void *context);

/**
 * delaying_late(backend): how many requests wait to be applied.
 * delaying_release(backend, index): apply that one.
 * delaying_forget(backend, index): it is lost after all.
 */
size_t delaying_late(struct backend *backend);
void delaying_release(struct backend *backend, size_t index);
void delaying_forget(struct backend *backend, size_t index);

/**
 * delaying_changes(backend): how often something was applied.
 * delaying_count(backend): how many objects there are.
 * delaying_key(backend, index): the key of one, in order.
 * delaying_get(backend, key, length): an object's bytes; NULL: not there.
 * delaying_set(backend, key, data, length): put one there; NULL: remove it.
 */
size_t delaying_changes(struct backend *backend);
size_t delaying_count(struct backend *backend);
const char *delaying_key(struct backend *backend, size_t index);
const char *delaying_get(struct backend *backend, const char *key,
    size_t *length);
void delaying_set(struct backend *backend, const char *key, const void *data,
    size_t length);

#endif
