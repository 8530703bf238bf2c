#include "life/judgement.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/unit.h"
#include "life/finding.h"
#include "s3/client.h"

static json_t *
seconds(uint64_t nanoseconds)
{
	return json_real((double)nanoseconds / (double)CLOCK_SECOND);
}

static json_t *
integer(uint64_t number)
{
	return json_integer(number > INT64_MAX ? INT64_MAX :
	    (json_int_t)number);
}

/* How many nanoseconds ${bytes} take, bounded. */
static uint64_t
time_for(uint64_t bytes, uint64_t speed)
{
	unsigned __int128 time = (unsigned __int128)bytes * CLOCK_SECOND /
	    speed;

	return time > INT64_MAX ? INT64_MAX : (uint64_t)time;
}

const char *
judgement_cloud(const char *source)
{
	static const char *const names[][2] = {
		{ "aws", "AWS" }, { "google", "Google Cloud" },
		{ "azure", "Azure" }, { "alibaba", "Alibaba Cloud" },
		{ "tencent", "Tencent Cloud" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i][0], source) == 0)
			return names[i][1];
	return source;
}

void
judgement_fit(struct finding *finding, uint64_t bytes, uint64_t speed,
    uint64_t window, const char *source)
{
	uint64_t needed = time_for(bytes, speed);
	enum finding_state state = needed > window ? FINDING_WRONG :
	    needed > window / 5 * 4 ? FINDING_HINT : FINDING_OK;
	char size[UNIT_TEXT_SIZE], takes[UNIT_TEXT_SIZE];
	char gives[UNIT_TEXT_SIZE];

	unit_size_text(bytes, size);
	unit_duration_text(needed, takes);
	unit_duration_text(window, gives);
	finding_set(finding, state, "fit",
	    "a checkpoint of %s takes %s to go up; ", size, takes);
	if (source != NULL)
		finding_add(finding, "%s gives %s", judgement_cloud(source),
		    gives);
	else
		finding_add(finding, "after SIGTERM there are %s (--grace)",
		    gives);
	if (state == FINDING_WRONG)
		finding_cure(finding, "the last one would be lost at a notice: "
		    "save smaller checkpoints or fewer tensors, use a faster "
		    "way to the store%s", source != NULL &&
		    strcmp(source, "google") == 0 ? ", or ask for 120 s "
		    "(--preemption-notice-duration) and say --gcp-notice 120s"
		    : "");
	else if (state == FINDING_HINT)
		finding_cure(finding, "there is little to spare: a slower "
		    "moment of the network would cost the last one");
	finding_fact(finding, "checkpoint_bytes", integer(bytes));
	finding_fact(finding, "bytes_per_s", integer(speed));
	finding_fact(finding, "needed_s", seconds(needed));
	finding_fact(finding, "window_s", seconds(window));
}

void
judgement_clock(struct finding *finding, long long offset)
{
	uint64_t distance = offset < 0 ? -(uint64_t)offset : (uint64_t)offset;
	enum finding_state state = distance <= 2 ? FINDING_OK :
	    distance <= 10 ? FINDING_HINT : FINDING_WRONG;
	char text[UNIT_TEXT_SIZE];

	if (state == FINDING_OK) {
		finding_set(finding, state, "clock",
		    "agrees with the server's");
	} else {
		finding_set(finding, state, "clock",
		    "this machine's clock is %s %s the server's: a notice "
		    "that names a time of day will be misjudged by that",
		    unit_duration_text(distance < INT64_MAX / CLOCK_SECOND ?
		    distance * CLOCK_SECOND : INT64_MAX, text),
		    offset > 0 ? "behind" : "ahead of");
		finding_cure(finding, "set it, and keep it right: chrony or "
		    "systemd-timesyncd (timedatectl set-ntp true)");
	}
	finding_fact(finding, "server_ahead_s", json_integer(offset));
}

/* How long from ${now} to the end of the keys. */
static uint64_t
time_left(const struct s3_facts *facts, time_t now)
{
	if (facts->expires <= now)
		return 0;
	if ((uint64_t)(facts->expires - now) > INT64_MAX / CLOCK_SECOND)
		return INT64_MAX;
	return (uint64_t)(facts->expires - now) * CLOCK_SECOND;
}

