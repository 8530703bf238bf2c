#ifndef NOTICE_OUTBOX_H
#define NOTICE_OUTBOX_H

#include <stdbool.h>

struct error;
struct notice;

/*
 * The notices that wait for the agent.  What does not fit is refused, and its
 * sender offers it again at the next poll: nothing is lost, nothing grows.
 * Any thread.
 */
struct outbox;

struct outbox *outbox_new(struct error *error);

/**
 * outbox_put(outbox, notice):
 * Add a copy.  Return 0, or -1 when there is no room now.
 */
int outbox_put(struct outbox *outbox, const struct notice *notice);

/**
 * outbox_take(outbox, notice):
 * The oldest into ${notice}; false when there is none.
 */
bool outbox_take(struct outbox *outbox, struct notice *notice);

/**
 * outbox_fd(outbox):
 * Readable while something is inside.
 */
int outbox_fd(struct outbox *outbox);

/**
 * outbox_free(outbox):
 * Behave consistently with free(NULL).
 */
void outbox_free(struct outbox *outbox);

#endif
