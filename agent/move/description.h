#ifndef MOVE_DESCRIPTION_H
#define MOVE_DESCRIPTION_H

#include <stddef.h>

#include "move/sender.h"

struct checkpoint;
struct checkpoint_entry;
struct error;
struct format_report;
struct manifest;
struct manifest_entry;
struct upload;

/*
 * From what was read to a manifest.
 */

/* Names for parts, from the formats; more would make a manifest that is read
 * as a whole too long. */
#define DESCRIPTION_RECORDS_MAXIMUM 100000

/**
 * description_new(upload, extents, target, error):
 * A manifest of upload->checkpoint, whose entry i has the bytes
 * ${extents}[i]; no chunk table yet.  NULL when out of memory.
 */
struct manifest *description_new(const struct upload *upload,
    const struct sender_extents *extents, uint64_t target,
    struct error *error);

/**
 * description_entry(to, from, extents, error):
 * Fill a manifest's entry from one in the directory; a copy of ${extents}
 * (NULL: no bytes).  Return 0 or -1.
 */
int description_entry(struct manifest_entry *to,
    const struct checkpoint_entry *from, const struct sender_extents *extents,
    struct error *error);

/**
 * description_records(manifest, entry, report, error):
 * Take the records of ${report}, which belong to entry number ${entry}.
 * Beyond DESCRIPTION_RECORDS_MAXIMUM they are left out: they are a help, not
 * needed.  Return 0 or -1.
 */
int description_records(struct manifest *manifest, size_t entry,
    struct format_report *report, struct error *error);

#endif
