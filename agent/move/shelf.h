#ifndef MOVE_SHELF_H
#define MOVE_SHELF_H

#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "base/source.h"

struct error;

/*
 * Small pieces of several files that will be one chunk.  The bytes stay where
 * they are: a shelf remembers where, hashes them as they come, and reads them
 * again as one source.
 */
struct shelf;

/**
 * shelf_new(error):
 * An empty shelf, or NULL.
 */
struct shelf *shelf_new(struct error *error);

/**
 * shelf_add(shelf, source, offset, data, length, error):
 * Put ${length} (> 0) bytes on it, which are ${data} now and lie in ${source}
 * at ${offset}; ${source} must outlive the shelf.  Return 0 or -1.
 */
int shelf_add(struct shelf *shelf, const struct source *source,
    uint64_t offset, const void *data, size_t length, struct error *error);

/**
 * shelf_size(shelf):
 * How many bytes are on it.
 */
uint64_t shelf_size(const struct shelf *shelf);

/**
 * shelf_close(shelf, digest):
 * No more is added; write the hash of it all.
 */
void shelf_close(struct shelf *shelf, uint8_t digest[SHA256_SIZE]);

/**
 * shelf_source(shelf):
 * A closed shelf as a source; any number of threads.
 */
const struct source *shelf_source(const struct shelf *shelf);

/**
 * shelf_free(shelf):
 * Behave consistently with free(NULL).
 */
void shelf_free(struct shelf *shelf);

#endif
