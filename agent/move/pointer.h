#ifndef MOVE_POINTER_H
#define MOVE_POINTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "base/source.h"
#include "format/checkpoint.h"

struct error;

/*
 * Pointers as they were at one moment, in memory.
 *
 * A trainer goes on while we upload: when a checkpoint is committed, the
 * pointer may name the next one already, which is not durable and never may
 * be.  Restored, such a pointer would send the trainer to something that is
 * not there - and some then start from zero.  So pointers are read when an
 * upload begins, too, and the version that names its checkpoint is recorded.
 */

/* What is larger is no pointer. */
#define POINTER_MAXIMUM ((size_t)65536)

struct pointer {
	struct checkpoint_entry entry;	/* owned; size and times as read */
	char *data;			/* ENTRY_FILE: its bytes and a NUL */
	struct source_memory memory;
	struct source source;		/* the same as a source */
};

struct pointers {
	struct pointer *all;
	size_t count;
};

/**
 * pointer_read_all(folder, seen, level, pointers, error):
 * Read the pointers of ${seen} as they are now; what cannot be read or is too
 * large is left out with a line of ${level} in the log.  Return 0, or -1 when
 * out of memory.
 */
int pointer_read_all(int folder, const struct surroundings *seen,
    enum log_level level, struct pointers *pointers, struct error *error);

/**
 * pointer_names(pointer, checkpoint):
 * Whether the link leads to ${checkpoint} or the text names it: by its last
 * component as a word, or by nothing but its step.
 */
bool pointer_names(const struct pointer *pointer,
    const struct checkpoint *checkpoint);

/**
 * pointer_find(pointers, path):
 * The one at ${path}, or NULL.
 */
struct pointer *pointer_find(const struct pointers *pointers,
    const char *path);

/**
 * pointer_free_all(pointers):
 * Free what ${pointers} holds.
 */
void pointer_free_all(struct pointers *pointers);

#endif
