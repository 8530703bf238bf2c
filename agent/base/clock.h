#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * Time.  Countdowns use the monotonic clock, in nanoseconds; the wall clock
 * is only for what people and servers read.  A test can replace all clocks by
 * one that it turns by hand; then clock_sleep returns when the test has
 * turned the clock far enough.
 */

#define CLOCK_SECOND UINT64_C(1000000000)
#define CLOCK_MILLISECOND UINT64_C(1000000)
#define CLOCK_NEVER UINT64_MAX

/**
 * clock_monotonic():
 * Nanoseconds since some start, never going back, standing still in a suspend.
 */
uint64_t clock_monotonic(void);

/**
 * clock_boot():
 * The same, but running on in a suspend (CLOCK_BOOTTIME): the difference to
 * clock_monotonic grows by the time that the machine was frozen.
 */
uint64_t clock_boot(void);

/**
 * clock_wall():
 * The time of day (CLOCK_REALTIME).
 */
struct timespec clock_wall(void);

/**
 * clock_sleep(nanoseconds):
 * Sleep that long on the monotonic clock.
 */
void clock_sleep(uint64_t nanoseconds);

/**
 * clock_slice(nanoseconds, busy):
 * How long a wait on descriptors, which knows the real time only, may last
 * before its caller looks at the clock again: ${nanoseconds}; some
 * milliseconds while a test has replaced the clocks, more of them when
 * ${busy}: an answer is under way that should be taken before the test turns
 * the clock again.
 */
uint64_t clock_slice(uint64_t nanoseconds, bool busy);

/* "2026-11-30T17:46:00.123Z" and the NUL. */
#define CLOCK_TEXT_SIZE 32

/**
 * clock_text(when, text):
 * Write ${when} as RFC 3339 UTC with milliseconds and return ${text}.
 */
char *clock_text(struct timespec when, char text[CLOCK_TEXT_SIZE]);

/**
 * clock_parse(text, when):
 * Read an RFC 3339 time (with any offset, fraction optional) into ${when}.
 * Return 0, or -1 when ${text} is not one.
 */
int clock_parse(const char *text, struct timespec *when);

/**
 * clock_test_start(wall):
 * Replace all clocks by one that stands still at ${wall}; monotonic and boot
 * time start at 1000 s.  For tests only, before threads start.
 */
void clock_test_start(struct timespec wall);

/**
 * clock_test_turn(nanoseconds):
 * Turn the test clock forward and wake the sleepers that are due.
 */
void clock_test_turn(uint64_t nanoseconds);

/**
 * clock_test_settle():
 * Wait, in real time, until the one thread that waits by clock_slice has done
 * what was due after the last turn: it has looked at the clock twice.  Return
 * false when it has not within five seconds.
 */
bool clock_test_settle(void);

/**
 * clock_test_stop():
 * Go back to the real clocks.
 */
void clock_test_stop(void);

#endif
