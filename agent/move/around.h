#ifndef MOVE_AROUND_H
#define MOVE_AROUND_H

#include "store/writer.h"

struct error;
struct intake;
struct manifest;
struct sender;
struct upload;

/*
 * What lies around a checkpoint when it is committed: pointers and
 * companions.  They never fail a commit: what cannot be read, or changes
 * other than by growing, is left out with a line in the log.
 */
struct around;

/**
 * around_new(upload, error):
 * When the upload begins: read the pointers as they are now (pointer.h).
 * NULL when out of memory.
 */
struct around *around_new(struct upload *upload, struct error *error);

/**
 * around_take(around, error):
 * When all is read: ask upload->look for what is recorded.  When it fails,
 * every valid checkpoint counts as present and nothing is recorded.  Return 0,
 * or -1 when out of memory.
 */
int around_take(struct around *around, struct error *error);

/**
 * around_read_pointers(around, sender, error):
 * around_read_companions(around, intake, sender, error):
 * Hand their bytes to the sender.  Pointers are kept in memory and share
 * chunks with the checkpoint.  -1 only when the upload as a whole cannot go
 * on.  ${around} must outlive the sender.
 */
int around_read_pointers(struct around *around, struct sender *sender,
    struct error *error);
int around_read_companions(struct around *around, struct intake *intake,
    struct sender *sender, struct error *error);

/**
 * around_describe(around, sender, manifest, error):
 * Add to ${manifest} what was stored.  Return 0 or -1 (out of memory).
 */
int around_describe(struct around *around, const struct sender *sender,
    struct manifest *manifest, struct error *error);

/**
 * around_directory(around):
 * What retention wants to know; valid as long as ${around}.
 */
const struct writer_directory *around_directory(const struct around *around);

/**
 * around_free(around):
 * Behave consistently with free(NULL).
 */
void around_free(struct around *around);

#endif
