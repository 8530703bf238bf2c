#ifndef MOVE_DRAFT_H
#define MOVE_DRAFT_H

#include <stdbool.h>
#include <stdint.h>

struct error;

/*
 * A file while it is made: nobody sees it before it is whole and on the disk.
 * Where the file system can (O_TMPFILE) it has no name until then, so that
 * nothing is left behind by a process that was killed.
 */
struct draft;

/**
 * draft_new(path, error):
 * For a file that will be ${path}, empty, in the same directory, which is
 * there.  NULL with CAUSE_DENIED...
 */
struct draft *draft_new(const char *path, struct error *error);

/**
 * draft_reserve(draft, size, error):
 * Give it its size, and its room on the disk where that can be had.  Return
 * 0, or -1: CAUSE_NO_SPACE...
 */
int draft_reserve(struct draft *draft, uint64_t size, struct error *error);

/**
 * draft_fd(draft): the open file, for reading and writing; the draft's.
 */
int draft_fd(const struct draft *draft);

/**
 * draft_publish(draft, replace, error):
 * Write all to the disk and give it its name.  With ${replace} what has that
 * name goes; without, that is CAUSE_EXISTS.  Return 0 or -1.
 */
int draft_publish(struct draft *draft, bool replace, struct error *error);

/**
 * draft_free(draft):
 * What was not published is gone.  Behave consistently with free(NULL).
 */
void draft_free(struct draft *draft);

/**
 * draft_scratch(path, error):
 * A descriptor of a nameless empty file in the directory of ${path}, for
 * bytes that are needed only now; -1 with error.
 */
int draft_scratch(const char *path, struct error *error);

#endif
