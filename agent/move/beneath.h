#ifndef MOVE_BENEATH_H
#define MOVE_BENEATH_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Files beneath a directory, by relative paths that are hostile until proven:
 * no ".." and no link on the way or at the end can lead out of it (openat2
 * where the kernel has it, else component by component).  These functions
 * leave errno to their callers inside the room: ELOOP or ENOTDIR where a link
 * lies in the way.
 */

/**
 * beneath_open(folder, path, flags, mode):
 * openat(2) without following any link.  Adds O_CLOEXEC.  Return the
 * descriptor, or -1 with errno.
 */
int beneath_open(int folder, const char *path, int flags, mode_t mode);

/**
 * beneath_parent(folder, path, make):
 * A descriptor (O_PATH) of the directory that holds ${path}; with ${make},
 * missing directories are made.  Return it, or -1 with errno.
 */
int beneath_parent(int folder, const char *path, bool make);

/**
 * beneath_status(folder, path, status):
 * lstat(2).  Return 0, or -1 with errno.
 */
int beneath_status(int folder, const char *path, struct stat *status);

/**
 * beneath_link(folder, path):
 * What the symbolic link says, in fresh memory; NULL with errno.
 */
char *beneath_link(int folder, const char *path);

#endif
