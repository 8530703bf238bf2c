#ifndef STORE_FILE_COPY_H
#define STORE_FILE_COPY_H

#include <stdatomic.h>

#include "store/backend.h"

/*
 * The bytes of a file:// store in and out, in blocks, paced, and given up at
 * a deadline or when it is cancelled.
 */

#define FILE_COPY_BLOCK ((size_t)256 << 10)

/* One copy on one thread. */
struct file_copy {
	int root;
	struct backend_request *request;
	const atomic_bool *cancelled;
	void *block;		/* FILE_COPY_BLOCK bytes */
};

/**
 * file_copy_in(copy, path, error):
 * PUT: write the body under a temporary name, checking its hash, onto the
 * disk, and link it to ${path} without replacing what is there.  The name is
 * not durable yet (file_sync_name).  The same bytes being there is success,
 * others are CAUSE_EXISTS.  Return 0 or -1.
 */
int file_copy_in(const struct file_copy *copy, const char *path,
    struct error *error);

/**
 * file_copy_out(copy, path, error):
 * GET: give the wanted bytes of ${path} to the sink.  Return 0 or -1.
 */
int file_copy_out(const struct file_copy *copy, const char *path,
    struct error *error);

/**
 * file_copy_sweep(root):
 * Remove temporary files that their writer left behind: nobody holds their
 * lock, and they are a day old by the file system's own clock.  (Even if one
 * were still in use, its PUT would fail and nothing else.)  Best effort.
 */
void file_copy_sweep(int root);

#endif
