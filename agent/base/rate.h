#ifndef BASE_RATE_H
#define BASE_RATE_H

#include <stdint.h>

struct error;

/*
 * A limit on bytes a second, shared by threads: a token bucket of one fifth
 * of a second.  Every function but rate_free may be called from any thread.
 */
struct rate;

/**
 * rate_new(limit, error):
 * At most ${limit} bytes a second, 0: no limit.  NULL when out of memory.
 */
struct rate *rate_new(uint64_t limit, struct error *error);

/**
 * rate_set(rate, limit):
 * Change the limit; 0 lifts it.
 */
void rate_set(struct rate *rate, uint64_t limit);

/**
 * rate_allow(rate, wanted):
 * How many of ${wanted} bytes may pass now (possibly 0).  Takes them from the
 * bucket.
 */
uint64_t rate_allow(struct rate *rate, uint64_t wanted);

/**
 * rate_wait(rate):
 * Nanoseconds until some bytes may pass; 0 when some may now.  Once nothing is
 * left this is the time for a quarter of the bucket (50 ms), so that nobody
 * wakes up for a byte.
 */
uint64_t rate_wait(struct rate *rate);

/**
 * rate_passed(rate):
 * How many bytes were allowed so far: what was handed to the wire, long
 * before any of it is acknowledged.
 */
uint64_t rate_passed(struct rate *rate);

/**
 * rate_free(rate):
 * Behave consistently with free(NULL).
 */
void rate_free(struct rate *rate);

#endif
