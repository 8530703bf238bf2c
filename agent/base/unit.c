#include "base/unit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

struct unit {
	const char *name;
	uint64_t size;
};

static const struct unit durations[] = {
	{ "ms", CLOCK_MILLISECOND },
	{ "s", CLOCK_SECOND },
	{ "m", 60 * CLOCK_SECOND },
	{ "h", 3600 * CLOCK_SECOND },
	{ "d", 86400 * CLOCK_SECOND },
	{ NULL, 0 },
};

static const struct unit sizes[] = {
	{ "B", 1 },
	{ "KiB", UINT64_C(1) << 10 },
	{ "MiB", UINT64_C(1) << 20 },
	{ "GiB", UINT64_C(1) << 30 },
	{ "TiB", UINT64_C(1) << 40 },
	{ "KB", UINT64_C(1000) },
	{ "kB", UINT64_C(1000) },
	{ "MB", UINT64_C(1000000) },
	{ "GB", UINT64_C(1000000000) },
	{ "TB", UINT64_C(1000000000000) },
	{ NULL, 0 },
};

/* Both kinds are used as signed numbers further on (off_t, sums of times). */
#define LARGEST ((uint64_t)INT64_MAX)

enum outcome { FINE, NOT_A_NUMBER, NO_UNIT, UNKNOWN_UNIT, TOO_LARGE };

/*
 * Digits, perhaps a point and more digits, perhaps one space, a unit.  The
 * fraction is exact to 9 digits, which is finer than any unit needs.
 */
static enum outcome
read_quantity(const char *text, const struct unit *unit, uint64_t *value)
{
	unsigned __int128 whole = 0, total;
	uint64_t fraction = 0, scale = UINT64_C(1000000000), place = scale;

	if (!isdigit((unsigned char)*text))
		return NOT_A_NUMBER;
	for (; isdigit((unsigned char)*text); text++) {
		if (whole <= LARGEST)
			whole = whole * 10 + (unsigned)(*text - '0');
	}
	if (*text == '.') {
		text++;
		if (!isdigit((unsigned char)*text))
			return NOT_A_NUMBER;
		for (; isdigit((unsigned char)*text); text++) {
			place /= 10;
			fraction += place * (unsigned)(*text - '0');
		}
	}
	if (*text == ' ')
		text++;
	if (*text == '\0')
		return NO_UNIT;
	while (unit->name != NULL && strcmp(unit->name, text) != 0)
		unit++;
	if (unit->name == NULL)
		return UNKNOWN_UNIT;
	total = whole * unit->size +
	    (unsigned __int128)fraction * unit->size / scale;
	if (total > LARGEST)
		return TOO_LARGE;
	*value = (uint64_t)total;
	return FINE;
}

static int
refuse(enum outcome outcome, const char *text, const char *kind,
    const char *cure, struct error *error)
{
	static const char *const reasons[] = {
		[NOT_A_NUMBER] = "it does not begin with a number",
		[NO_UNIT] = "its unit is missing",
		[UNKNOWN_UNIT] = "its unit is unknown",
		[TOO_LARGE] = "it is too large",
	};

	error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
	    "\"%.100s\" is not a %s: %s", text, kind, reasons[outcome]);
	return error_cure(error, "%s", cure);
}

int
unit_parse_duration(const char *text, uint64_t *nanoseconds,
    struct error *error)
{
	enum outcome outcome = read_quantity(text, durations, nanoseconds);

	if (outcome != FINE)
		return refuse(outcome, text, "duration",
		    "write it as 500ms, 25s, 5m, 2h or 7d", error);
	return 0;
}

int
unit_parse_size(const char *text, uint64_t *bytes, struct error *error)
{
	enum outcome outcome = read_quantity(text, sizes, bytes);

	if (outcome != FINE)
		return refuse(outcome, text, "size",
		    "write it as 500B, 100KiB, 64MiB or 1.5GB", error);
	return 0;
}

int
unit_parse_number(const char *text, uint64_t minimum, uint64_t maximum,
    uint64_t *number, struct error *error)
{
	const char *digit = text;
	uint64_t value = 0;

	for (; isdigit((unsigned char)*digit); digit++) {
		uint64_t next = (uint64_t)(*digit - '0');

		if (value > (UINT64_MAX - next) / 10)
			break;
		value = value * 10 + next;
	}
	if (digit == text || *digit != '\0' || value < minimum ||
	    value > maximum)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "\"%.100s\" is not a whole number from %ju to %ju", text,
		    (uintmax_t)minimum, (uintmax_t)maximum);
	*number = value;
	return 0;
}

char *
unit_size_text(uint64_t bytes, char text[UNIT_TEXT_SIZE])
{
	static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB",
	    "EiB" };
	size_t count = sizeof(names) / sizeof(names[0]);

	if (bytes < 1024) {
		snprintf(text, UNIT_TEXT_SIZE, "%ju B", (uintmax_t)bytes);
		return text;
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t unit = UINT64_C(1) << (10 * (i + 1));
		unsigned parts = i < 2 ? 10 : 100;
		uint64_t rounded = (uint64_t)(((unsigned __int128)bytes *
		    parts + unit / 2) / unit);

		/* 1023.96 KiB would be written as 1024.0: use the next unit. */
		if (rounded >= 1024 * parts && i + 1 < count)
			continue;
		snprintf(text, UNIT_TEXT_SIZE, "%ju.%0*u %s",
		    (uintmax_t)(rounded / parts), i < 2 ? 1 : 2,
		    (unsigned)(rounded % parts), names[i]);
		break;
	}
	return text;
}

char *
unit_duration_text(uint64_t nanoseconds, char text[UNIT_TEXT_SIZE])
{
	uint64_t seconds = nanoseconds / CLOCK_SECOND;
	unsigned tenths = (unsigned)(nanoseconds % CLOCK_SECOND /
	    (CLOCK_SECOND / 10));

	if (seconds < 10)
		snprintf(text, UNIT_TEXT_SIZE, "%u.%u s", (unsigned)seconds,
		    tenths);
	else if (seconds < 60)
		snprintf(text, UNIT_TEXT_SIZE, "%u s", (unsigned)seconds);
	else if (seconds < 3600)
		snprintf(text, UNIT_TEXT_SIZE, "%um%02us",
		    (unsigned)(seconds / 60), (unsigned)(seconds % 60));
	else if (seconds < 86400)
		snprintf(text, UNIT_TEXT_SIZE, "%uh%02um",
		    (unsigned)(seconds / 3600),
		    (unsigned)(seconds / 60 % 60));
	else
		snprintf(text, UNIT_TEXT_SIZE, "%jud%02uh",
		    (uintmax_t)(seconds / 86400),
		    (unsigned)(seconds / 3600 % 24));
	return text;
}
