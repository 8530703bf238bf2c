#ifndef WATCH_LAYOUT_H
#define WATCH_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/role.h"

struct tree;

/*
 * The layout table: how each trainer lays out a checkpoint, and when it is
 * complete (DESIGN 6).  layout.c has the rows and the reasons.
 */

/* How long nothing may have changed, besides the row's other conditions. */
enum layout_settle {
	SETTLE_NOT,
	SETTLE_MARKER,	/* files of other ranks may come (2 s) */
	SETTLE_KNOWN	/* nothing tells the end: quiet for 10 s */
};

/* All strings are patterns (pattern.h); NULL asks for nothing. */
struct layout {
	const char *word;

	/* What it is found by. */
	const char *name;	/* last component of the path */
	const char *holds;	/* one of these is there (a folder: beneath it;
				 * a group: beside it) */
	const char *unless;	/* none of these is */
	const char *title;	/* a group: the file that names it */
	const char *members;	/* a group: what belongs to it */

	/* When it is complete. */
	const char *needs[2];	/* one of each is there */
	const char *marker;	/* written last: the newest is not older than... */
	const char *before;	/* ...these (paths in it; NULL: all weights
				 * beside the marker) */
	const char *late;	/* ...but for these */
	const char *pointer;	/* a file beside it, which must name it, and is
				 * not older than `before` */
	enum layout_settle settle;
	const char *ready;	/* with one of these it need not settle */
	bool proves;		/* its marker is a proof by itself */
	bool temporary;		/* a name that says: still being written */
	bool final;		/* the end of a training */
};

/**
 * layout_of_folder(tree, folder):
 * The row that makes the folder (a node, not the top one) one checkpoint;
 * NULL: it is just a folder.
 */
const struct layout *layout_of_folder(const struct tree *tree, size_t folder);

/**
 * layout_of_file(path):
 * The row for a file on its own; NULL: it is no checkpoint.
 */
const struct layout *layout_of_file(const char *path);

/**
 * layout_group(index):
 * The rows for groups of files in one folder, in their order; NULL behind
 * the last.
 */
const struct layout *layout_group(size_t index);

/* Groups whose members share a beginning of their names. */
extern const struct layout layout_tensorflow;
extern const struct layout layout_composer_ranks;

/* Names of text files that name a checkpoint. */
#define LAYOUT_POINTERS "latest|last_checkpoint|checkpoint|" \
    "latest_checkpointed_iteration.txt|latest_ckpt_global_step.txt"

/**
 * layout_is_ignored(name):
 * Whether ${name} is that of a passing file: neither checkpoint nor
 * companion.
 */
bool layout_is_ignored(const char *name);

/**
 * layout_is_weights(name):
 * Whether a file of that name holds weights or other state of a training.
 */
bool layout_is_weights(const char *name);

/**
 * layout_holds(tree, folder, patterns):
 * Whether a name in the folder ${folder}, or in a folder of it (a pattern
 * with a slash), matches.
 */
bool layout_holds(const struct tree *tree, size_t folder,
    const char *patterns);

#endif
