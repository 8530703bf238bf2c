#ifndef STORE_MANIFEST_CHECK_H
#define STORE_MANIFEST_CHECK_H

struct error;
struct manifest;

/**
 * manifest_check(manifest, name, error):
 * Whether ${manifest} keeps every rule that manifest_read promises and that
 * can be told from the structure alone: extents tile, paths are harmless,
 * distinct and lie beneath no link or file, link targets stay inside, keys
 * are ours.  The reader refuses what fails it, the writer never writes it.
 * ${name} is the object in the error.  Return 0, or -1 with ERROR_DAMAGED.
 */
int manifest_check(const struct manifest *manifest, const char *name,
    struct error *error);

#endif
