#ifndef WATCH_POST_H
#define WATCH_POST_H

#include <stddef.h>

struct error;
struct watch_event;

/*
 * The events on their way from the watching thread to its owner.  Never
 * blocks, and holds at most one version of each checkpoint: a newer one
 * drives out the older that nobody took.  Any thread.
 */
struct post;

/* Notes that nobody takes are dropped above this number. */
#define POST_NOTES_MAXIMUM 256

/**
 * post_new(error):
 * An empty one, or NULL.
 */
struct post *post_new(struct error *error);

/**
 * post_fd(post):
 * Readable while there are events.
 */
int post_fd(const struct post *post);

/**
 * post_put(post, event):
 * Add ${event}, which is taken over.
 */
void post_put(struct post *post, struct watch_event *event);

/**
 * post_take(post):
 * The oldest event, the caller's; NULL when there is none.
 */
struct watch_event *post_take(struct post *post);

/**
 * post_free(post):
 * Free it with all events.  Behave consistently with free(NULL).
 */
void post_free(struct post *post);

#endif