static void
judge_end(struct finding *finding, const struct s3_facts *facts, time_t now)
{
	char text[UNIT_TEXT_SIZE];

	if (facts->expires == 0) {
		if (facts->temporary) {
			finding->state = FINDING_HINT;
			finding_add(finding, ": temporary ones whose end is "
			    "not known, and nobody renews them");
		} else {
			finding_add(finding, ", without an end");
		}
		return;
	}
	finding_add(finding, facts->expires <= now ? ": over" : ": for %s",
	    unit_duration_text(time_left(facts, now), text));
	if (facts->renewable) {
		finding_add(finding, ", renewed by itself");
	} else {
		finding->state = time_left(facts, now) <=
		    3600 * CLOCK_SECOND ? FINDING_WRONG : FINDING_HINT;
		finding_add(finding, ", and they cannot be renewed");
	}
}

void
judgement_credentials(struct finding *finding, const struct s3_facts *facts,
    time_t now)
{
	finding_set(finding, FINDING_OK, "credentials", "keys from %s",
	    facts->source);
	if (facts->keys_known)
		judge_end(finding, facts, now);
	if (finding->state != FINDING_OK)
		finding_cure(finding, "for a run that lasts longer use what "
		    "renews itself: the machine's or the container's role, "
		    "web identity, or a profile with credential_process");
	finding_fact(finding, "source", json_string(facts->source));
	finding_fact(finding, "renewed", json_boolean(facts->renewable));
	if (facts->expires != 0)
		finding_fact(finding, "left_s",
		    seconds(time_left(facts, now)));
}

/* What went wrong with watching ${folders} directories. */
static void
tell_refused(struct finding *finding, size_t folders,
    const struct judgement_limits *limits, int refused, uint64_t wanted)
{
	if (refused == JUDGEMENT_NO_INSTANCE) {
		finding_set(finding, FINDING_WRONG, "inotify",
		    "inotify cannot be used: %s is %" PRIu64 ", and this "
		    "user's programs have them all", limits->instances_name,
		    limits->instances);
		finding_cure(finding, "sysctl %s=%" PRIu64,
		    limits->instances_name, limits->instances < 512 ?
		    1024 : limits->instances * 2);
	} else if (refused == ENOSPC) {
		finding_set(finding, FINDING_WRONG, "inotify",
		    "not all of the %zu directories can be watched: %s is %"
		    PRIu64 " for all programs of this user", folders,
		    limits->watches_name, limits->watches);
		finding_cure(finding, "sysctl %s=%" PRIu64,
		    limits->watches_name, wanted);
	} else {
		finding_set(finding, FINDING_WRONG, "inotify",
		    "the directories cannot be watched: %s",
		    strerror(refused));
	}
	finding_add(finding, "; DIR would be looked at every 2 s instead");
}

void
judgement_watches(struct finding *finding, size_t folders,
    const struct judgement_limits *limits, int refused)
{
	uint64_t wanted = folders * 4 > 65536 ? folders * 4 : 65536;

	if (refused != 0) {
		tell_refused(finding, folders, limits, refused, wanted);
	} else if (folders > limits->watches / 2) {
		finding_set(finding, FINDING_HINT, "inotify", "%zu "
		    "directories are watched, and %s is %" PRIu64 " for all "
		    "programs of this user", folders, limits->watches_name,
		    limits->watches);
		finding_cure(finding, "raise it before there are more: "
		    "sysctl %s=%" PRIu64, limits->watches_name, wanted);
	} else {
		finding_set(finding, FINDING_OK, "inotify",
		    "%zu director%s watched", folders,
		    folders == 1 ? "y" : "ies");
		if (limits->watches != UINT64_MAX)
			finding_add(finding, ", %" PRIu64 " are allowed",
			    limits->watches);
	}
	finding_fact(finding, "directories", integer(folders));
	if (limits->watches != UINT64_MAX)
		finding_fact(finding, "max_watches",
		    integer(limits->watches));
	if (limits->instances != UINT64_MAX)
		finding_fact(finding, "max_instances",
		    integer(limits->instances));
}

