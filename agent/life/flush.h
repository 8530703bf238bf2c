#ifndef LIFE_FLUSH_H
#define LIFE_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * "Make durable what is complete now": scan, let files that have just been
 * written settle, then wait until all that was found is durable.  A small
 * state machine without clock or threads, one for each that asks: `push`, the
 * end of the trainer, a deadline.
 */

/* How long files that are not complete yet are waited for: the longest
 * settling time of DESIGN 6 and a little. */
#define FLUSH_SETTLE_SECONDS 12

struct flush {
	enum { FLUSH_IDLE, FLUSH_SCANNING, FLUSH_SETTLING, FLUSH_DRAINING,
	    FLUSH_OVER } state;
	uint64_t token;		/* of the scan that is waited for */
	uint64_t settle_until;	/* clock_monotonic() */
	uint64_t again;		/* FLUSH_SETTLING: when to scan again */
	uint64_t mark;		/* order of the last candidate that counts */
};

/* How things stand. */
struct flush_facts {
	uint64_t last;		/* order of the last candidate added */
	uint64_t pending;	/* lowest `since` of those waiting or in flight,
				 * UINT64_MAX: none */
	bool unsettled;		/* something there is not complete yet */
};

/**
 * flush_begin(flush, now, token):
 * Start; a scan with ${token} was asked for.
 */
void flush_begin(struct flush *flush, uint64_t now, uint64_t token);

/**
 * flush_scanned(flush, now, token, facts):
 * The scan with ${token} is over.
 */
void flush_scanned(struct flush *flush, uint64_t now, uint64_t token,
    const struct flush_facts *facts);

/**
 * flush_wants_scan(flush, now):
 * Whether the next scan is due: then ask for one and call flush_begin_scan.
 */
bool flush_wants_scan(const struct flush *flush, uint64_t now);
void flush_begin_scan(struct flush *flush, uint64_t token);

/**
 * flush_over(flush, facts):
 * Whether all that counts has been dealt with.
 */
bool flush_over(struct flush *flush, const struct flush_facts *facts);

#endif
