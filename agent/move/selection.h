#ifndef MOVE_SELECTION_H
#define MOVE_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "move/restore.h"
#include "store/manifest.h"

/*
 * What a restore is about: the things that are put into place, each by one
 * rename, and the entries that have to be made for them.
 */

enum item_kind {
	ITEM_FILE,
	ITEM_LINK,
	ITEM_TREE,	/* a checkpoint's whole directory, nothing else in it */
	ITEM_FOLDER	/* one that is made when it is missing */
};

enum item_phase { PHASE_CHECKPOINT, PHASE_COMPANION, PHASE_POINTER };

struct item {
	enum item_kind kind;
	enum item_phase phase;
	const char *path;	/* in the target; the manifest's */
	size_t step;		/* index into plan->steps */
	size_t first;		/* its parts: parts[first..first + count) */
	size_t count;
	bool settled;		/* it is in place already, or stays as it is */
	bool exists;		/* something else is in its place */
};

/* Where the bytes of an extent come from. */
struct origin {
	enum { ORIGIN_STORE, ORIGIN_LOCAL } from;
	bool staged;		/* they are in staging already; what a plan
				 * says is only believed until a run knows */
	uint32_t donor;		/* LOCAL: index into donors */
	uint64_t offset;	/* LOCAL: in that file */
};

struct part {
	const struct manifest *manifest;
	const struct manifest_entry *entry;	/* what it is called and is */
	const struct manifest_entry *content;	/* FILE: whose bytes; else NULL */
	size_t twin;		/* hard link to that part; SIZE_MAX: none */
	struct origin *origins;	/* one for each extent of content */
};

struct selection {
	struct item *items;
	size_t item_count;
	size_t item_capacity;
	struct part *parts;
	size_t part_count;
	size_t part_capacity;
	char **donors;		/* paths of local files whose bytes are used */
	size_t donor_count;
};

/**
 * selection_make(restore, plan, error):
 * Apply what is wanted and the globs; looks at no disk.  Adds the steps to
 * ${plan}.  The manifests must outlive it.  NULL with error.
 */
struct selection *selection_make(const struct restore *restore,
    struct restore_plan *plan, struct error *error);

/**
 * selection_paths(selection, first, count, error):
 * The paths of ${count} parts from ${first} on, sorted for selection_has; the
 * caller frees the array.  NULL when out of memory.
 */
const char **selection_paths(const struct selection *selection, size_t first,
    size_t count, struct error *error);

/**
 * selection_has(paths, count, path):
 * Whether ${path} is one of them.
 */
bool selection_has(const char *const *paths, size_t count, const char *path);

/**
 * selection_donor(selection, path, number, error):
 * Note a local file as a donor; its number in *${number}.  Return 0 or -1.
 */
int selection_donor(struct selection *selection, const char *path,
    uint32_t *number, struct error *error);

/**
 * selection_free(selection):
 * Behave consistently with free(NULL).
 */
void selection_free(struct selection *selection);

#endif
