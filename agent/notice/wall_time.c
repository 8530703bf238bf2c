#include "notice/wall_time.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

#define LONGEST_TEXT 64
#define LONGEST_COUNTDOWN (15 * 60 * CLOCK_SECOND)
#define HUNDRED_YEARS (INT64_C(100) * 366 * 86400)

/* ${text} without white space around it; -1 when that is no short text. */
static int
trim(const char *text, char trimmed[LONGEST_TEXT])
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	length = strlen(text);
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	if (length == 0 || length >= LONGEST_TEXT)
		return -1;
	memcpy(trimmed, text, length);
	trimmed[length] = '\0';
	return 0;
}

/* "2018-08-18 12:05:33": RFC 3339's with a space and without the zone. */
static int
parse_without_zone(const char *text, int zone, struct timespec *when)
{
	char other[LONGEST_TEXT + 2];

	if (strlen(text) != 19 || text[10] != ' ')
		return -1;
	snprintf(other, sizeof(other), "%sZ", text);
	other[10] = 'T';
	if (clock_parse(other, when) != 0)
		return -1;
	when->tv_sec -= zone;
	return 0;
}

static int
month_number(const char *name)
{
	static const char *const names[] = { "Jan", "Feb", "Mar", "Apr",
	    "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };

	for (int i = 0; i < 12; i++)
		if (strcasecmp(name, names[i]) == 0)
			return i + 1;
	return -1;
}

/* "21 Jan 2019 09:00:43 GMT", whatever the day of the week says before it. */
static int
parse_with_month(const char *text, struct timespec *when)
{
	const char *comma = strchr(text, ',');
	char day[3], month[4], year[5], time[9], zone[4], other[32];
	int end = -1;

	if (comma != NULL)
		text = comma + 1;
	if (sscanf(text, " %2[0-9] %3[A-Za-z] %4[0-9] %8[0-9:] %3[A-Za-z]%n",
	    day, month, year, time, zone, &end) != 5 || end < 0 ||
	    text[end] != '\0')
		return -1;
	if (month_number(month) < 0 ||
	    (strcasecmp(zone, "GMT") != 0 && strcasecmp(zone, "UTC") != 0))
		return -1;
	snprintf(other, sizeof(other), "%s-%02d-%s%sT%sZ", year,
	    month_number(month), day[1] == '\0' ? "0" : "", day, time);
	return clock_parse(other, when);
}

int
wall_time_parse(const char *text, int zone, struct timespec *when)
{
	char trimmed[LONGEST_TEXT];

	if (trim(text, trimmed) != 0)
		return -1;
	if (clock_parse(trimmed, when) == 0 ||
	    parse_without_zone(trimmed, zone, when) == 0)
		return 0;
	return parse_with_month(trimmed, when);
}

int64_t
wall_time_left(struct timespec when)
{
	struct timespec now = clock_wall();
	int64_t seconds;

	/* Years of both are at most 9999: the difference fits. */
	seconds = (int64_t)when.tv_sec - (int64_t)now.tv_sec;
	if (seconds > HUNDRED_YEARS)
		seconds = HUNDRED_YEARS;
	if (seconds < -HUNDRED_YEARS)
		seconds = -HUNDRED_YEARS;
	return seconds * (int64_t)CLOCK_SECOND +
	    (int64_t)when.tv_nsec - (int64_t)now.tv_nsec;
}

uint64_t
wall_time_deadline(struct timespec when)
{
	int64_t left = wall_time_left(when);

	if (left < 0)
		left = 0;
	if ((uint64_t)left > LONGEST_COUNTDOWN)
		left = (int64_t)LONGEST_COUNTDOWN;
	return clock_monotonic() + (uint64_t)left;
}
