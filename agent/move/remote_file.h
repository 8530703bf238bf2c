#ifndef MOVE_REMOTE_FILE_H
#define MOVE_REMOTE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/source.h"

struct backend;
struct error;
struct manifest;

/*
 * The files of a checkpoint in the remote, as sources that are read by range:
 * for parsers, which look at few bytes.  Every byte is checked before it is
 * given: what shares its hash is fetched with it (ranges.h), so a piece of
 * 8 MiB costs 8 MiB however little of it is asked for.  What was fetched is
 * kept in a cache that all files share.
 */
struct remote_file_set;

/* What the cache holds at most: the first and the last piece of a file that was
 * cut without knowing what is in it, and small ones. */
#define REMOTE_FILE_CACHE ((size_t)20 << 20)

/**
 * remote_file_set_new(backend, manifest, cancel, fetched, error):
 * For the files of ${manifest}.  Adds what was fetched to *${fetched}.  All
 * must outlive it.  NULL when out of memory.
 */
struct remote_file_set *remote_file_set_new(struct backend *backend,
    const struct manifest *manifest, const _Atomic bool *cancel,
    _Atomic uint64_t *fetched, struct error *error);

/**
 * remote_file_source(set, entry):
 * Entry number ${entry} of the manifest, a file, as a source; valid as long as
 * the set.  One thread at a time for all sources of a set.
 */
const struct source *remote_file_source(struct remote_file_set *set,
    size_t entry);

/**
 * remote_file_cached(set, entry, offset, length):
 * What is in the cache of the bytes of ${entry} from ${offset} on: NULL when
 * the first one is not, and then *${length} (> 0) is cut to where the next
 * one is that is; else the bytes, *${length} cut to how many.  They stay until
 * a source of the set is read.
 */
const void *remote_file_cached(const struct remote_file_set *set,
    size_t entry, uint64_t offset, uint64_t *length);

/**
 * remote_file_set_free(set):
 * Behave consistently with free(NULL).
 */
void remote_file_set_free(struct remote_file_set *set);

#endif
