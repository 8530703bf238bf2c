#ifndef MOVE_DURABLE_H
#define MOVE_DURABLE_H

#include <stdbool.h>
#include <stddef.h>

struct error;

/*
 * Making many files or folders durable on this disk without waiting for it
 * once for each.
 */

/**
 * durable_at_once(folder, count):
 * Whether one durable_flush of the file system of ${folder} (a descriptor
 * opened before anything was written) is to be preferred to ${count} fsyncs,
 * and as strong: see there for where it is.
 */
bool durable_at_once(int folder, size_t count);

/**
 * durable_flush(folder):
 * syncfs(2).  Return 0, or -1 with errno.
 */
int durable_flush(int folder);

/* Folders of which entries changed. */
struct durable_folders {
	struct durable_folder {
		const char *path;	/* of what lies in it; the caller's */
		size_t length;		/* of the folder's part of that */
	} *rows;
	size_t count;
	size_t capacity;
};

/**
 * durable_note(folders, path, error):
 * An entry ${path} was made or replaced, and perhaps folders on the way to it.
 * ${path} is kept.  Return 0 or -1 (out of memory).
 */
int durable_note(struct durable_folders *folders, const char *path,
    struct error *error);

/**
 * durable_sync(folders, top, error):
 * Make all that was noted durable, beneath the directory ${top}: each folder
 * once, or all at once.  Nothing is noted any more.  Return 0 or -1.
 */
int durable_sync(struct durable_folders *folders, int top,
    struct error *error);

/**
 * durable_free(folders):
 * Free what it holds.
 */
void durable_free(struct durable_folders *folders);

#endif
