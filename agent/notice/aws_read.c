#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "notice/aws.h"
#include "notice/ledger.h"
#include "notice/wall_time.h"

/* The documented warning of an interruption without a time. */
#define USUAL (120 * CLOCK_SECOND)

/* Maintenance that is further away is a hint. */
#define NEAR (10 * 60 * (int64_t)CLOCK_SECOND)

/*
 * {"action": "terminate", "time": "2017-09-18T08:22:00Z"}.  Hibernation begins
 * when it is announced.  A word that is unknown still means that something
 * happens to this machine.  The id does not hold the time: one that slides
 * from poll to poll is the same notice.
 */
static int
read_spot(struct ledger *ledger, const json_t *object)
{
	const char *action = json_get_text(object, "action");
	const char *time = json_get_text(object, "time");
	char id[96], reason[160];
	struct timespec when;
	struct ledger_word word = { .kind = NOTICE_DEADLINE,
	    .source = "aws spot", .id = id, .reason = reason,
	    .usual = USUAL };

	if (time != NULL && wall_time_parse(time, 0, &when) == 0)
		word.stated = &when;
	if (action == NULL && word.stated == NULL)
		return -1;
	if (action == NULL)
		action = "unknown action";
	if (strcasecmp(action, "hibernate") == 0) {
		word.stated = NULL;
		word.usual = 0;
	}
	word.survives = strcasecmp(action, "hibernate") == 0 ||
	    strcasecmp(action, "stop") == 0;
	snprintf(id, sizeof(id), "aws-spot-%.64s", action);
	snprintf(reason, sizeof(reason), "%.64s", action);
	ledger_tell(ledger, &word);
	return 0;
}

/* {"noticeTime": "2020-10-27T08:22:00Z"}; a false alarm more often than not. */
static int
read_rebalance(struct ledger *ledger, const json_t *object)
{
	struct ledger_word word = { .kind = NOTICE_HINT,
	    .source = "aws rebalance", .id = "aws-rebalance",
	    .reason = "rebalance recommendation" };

	if (json_get_text(object, "noticeTime") == NULL)
		return -1;
	ledger_tell(ledger, &word);
	return 0;
}

/*
 * One word: where Auto Scaling wants this machine.  Back into a warm pool
 * means a stop that keeps the disk, at a time that nobody says; SIGTERM will.
 */
static int
read_lifecycle(struct ledger *ledger, const char *text)
{
	struct ledger_word word = { .source = "aws autoscaling",
	    .id = "aws-lifecycle", .usual = USUAL };
	char state[40];
	int end = -1;

	if (*text == '\0')
		return 0;
	if (sscanf(text, "%39[A-Za-z:] %n", state, &end) != 1 || end < 0 ||
	    text[end] != '\0')
		return -1;
	word.reason = state;
	if (strcasecmp(state, "Terminated") == 0 ||
	    strcasecmp(state, "Warmed:Terminated") == 0) {
		word.kind = NOTICE_DEADLINE;
	} else if (strcasecmp(state, "Warmed:Stopped") == 0 ||
	    strcasecmp(state, "Warmed:Hibernated") == 0) {
		word.kind = NOTICE_HINT;
		word.survives = true;
	} else {
		return 0;
	}
	ledger_tell(ledger, &word);
	return 0;
}

/*
 * system-maintenance is a short loss of network or power that the machine
 * outlives.  A window that has begun already may end hours later: that is no
 * reason to stop a training that has just started, so it is a hint too.
 */
static void
read_event(struct ledger *ledger, const json_t *event)
{
	const char *code = json_get_text(event, "Code");
	const char *state = json_get_text(event, "State");
	const char *name = json_get_text(event, "EventId");
	const char *time = json_get_text(event, "NotBefore");
	char id[96], reason[160];
	struct timespec when;
	struct ledger_word word = { .kind = NOTICE_HINT,
	    .source = "aws maintenance", .id = id, .reason = reason,
	    .survives = true };

	if (code == NULL || state == NULL || strcasecmp(state, "active") != 0)
		return;
	snprintf(id, sizeof(id), "aws-%.80s", name != NULL ? name : code);
	snprintf(reason, sizeof(reason), "%.64s, not before %.40s", code,
	    time != NULL ? time : "an unknown time");
	word.survives = strcasecmp(code, "instance-retirement") != 0;
	if (time != NULL && wall_time_parse(time, 0, &when) == 0) {
		int64_t left = wall_time_left(when);

		word.stated = &when;
		if (strcasecmp(code, "system-maintenance") != 0 &&
		    left >= 0 && left < NEAR)
			word.kind = NOTICE_DEADLINE;
	}
	ledger_tell(ledger, &word);
}

static int
read_maintenance(struct ledger *ledger, const char *text, size_t length)
{
	json_t *events = json_loadb(text, length, 0, NULL), *event;
	size_t i;

	if (!json_is_array(events)) {
		json_decref(events);
		return -1;
	}
	json_array_foreach(events, i, event)
		read_event(ledger, event);
	json_decref(events);
	return 0;
}

static int
read_object(struct ledger *ledger, enum aws_item item, const char *text,
    size_t length)
{
	struct error ignored = ERROR_INIT;
	json_t *object = json_read(text, length, "notice", &ignored);
	int result;

	if (object == NULL)
		return -1;
	result = item == AWS_SPOT ? read_spot(ledger, object) :
	    read_rebalance(ledger, object);
	json_decref(object);
	return result;
}

int
aws_read(struct ledger *ledger, enum aws_item item, const char *text,
    size_t length)
{
	switch (item) {
	case AWS_LIFECYCLE:
		return read_lifecycle(ledger, text);
	case AWS_MAINTENANCE:
		return read_maintenance(ledger, text, length);
	default:
		return read_object(ledger, item, text, length);
	}
}
