#ifndef NOTICE_AWS_H
#define NOTICE_AWS_H

#include "notice/lookout.h"

struct ledger;

/*
 * Amazon EC2 (reference 2): the metadata server is polled on one connection,
 * one item after the other.
 */
extern const struct lookout_cloud aws_cloud;

/* What is polled; the numbers are the documents of the ledger. */
enum aws_item {
	AWS_SPOT,		/* spot/instance-action */
	AWS_LIFECYCLE,		/* autoscaling/target-lifecycle-state */
	AWS_REBALANCE,		/* events/recommendations/rebalance */
	AWS_MAINTENANCE,	/* events/maintenance/scheduled */
	AWS_ITEMS
};

/**
 * aws_read(ledger, item, text, length):
 * Tell ${ledger} what the answer ${text} (followed by a NUL) to ${item} says.
 * Return 0, or -1 when it is no answer to that.
 */
int aws_read(struct ledger *ledger, enum aws_item item, const char *text,
    size_t length);

#endif
