#ifndef NOTICE_WALL_TIME_H
#define NOTICE_WALL_TIME_H

#include <stdint.h>
#include <time.h>

/*
 * The times that clouds state, in all their spellings.
 */

/**
 * wall_time_parse(text, zone, when):
 * Read a time into ${when}: RFC 3339; "2018-08-18 12:05:33" (Tencent), which
 * lies ${zone} seconds east of Greenwich; "21 Jan 2019 09:00:43 GMT" (AWS's
 * maintenance, the day with or without a leading zero), also with the day of
 * the week before it (RFC 1123, Azure).  White space around it is fine.
 * Return 0, or -1 when it is no time.
 */
int wall_time_parse(const char *text, int zone, struct timespec *when);

/**
 * wall_time_left(when):
 * Nanoseconds from now until ${when}, below 0 when it is past; bounded to a
 * hundred years.
 */
int64_t wall_time_left(struct timespec when);

/**
 * wall_time_deadline(when):
 * The clock_monotonic() of ${when}, bounded to 0..15 minutes from now, so that
 * neither a wrong clock nor an old time can break a countdown.
 */
uint64_t wall_time_deadline(struct timespec when);

#endif
