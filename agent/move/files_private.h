#ifndef MOVE_FILES_PRIVATE_H
#define MOVE_FILES_PRIVATE_H

#include "move/files.h"

/* What files.c and snapshot.c share. */

struct files_one {
	struct files *files;
	const struct checkpoint_entry *entry;
	int fd;			/* -1: opened for each read */
	uint64_t base;		/* where it begins in the snapshot */
	struct source source;
};

struct files {
	int folder;
	enum files_kind kind;
	size_t count;
	int snapshot;		/* -1: none */
	struct files_one *all;
};

/**
 * files_get(one, own, error):
 * A descriptor of the file itself (never of the snapshot); *${own}: the
 * caller closes it.
 */
int files_get(const struct files_one *one, bool *own, struct error *error);

#endif
