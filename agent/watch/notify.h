#ifndef WATCH_NOTIFY_H
#define WATCH_NOTIFY_H

#include <stdbool.h>

struct error;
struct identity;

/*
 * inotify over a whole tree.  It gives hints only: that something changed,
 * never what.  Watches are added while a scan walks the tree, on each folder
 * before its names are read, so nothing falls between the two.
 * One thread at a time.
 */
struct notify;

/* What notify_read found; bits. */
#define NOTIFY_CHANGED 1	/* a name came, went, moved, or was closed */
#define NOTIFY_MODIFIED 2	/* somebody is writing */
#define NOTIFY_OVERFLOW 4	/* the kernel dropped hints */

/**
 * notify_new(error):
 * A descriptor without watches, or NULL (the user's limit of instances).
 */
struct notify *notify_new(struct error *error);

/**
 * notify_fd(notify):
 * Readable while there are hints.
 */
int notify_fd(const struct notify *notify);

/**
 * notify_begin(notify):
 * A scan begins.
 */
void notify_begin(struct notify *notify);

/**
 * notify_enter(notify, folder, identity):
 * The scan is about to read the open ${folder}: see that it is watched.  For
 * struct view_guide.
 */
void notify_enter(void *notify, int folder, const struct identity *identity);

/**
 * notify_end(notify):
 * The scan is over: give up the watches of folders that it did not see.
 * Return 0 when every folder that it saw is watched, else an errno value;
 * ENOSPC: the user's limit of watches is reached.
 */
int notify_end(struct notify *notify);

/**
 * notify_await(notify, path):
 * The directory ${path} is not there: watch the folder in which the next
 * missing part of it would appear.  Return whether that is a new watch: then
 * look again, for it may have come in between.
 */
bool notify_await(struct notify *notify, const char *path);

/**
 * notify_read(notify):
 * Take all hints that are there.  Return the bits.
 */
unsigned notify_read(struct notify *notify);

/**
 * notify_drain(notify):
 * The same, after all hints that were caused before the call: a nameless file
 * of our own, somewhere else, is watched by the same descriptor, written to,
 * and its hint awaited.  Nothing is written into the watched tree.
 */
unsigned notify_drain(struct notify *notify);

/**
 * notify_free(notify):
 * Behave consistently with free(NULL).
 */
void notify_free(struct notify *notify);

#endif
