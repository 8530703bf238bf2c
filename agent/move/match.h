#ifndef MOVE_MATCH_H
#define MOVE_MATCH_H

#include <stddef.h>
#include <stdint.h>

struct checkpoint;
struct error;
struct manifest;
struct manifest_entry;

/*
 * Local files compared with manifests by content.
 */

/**
 * match_checkpoint(folder, checkpoint, manifests, count, which, error):
 * Set *${which} to the first of ${manifests} that has the same name and the
 * same files with the same bytes as ${checkpoint} in the directory
 * ${folder} (a descriptor); SIZE_MAX: none.  Reads only files whose sizes
 * fit, each at most once for all manifests.  Return 0 or -1.
 */
int match_checkpoint(int folder, const struct checkpoint *checkpoint,
    struct manifest *const *manifests, size_t count, size_t *which,
    struct error *error);

/**
 * match_file(fd, manifest, entry, error):
 * Whether the open file holds exactly the bytes of ${entry}: 1 yes, 0 no,
 * -1 error.
 */
int match_file(int fd, const struct manifest *manifest,
    const struct manifest_entry *entry, struct error *error);

#endif
