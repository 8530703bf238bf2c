#ifndef STORE_GATHERING_H
#define STORE_GATHERING_H

#include <stddef.h>

struct backend;
struct error;
struct manifest;

/*
 * Manifests fetched from the store, several at a time.  A manifest never
 * changes, so what was fetched once is kept for the next look.  One thread.
 */
struct gathering;

/**
 * gathering_new(backend):
 * An empty one, or NULL when out of memory.
 */
struct gathering *gathering_new(struct backend *backend);

/**
 * gathering_fetch(gathering, keys, count, failures):
 * Get and read the manifests ${keys} that are not there yet.  failures[i] says
 * what happened to keys[i]: class ERROR_NONE when it is there;
 * CAUSE_NOT_FOUND when the store does not have it; ERROR_DAMAGED,
 * CAUSE_FEATURE; others.  Waits.
 */
void gathering_fetch(struct gathering *gathering, const char *const *keys,
    size_t count, struct error *failures);

/**
 * gathering_take(gathering, key):
 * The manifest ${key}, from now on the caller's; NULL when it is not there.
 */
struct manifest *gathering_take(struct gathering *gathering, const char *key);

/**
 * gathering_give(gathering, manifest):
 * Give it back for a later look; freed when memory is out.  NULL is fine.
 */
void gathering_give(struct gathering *gathering, struct manifest *manifest);

/**
 * gathering_free(gathering):
 * Behave consistently with free(NULL).
 */
void gathering_free(struct gathering *gathering);

#endif
