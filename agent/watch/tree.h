#ifndef WATCH_TREE_H
#define WATCH_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "format/checkpoint.h"

struct error;
struct view_guide;
struct view_options;

/*
 * All that lies beneath a directory at one moment, by openat and fstatat:
 * no link is followed while walking, no file is opened.
 *
 * Nodes are in walking order: a folder, then all beneath it, names sorted.
 * Node 0 is the directory itself with the path "".
 */

enum tree_kind { TREE_FILE, TREE_FOLDER, TREE_LINK };

struct tree_node {
	char *path;		/* relative to the directory */
	const char *base;	/* its last component, in `path` */
	enum tree_kind kind;
	mode_t mode;		/* permission bits */
	struct identity identity;
	size_t parent;		/* node 0 is its own */
	size_t end;		/* behind the last node beneath it */
	bool left_out;		/* excluded: may serve as a marker, never content */
	bool follow;		/* TREE_FILE: a link to a file outside */
	bool remote;		/* on a file system whose changes others make */
	char *target;		/* TREE_LINK: relative, and stays inside */
	char *resolved;		/* TREE_LINK: the path it leads to in the end */
};

struct tree {
	int folder;		/* the directory, open; -1 when it is not there */
	char *real;		/* its path without links */
	struct tree_node *nodes;
	size_t count;
	size_t capacity;
	size_t *by_path;	/* all nodes, sorted by path */
	size_t folder_count;
	bool blind;		/* some of it is on such a file system */
	struct error *notes;	/* links and folders that were passed over */
	size_t note_count;
};

/* More than any training writes; a bound for memory. */
#define TREE_NODES_MAXIMUM ((size_t)1000000)
#define TREE_DEPTH_MAXIMUM 64
#define TREE_NOTES_MAXIMUM 64

/**
 * tree_scan(folder, options, guide, error):
 * Walk ${folder}.  ${options} says what is left out; an excluded folder is
 * not walked.  Not there: a tree without nodes.  NULL when it cannot be read,
 * holds more than TREE_NODES_MAXIMUM names, or memory ran out.
 */
struct tree *tree_scan(const char *folder, const struct view_options *options,
    const struct view_guide *guide, struct error *error);

/**
 * tree_find(tree, path):
 * The node of ${path}, or SIZE_MAX.
 */
size_t tree_find(const struct tree *tree, const char *path);

/**
 * tree_child(tree, folder, name):
 * The node of ${name} (which may hold slashes) beneath the node ${folder}, or
 * SIZE_MAX.
 */
size_t tree_child(const struct tree *tree, size_t folder, const char *name);

/**
 * tree_free(tree):
 * Behave consistently with free(NULL).
 */
void tree_free(struct tree *tree);

#endif
