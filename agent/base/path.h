#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buffer;
struct error;

/*
 * Paths and whole small files.
 */

/**
 * path_join(folder, name):
 * "folder/name" in fresh memory (the caller frees it), without doubling a
 * slash; ${name} alone when ${folder} is "" or ".".  NULL when out of memory.
 */
char *path_join(const char *folder, const char *name);

/**
 * path_is_harmless(path):
 * Whether a path from foreign data may be used beneath a directory of ours:
 * relative, not empty, no empty, "." or ".." component, no NUL (it is a
 * string), no component over 255 bytes, at most 4095 bytes in all.
 */
bool path_is_harmless(const char *path);

/**
 * path_base(path):
 * The last component, inside ${path}.
 */
const char *path_base(const char *path);

/**
 * path_matches(pattern, path):
 * Whether ${path} (relative to the directory) matches the glob ${pattern}:
 * `*` and `?` and `[...]` within a component, `**` across components, a
 * pattern that ends in `/` means everything beneath.  A pattern without a
 * slash matches the last component at any depth, as in .gitignore; one slash
 * at its beginning or inside binds it to the directory.  A backslash takes
 * the meaning from the character behind it.  Takes time in proportion to both
 * lengths, however hostile; a pattern of more than 4096 bytes matches nothing.
 */
bool path_matches(const char *pattern, const char *path);

/**
 * path_read_at(folder_fd, path, buffer, error):
 * Add the whole file to ${buffer}; its limit bounds the size.  ${folder_fd}
 * as for openat.  Return 0 or -1.
 */
int path_read_at(int folder_fd, const char *path, struct buffer *buffer,
    struct error *error);

/**
 * path_write(path, data, length, mode, error):
 * Replace the file ${path} by ${length} bytes, whole or not at all: temporary
 * name beside it, fsync, rename, fsync of the directory.  ${mode} as for
 * open: the umask is taken away.  Return 0 or -1.
 */
int path_write(const char *path, const void *data, size_t length, mode_t mode,
    struct error *error);

/**
 * path_make_folders(path, mode, error):
 * Make ${path} and its missing parents.  One that exists is fine.
 */
int path_make_folders(const char *path, mode_t mode, struct error *error);

/**
 * path_remove_tree(folder_fd, path, error):
 * Remove ${path} and all beneath it, never following a link.  Not there is
 * fine.
 */
int path_remove_tree(int folder_fd, const char *path, struct error *error);

/**
 * path_sync_folder(path, error):
 * fsync the directory ${path}.
 */
int path_sync_folder(const char *path, struct error *error);

/**
 * path_write_all(fd, data, length):
 * write(2) until all is written.  Return 0, or -1 with errno set.
 */
int path_write_all(int fd, const void *data, size_t length);

/**
 * path_write_all_at(fd, data, length, offset):
 * pwrite(2) until all is written.  Return 0, or -1 with errno set.
 */
int path_write_all_at(int fd, const void *data, size_t length, off_t offset);

#endif
