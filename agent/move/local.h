#ifndef MOVE_LOCAL_H
#define MOVE_LOCAL_H

#include "move/selection.h"

struct error;
struct truth;

/*
 * What is known of the files in the target: which of them the remote has, and
 * which bytes of them need not be fetched.
 */
struct local;

/**
 * local_new(truth, target, selection, error):
 * Nothing known yet.  The arguments must outlive it.  NULL when out of memory.
 */
struct local *local_new(const struct truth *truth, int target,
    struct selection *selection, struct error *error);

/**
 * local_compare(local, path, manifest, content, error):
 * Read the regular file ${path}, unless its size fits nothing: 1 when it has
 * the bytes of ${content}, 0 when not, -1 when it could not be read.  Notes
 * whether another valid checkpoint has it.
 */
int local_compare(struct local *local, const char *path,
    const struct manifest *manifest, const struct manifest_entry *content,
    struct error *error);

/**
 * local_may_replace(local, path, error):
 * Whether nothing is lost with the regular file ${path}: the remote has it,
 * or it is empty or provably torn.  1, 0 or -1.
 */
int local_may_replace(struct local *local, const char *path,
    struct error *error);

/**
 * local_search(local, path, manifest, content, error):
 * Look into a file that is not ${content} for extents of it at their places.
 */
int local_search(struct local *local, const char *path,
    const struct manifest *manifest, const struct manifest_entry *content,
    struct error *error);

/**
 * local_resolve(local):
 * Let every part that has to be made take what was found in local files.
 */
void local_resolve(struct local *local);

/**
 * local_free(local):
 * Behave consistently with free(NULL).
 */
void local_free(struct local *local);

#endif
