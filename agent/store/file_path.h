#ifndef STORE_FILE_PATH_H
#define STORE_FILE_PATH_H

#include <stdbool.h>

#include "store/key.h"

struct error;

/*
 * Where the objects of a file:// store lie beneath its folder.  A key is its
 * path, but for chunks, which are spread over folders by the first two digits
 * of their name: chunks/<attempt>/<2 digits>/<sha256>.  Names that start with
 * a dot are no objects.
 */

#define FILE_PATH_SIZE (KEY_SIZE + 8)

/* Where half-written objects lie, in the store's folder. */
#define FILE_PATH_TEMPORARY ".temporary"

/**
 * file_path_of(key, path, error):
 * Write the path of ${key} into ${path}.  Return 0, or -1 when ${key} uses
 * other characters than [a-z0-9/.-] or is no path.
 */
int file_path_of(const char *key, char path[FILE_PATH_SIZE],
    struct error *error);

/**
 * file_path_parent(path, parent):
 * Write the folder of ${path} into ${parent}, "." for the store's own, and
 * return it.
 */
char *file_path_parent(const char *path, char parent[FILE_PATH_SIZE]);

/**
 * file_path_holds_chunks(path):
 * Whether the folder ${path} is one whose files are spread.
 */
bool file_path_holds_chunks(const char *path);

/**
 * file_path_make_parents(root, path, error):
 * Make the missing folders above ${path}.  Return 0 or -1.
 */
int file_path_make_parents(int root, const char *path, struct error *error);

/**
 * file_path_check_root(root, error):
 * Whether the store's folder is still there.  Return 0, or -1 with
 * CAUSE_UNREACHABLE.
 */
int file_path_check_root(int root, struct error *error);

/**
 * file_path_is_absent(root, path, error):
 * Whether ${path} is not there, from reading its folders anew and not from
 * stat, which an NFS client may answer from memory.  Return 1: it is absent;
 * 0: a folder lists it; -1: a folder could not be read.
 */
int file_path_is_absent(int root, const char *path, struct error *error);

/**
 * file_path_open(root, path, flags, error):
 * Open what is there.  Return the descriptor, or -1: CAUSE_NOT_FOUND only when
 * file_path_is_absent says so.
 */
int file_path_open(int root, const char *path, int flags,
    struct error *error);

/**
 * file_path_failure(error, number, path, what):
 * Fill ${error} from errno: as error_set_errno, and CAUSE_UNREACHABLE for
 * faults that may pass (a server that does not answer).  Return -1.
 */
int file_path_failure(struct error *error, int number, const char *path,
    const char *what);

#endif
