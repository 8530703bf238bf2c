#ifndef FORMAT_CHECKPOINT_H
#define FORMAT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/role.h"

struct stat;

/*
 * A checkpoint as it lies in the user's directory: its files, what they are,
 * and how far it can be trusted.  The watcher makes them, the uploader reads
 * them.  A checkpoint is immutable once made; it owns all its memory and may
 * be handed from thread to thread.
 */

/* What tells that a file is still the one that was looked at (DESIGN 6.4). */
struct identity {
	dev_t device;
	ino_t inode;
	uint64_t size;
	struct timespec modified;
	struct timespec changed;
};

/**
 * identity_of(status):
 * The identity in a stat result.
 */
struct identity identity_of(const struct stat *status);

/**
 * identity_same(a, b):
 * Whether nothing changed.
 */
bool identity_same(const struct identity *a, const struct identity *b);

enum entry_kind { ENTRY_FILE, ENTRY_FOLDER, ENTRY_LINK };

struct checkpoint_entry {
	char *path;		/* relative to the watched directory */
	enum entry_kind kind;
	mode_t mode;		/* permission bits */
	struct identity identity;
	char *target;		/* ENTRY_LINK: what it says, relative, inside the directory */
	bool follow;		/* ENTRY_FILE: it is a link that points outside; take its content */
	size_t same_as;		/* index of an earlier entry with the same inode
				 * (hard link) in the same list, or own index */
};

enum checkpoint_state {
	CHECKPOINT_WAITING,	/* not complete yet; reason says what is missing */
	CHECKPOINT_COMPLETE,
	CHECKPOINT_TORN		/* provably not whole, and nobody is writing it */
};

struct checkpoint {
	char *name;		/* relative path: "last.pt", "checkpoint-500" */
	char *series;		/* "last.pt", "checkpoint-*", "best*" */
	char layout[32];	/* word of the layout table: "hf-trainer", "file" */
	enum role role;
	bool has_step;
	uint64_t step;
	enum checkpoint_state state;
	bool unreadable;	/* WAITING: something of it cannot be read */
	bool unfinished;	/* WAITING: something that it needs is not there */
	bool proven;		/* some known structure shows that it is whole */
	bool hollow;		/* complete, but bytes amid a file of it were
				 * never written; never proven */
	char reason[256];	/* why it is complete, torn or waiting */
	struct timespec completed;	/* wall time of its last change */
	uint64_t order;		/* number in the order of completion, from 1 */

	/* Folders before what is in them; sorted by path otherwise. */
	struct checkpoint_entry *entries;
	size_t entry_count;
	uint64_t size;		/* bytes in files, hard links once */
};

/*
 * What lies around the checkpoints at one moment: pointers, companions, and
 * which checkpoints are there (DESIGN 2, 5, 6).  Plain data that owns all its
 * memory.
 */
struct surroundings {
	struct checkpoint_entry *companions;
	size_t companion_count;
	struct checkpoint_entry *pointers;
	size_t pointer_count;
	char **pointed;		/* names of checkpoints that a pointer names */
	size_t pointed_count;
	char **present;		/* names of checkpoints that lie there, in any state */
	size_t present_count;
};

/**
 * surroundings_free(surroundings):
 * Free it and all it holds.  Behave consistently with free(NULL).
 */
void surroundings_free(struct surroundings *surroundings);

/**
 * checkpoint_copy(checkpoint):
 * A deep copy, or NULL when out of memory.
 */
struct checkpoint *checkpoint_copy(const struct checkpoint *checkpoint);

/**
 * checkpoint_same(a, b):
 * Whether both have the same name and the same entries with the same
 * identities: nothing was written since.  Of a folder only its place and mode
 * count, of a link what it says: trainers touch both without changing them.
 */
bool checkpoint_same(const struct checkpoint *a, const struct checkpoint *b);

/**
 * checkpoint_free(checkpoint):
 * Behave consistently with free(NULL).
 */
void checkpoint_free(struct checkpoint *checkpoint);

#endif
