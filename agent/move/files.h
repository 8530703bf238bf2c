#ifndef MOVE_FILES_H
#define MOVE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/source.h"
#include "format/checkpoint.h"

struct error;

/*
 * The files of a checkpoint, open for reading.  As many as the descriptor
 * limit allows stay open from the start to the end, so that a file that its
 * trainer deletes meanwhile can still be finished; the others are opened anew
 * for each read.  Reading may be done by any number of threads.
 */
struct files;

enum files_kind {
	FILES_FIXED,	/* a checkpoint's: must keep their identity */
	FILES_GROWING	/* companions: may grow, are taken up to the size seen
			 * first, and are opened only when they are read */
};

/**
 * files_open(folder, entries, count, kind, error):
 * The ENTRY_FILE entries (hard links once), opened without following a link
 * unless the entry says so.  FILES_FIXED: each must still have its identity,
 * now and whenever it is opened.  ${entries} must outlive it.  NULL with
 * CAUSE_CHANGED when one is gone or is another.
 */
struct files *files_open(int folder, const struct checkpoint_entry *entries,
    size_t count, enum files_kind kind, struct error *error);

/**
 * files_source(files, index):
 * Entry ${index} as a source; valid as long as ${files}.  May be read by
 * several threads.  A read that finds less than the size is CAUSE_CHANGED.
 */
const struct source *files_source(struct files *files, size_t index);

/**
 * files_check(files, index, error):
 * FILES_FIXED: whether the file is still as it was: 0, or -1 with CAUSE_CHANGED.  A file
 * that was unlinked but is still open here counts as unchanged when size and
 * mtime are (unlinking alone moves the ctime).
 */
int files_check(struct files *files, size_t index, struct error *error);

/**
 * files_check_all(files, error):
 * The same for every file, and for what links say.
 */
int files_check_all(struct files *files, struct error *error);

/**
 * files_snapshot(files, spool, cancel, how, error):
 * Take the bytes of all files as they are now into one unnamed file: by
 * reflink in the directory's own file system, else by copying into ${spool}
 * (NULL: the directory's file system), leaving room for the trainer's next
 * save.  From then on ${files} reads from it, and changes no longer matter.
 * *${how} is "reflink", "copy" or "copy in spool".  -1: CAUSE_CHANGED,
 * CAUSE_CANCELLED, or another cause: no snapshot can be made here, ${files}
 * are as they were.
 */
int files_snapshot(struct files *files, const char *spool,
    const _Atomic bool *cancel, const char **how, struct error *error);

/**
 * files_free(files):
 * Behave consistently with free(NULL).
 */
void files_free(struct files *files);

#endif
