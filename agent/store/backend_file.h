#ifndef STORE_BACKEND_FILE_H
#define STORE_BACKEND_FILE_H

#include <stdbool.h>

struct backend;
struct error;

/**
 * backend_file_open(path, create, error):
 * The store in the folder ${path} (absolute), or NULL.  With ${create} it is
 * made, with its parents, when it is missing; without, that is ERROR_NOTHING
 * and CAUSE_NOT_FOUND.  A FUSE mount of an object store is refused
 * (ERROR_USAGE), an NFS mount that may answer from memory is weak.
 *
 * man 5 ckptsync-format says how objects lie in the folder.  A PUT writes a
 * temporary file, syncs it, links it to its name without replacing, and is
 * answered when the name is on the disk too.
 */
struct backend *backend_file_open(const char *path, bool create,
    struct error *error);

#endif