void
judgement_space(struct finding *finding, uint64_t needed, uint64_t available)
{
	char size[UNIT_TEXT_SIZE], space[UNIT_TEXT_SIZE];
	enum finding_state state = available < needed ? FINDING_WRONG :
	    available / 2 < needed ? FINDING_HINT : FINDING_OK;

	unit_size_text(needed, size);
	unit_size_text(available, space);
	finding_set(finding, state, "space",
	    "%s free for a checkpoint of %s", space, size);
	if (state == FINDING_WRONG)
		finding_add(finding, ": neither a restore nor the next save "
		    "fits");
	else if (state == FINDING_HINT)
		finding_add(finding, ": it fits only once");
	if (state != FINDING_OK)
		finding_cure(finding, "make room on the file system of DIR, "
		    "or let the trainer keep fewer checkpoints");
	finding_fact(finding, "needed_bytes", integer(needed));
	finding_fact(finding, "free_bytes", integer(available));
}

void
judgement_stop(struct finding *finding, const char *unit, uint64_t timeout,
    uint64_t grace, uint64_t window, const char *source)
{
	char stop[UNIT_TEXT_SIZE], wanted[UNIT_TEXT_SIZE];
	char gives[UNIT_TEXT_SIZE];
	bool endless = timeout == CLOCK_NEVER;

	unit_duration_text(timeout, stop);
	unit_duration_text(grace, wanted);
	unit_duration_text(window, gives);
	finding_set(finding, FINDING_OK, "stop_time",
	    "systemd gives %s %s to stop, --grace is %s", unit,
	    endless ? "all the time" : stop, wanted);
	if (timeout < grace) {
		finding->state = FINDING_WRONG;
		finding_add(finding, ": it is killed before the flush is "
		    "over");
		finding_cure(finding, "TimeoutStopSec=%" PRIu64 " in its "
		    "[Service] section, or a smaller --grace",
		    grace / CLOCK_SECOND + 5);
	} else if (source != NULL && timeout > window) {
		finding->state = FINDING_HINT;
		finding_add(finding, "; %s ends the machine %s after its "
		    "notice, whatever systemd waits for",
		    judgement_cloud(source), gives);
		finding_cure(finding, "TimeoutStopSec=%" PRIu64 " says what "
		    "is really there", (window > grace ? window : grace) /
		    CLOCK_SECOND);
	}
	if (!endless)
		finding_fact(finding, "stop_s", seconds(timeout));
	finding_fact(finding, "grace_s", seconds(grace));
}

/* The units that systemd's format_timespan() prints. */
static uint64_t
span_unit(const char *text, size_t length)
{
	static const struct {
		const char *name;
		uint64_t size;
	} units[] = {
		{ "us", 1000 }, { "ms", CLOCK_MILLISECOND },
		{ "s", CLOCK_SECOND }, { "min", 60 * CLOCK_SECOND },
		{ "h", 3600 * CLOCK_SECOND }, { "d", 86400 * CLOCK_SECOND },
		{ "w", 7 * 86400 * CLOCK_SECOND },
		{ "month", 2629800 * CLOCK_SECOND },
		{ "y", 31557600 * CLOCK_SECOND },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i].name) == length &&
		    memcmp(units[i].name, text, length) == 0)
			return units[i].size;
	return 0;
}

int
judgement_timespan(const char *text, uint64_t *nanoseconds)
{
	double total = 0, number;
	char *end;
	size_t length;
	uint64_t unit;

	if (strcmp(text, "infinity") == 0) {
		*nanoseconds = CLOCK_NEVER;
		return 0;
	}
	if (strcmp(text, "0") == 0) {
		*nanoseconds = 0;
		return 0;
	}
	do {
		if (!isdigit((unsigned char)*text))
			return -1;
		number = strtod(text, &end);
		length = strspn(end, "abcdefghijklmnopqrstuvwxyz");
		unit = span_unit(end, length);
		if (unit == 0)
			return -1;
		total += number * (double)unit;
		text = end + length;
		text += *text == ' ';
	} while (*text != '\0');
	if (!(total < (double)INT64_MAX))
		return -1;
	*nanoseconds = (uint64_t)total;
	return 0;
}
