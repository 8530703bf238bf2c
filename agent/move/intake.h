#ifndef MOVE_INTAKE_H
#define MOVE_INTAKE_H

#include <stddef.h>
#include <stdint.h>

#include "move/sender.h"

struct error;
struct files;
struct format_report;

/*
 * The reading half of an upload: each byte once, front to back, cut and
 * hashed, and handed to the sender.
 */
struct intake;

/**
 * intake_new(sender, target, error):
 * For chunks of ${target} bytes.  NULL when out of memory.
 */
struct intake *intake_new(struct sender *sender, uint64_t target,
    struct error *error);

/**
 * intake_file(intake, files, index, report, extents, error):
 * Read file ${index} of the checkpoint, cut by the records of ${report}
 * (NULL: none).  Return 0, or -1: CAUSE_CHANGED, ...
 */
int intake_file(struct intake *intake, struct files *files, size_t index,
    const struct format_report *report, struct sender_extents *extents,
    struct error *error);

/**
 * intake_companion(intake, files, index, extents, error):
 * The same for a companion: cut every 64 KiB, so that a log that grew at its
 * end is found again but for its tail.
 */
int intake_companion(struct intake *intake, struct files *files, size_t index,
    struct sender_extents *extents, struct error *error);

/**
 * intake_free(intake):
 * Behave consistently with free(NULL).
 */
void intake_free(struct intake *intake);

#endif
