#ifndef MOVE_STAGING_H
#define MOVE_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sha256.h"
#include "move/selection.h"

struct error;
struct restore;

/*
 * `.ckptsync-restore-<id>/` inside the target:
 *
 *	new/		what is being made, under the paths it will have
 *	old/		what it has replaced, until it is removed
 *	journal		one line "<sha256> <length>" for each run of bytes that
 *			was written to its place and had this hash
 *
 * The id comes from the manifests that are wanted, so that the next run of a
 * restore that was cut finds it.  The journal is believed only after hashing
 * what it claims, with the folder locked.
 */
struct staging;

#define STAGING_PREFIX ".ckptsync-restore-"

/**
 * staging_find(restore, target, error):
 * The folder of an earlier run, or NULL: there is none (${error} has class
 * ERROR_NONE) or it cannot be used.  Only for looking.
 */
struct staging *staging_find(const struct restore *restore, int target,
    struct error *error);

/**
 * staging_make(restore, target, error):
 * The folder, made when missing, locked against a second restore.  NULL with
 * CAUSE_EXISTS when another one is at work, CAUSE_DENIED, ...
 */
struct staging *staging_make(const struct restore *restore, int target,
    struct error *error);

/**
 * staging_new(staging) / staging_old(staging):
 * Descriptors of the folders in it; they stay the staging's.
 */
int staging_new(const struct staging *staging);
int staging_old(const struct staging *staging);

/**
 * staging_note(staging, digest, length):
 * Write to the journal that bytes with this hash are in place.  A journal
 * that cannot be written costs fetching again, no more.
 */
void staging_note(struct staging *staging, const uint8_t digest[SHA256_SIZE],
    uint64_t length);

/**
 * staging_check(staging, selection, hashing, error):
 * Set `staged` of every extent of the parts that have to be made: whether the
 * journal claims that it is in new/ and, with ${hashing}, whether that is
 * true.  Without, it is an estimate.  Return 0 or -1.
 */
int staging_check(const struct staging *staging, struct selection *selection,
    bool hashing, struct error *error);

/**
 * staging_prune(staging, selection, error):
 * Remove whatever lies in new/ and is no file or folder of ${selection}.
 */
int staging_prune(struct staging *staging, const struct selection *selection,
    struct error *error);

/**
 * staging_remove(staging):
 * Remove the folder from the disk; what cannot be removed is logged.
 */
void staging_remove(struct staging *staging);

/**
 * staging_sweep(target):
 * Remove the folders of all other restores that no process works in.
 */
void staging_sweep(int target);

/**
 * staging_free(staging):
 * Close it; the folder stays.  Behave consistently with free(NULL).
 */
void staging_free(struct staging *staging);

#endif
