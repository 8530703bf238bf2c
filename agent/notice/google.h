#ifndef NOTICE_GOOGLE_H
#define NOTICE_GOOGLE_H

#include "notice/lookout.h"

struct ledger;

/*
 * Google Cloud (reference 3): two keys, each waited for on a connection of its
 * own.
 */
extern const struct lookout_cloud google_cloud;

/* The keys; the numbers are the documents of the ledger. */
enum google_key {
	GOOGLE_PREEMPTED,		/* instance/preempted */
	GOOGLE_MAINTENANCE,		/* instance/maintenance-event */
	GOOGLE_KEYS
};

/**
 * google_read(ledger, key, text, window):
 * Tell ${ledger} what the value ${text} of ${key} says; a preempted machine
 * goes ${window} nanoseconds from now.  Return 0, or -1 when it is no value of
 * that key.
 */
int google_read(struct ledger *ledger, enum google_key key, const char *text,
    uint64_t window);

#endif
