#ifndef STORE_MANIFEST_PATHS_H
#define STORE_MANIFEST_PATHS_H

struct error;
struct manifest;

/**
 * manifest_paths_check(manifest, name, error):
 * Look at all paths of a manifest together (entries, companions and pointers
 * are restored into one directory): distinct, none beneath a link or a file,
 * link targets inside the directory, hard links to an earlier file of the
 * same list.  Every path is harmless by itself already.  Return 0, or -1 with
 * ERROR_DAMAGED.
 */
int manifest_paths_check(const struct manifest *manifest, const char *name,
    struct error *error);

#endif
