#ifndef MOVE_MATCH_H
#define MOVE_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct checkpoint;
struct error;
struct manifest;
struct manifest_entry;
struct manifest_extent;

/*
 * Local files compared with manifests by content.
 */

/**
 * match_checkpoint(folder, checkpoint, manifests, count, which, error):
 * Set *${which} to the first of ${manifests} that has the same name and the
 * same files with the same bytes as ${checkpoint} in the directory
 * ${folder} (a descriptor); SIZE_MAX: none.  Reads only files whose sizes
 * fit, each at most once for all manifests.  Return 0 or -1.
 */
int match_checkpoint(int folder, const struct checkpoint *checkpoint,
    struct manifest *const *manifests, size_t count, size_t *which,
    struct error *error);

/**
 * match_file(fd, manifest, entry, error):
 * Whether the open file holds exactly the bytes of ${entry}: 1 yes, 0 no,
 * -1 error.
 */
int match_file(int fd, const struct manifest *manifest,
    const struct manifest_entry *entry, struct error *error);

/* What a file may be. */
struct match_candidate {
	const struct manifest *manifest;
	const struct manifest_entry *entry;	/* a MANIFEST_FILE of it */
	bool fits;		/* in: ask about it; out: it holds these bytes */
};

/**
 * match_candidates(fd, candidates, count, error):
 * Read the open file once and clear `fits` of every candidate whose bytes it
 * does not hold.  Return 0, or -1 when it could not be read.
 */
int match_candidates(int fd, struct match_candidate *candidates, size_t count,
    struct error *error);

/**
 * match_digest(manifest, extent):
 * The SHA-256 of an extent's bytes; NULL when the manifest does not say it.
 */
const uint8_t *match_digest(const struct manifest *manifest,
    const struct manifest_extent *extent);

/**
 * match_content(manifest, entry):
 * The MANIFEST_FILE entry whose bytes ${entry} has (itself, or what a hard
 * link names); NULL when it is no file.
 */
const struct manifest_entry *match_content(const struct manifest *manifest,
    const struct manifest_entry *entry);

/**
 * match_entry(manifest, path):
 * The same for the checkpoint's file ${path}.
 */
const struct manifest_entry *match_entry(const struct manifest *manifest,
    const char *path);

#endif
