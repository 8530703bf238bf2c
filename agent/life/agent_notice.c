#include "life/agent_private.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rate.h"
#include "base/unit.h"
#include "life/courtesy.h"
#include "life/hooks.h"
#include "life/link.h"
#include "life/notice_file.h"
#include "life/place.h"
#include "life/settings.h"
#include "life/uploads.h"
#include "notice/notice.h"
#include "store/backend.h"

/* A deadline known beforehand becomes a notice this long before it, and
 * longer when a checkpoint takes longer. */
#define LEAD (120 * CLOCK_SECOND)
#define LEAD_MAXIMUM (3600 * CLOCK_SECOND)

/* The clocks show a freeze when they differ, or a beat was late, by this. */
#define FREEZE (3 * CLOCK_SECOND)
#define WALL_JUMP 30

static void
tell_supervisor(struct agent *agent)
{
	uint64_t now = clock_monotonic(), when = agent->deadline.when;

	if (agent->needs.link >= 0)
		link_say(agent->needs.link, "{s:s, s:I}", "say", "notice",
		    "left_ms", (json_int_t)(when > now ? (when - now) /
		    CLOCK_MILLISECOND : 0));
}

static void
write_notice_file(struct agent *agent, const struct cause *cause)
{
	const char *path = agent->needs.settings->notice_file;
	struct error error = ERROR_INIT;

	if (path != NULL && notice_file_write(path, cause, clock_monotonic(),
	    &error) != 0)
		log_failure(LOG_WARNING, "notice_file", &error);
}

static void
run_notice_hook(struct agent *agent, const struct cause *cause, uint64_t left)
{
	char seconds[32];

	snprintf(seconds, sizeof(seconds), "%.1f",
	    (double)left / (double)CLOCK_SECOND);
	hooks_deadline(agent->hooks, cause->when);
	hooks_run(agent->hooks, "notice", agent->needs.settings->on_notice,
	    HOOK_FACTS({ "DEADLINE_S", seconds }, { "SOURCE", cause->source },
	    { "REASON", cause->reason }, { "CHECKPOINT", agent->newest.name },
	    { "DIR", place_folder(agent->needs.place) },
	    { "REMOTE", agent->needs.settings->url }));
}

void
agent_failed(struct agent *agent, const char *checkpoint, const char *message)
{
	hooks_run(agent->hooks, "error", agent->needs.settings->on_error,
	    HOOK_FACTS({ "CHECKPOINT", checkpoint }, { "MESSAGE", message },
	    { "DIR", place_folder(agent->needs.place) },
	    { "REMOTE", agent->needs.settings->url }));
}

/* What happens once, as the window opens. */
static void
open_window(struct agent *agent, const struct cause *cause, uint64_t left)
{
	const struct settings *settings = agent->needs.settings;

	agent->noticed_order = candidates_last(agent->candidates);
	agent->saved = false;
	agent->speed_proven = false;
	/* With a limit, the speed measured so far is not the wire's. */
	if (settings->limit_rate != 0)
		speed_forget(&agent->speed);
	rate_set(agent->rate, 0);
	run_notice_hook(agent, cause, left);
	if (settings->save_signal != 0 && agent->trainer > 0) {
		agent->asked_at = clock_monotonic();
		agent_signal_trainer(agent, settings->save_signal);
	}
}

/* The end is at ${cause} now: tell everybody. */
static void
set_end(struct agent *agent, const struct cause *cause, bool tell)
{
	deadline_notice(&agent->deadline, clock_monotonic(), cause->when);
	if (agent->uploads != NULL)
		uploads_deadline(agent->uploads,
		    deadline_last_upload(&agent->deadline));
	hooks_deadline(agent->hooks, agent->deadline.when);
	if (tell)
		tell_supervisor(agent);
	write_notice_file(agent, cause);
}

static void
follow(struct agent *agent, const struct cause *cause)
{
	/* Beside a trainer that we cannot see, SIGTERM is what ends us. */
	bool ends = strcmp(cause->id, "SIGTERM") == 0;

	candidates_hurry(agent->candidates);
	/* Before the scan of the flush, whose end may be the end. */
	if (agent->watch != NULL && agent->notice_scan == 0)
		agent->notice_scan = agent_scan(agent);
	if (agent->phase == AGENT_STARTING && agent->start != NULL &&
	    !agent->needs.trainer_begun)
		start_cancel(agent->start);
	else if (agent->trainer_over ||
	    (agent->needs.mode == AGENT_DAEMON && ends))
		agent_begin_flush(agent, "preempted");
	agent_send_next(agent);
}

void
agent_notice(struct agent *agent, const struct cause *cause, bool tell)
{
	uint64_t now = clock_monotonic(), left;
	bool begins = agent->deadline.state != DEADLINE_RUNNING, nearer;
	char text[UNIT_TEXT_SIZE];

	if (agent->deadline.state == DEADLINE_DONE ||
	    agent->phase == AGENT_CLOSING)
		return;
	nearer = causes_add(&agent->causes, cause);
	left = cause->when > now ? cause->when - now : 0;
	if (tell || agent->needs.mode != AGENT_TRAINER)
		log_event(LOG_WARNING, "notice", LOG_FIELDS(
		    LOG_TEXT_FIELD("source", cause->source),
		    LOG_TEXT_FIELD("reason", cause->reason),
		    LOG_SECONDS_FIELD("left_s",
		    (double)left / (double)CLOCK_SECOND)),
		    "this machine goes in %s: %s%s%s",
		    unit_duration_text(left, text), cause->source,
		    cause->reason[0] != '\0' ? ": " : "", cause->reason);
	agent->how = "preempted";
	if (nearer)
		set_end(agent, cause, tell);
	if (begins)
		open_window(agent, cause, left);
	follow(agent, cause);
}

void
agent_notice_of(struct agent *agent, const char *source, const char *reason,
    uint64_t left)
{
	struct cause cause = { .when = clock_monotonic() + left };
	const char *name = source == NULL ? "SIGTERM" : source;

	snprintf(cause.source, sizeof(cause.source), "%s", name);
	snprintf(cause.id, sizeof(cause.id), "%s", name);
	snprintf(cause.reason, sizeof(cause.reason), "%s", reason);
	agent_notice(agent, &cause, source != NULL);
}

/* Nothing presses any more. */
static void
close_window(struct agent *agent)
{
	const struct settings *settings = agent->needs.settings;

	if (agent->uploads != NULL)
		uploads_deadline(agent->uploads, 0);
	rate_set(agent->rate, settings->limit_rate);
	courtesy_again(agent->usual_nice);
	hooks_deadline(agent->hooks, 0);
	agent->how = NULL;
	agent->asked_at = 0;
	if (settings->notice_file != NULL)
		notice_file_remove(settings->notice_file);
}

void
agent_withdraw(struct agent *agent, const char *id)
{
	const struct cause *first;

	if (agent->deadline.state == DEADLINE_DONE ||
	    !causes_remove(&agent->causes, id))
		return;
	first = causes_first(&agent->causes);
	log_line(LOG_WARNING, "withdrawn", "a notice was withdrawn: %s",
	    first == NULL ? "this machine stays" : "another one holds");
	deadline_withdraw(&agent->deadline);
	if (agent->needs.link >= 0)
		link_say(agent->needs.link, "{s:s}", "say", "withdrawn");
	if (first != NULL)
		set_end(agent, first, true);
	else
		close_window(agent);
}

static void
hint(struct agent *agent, const struct notice *notice)
{
	if (agent->hinted)
		return;
	agent->hinted = true;
	log_event(LOG_WARNING, "hint", LOG_FIELDS(
	    LOG_TEXT_FIELD("source", notice->source)),
	    "this machine may go: %s: %s; uploading sooner, nothing is "
	    "stopped", notice->source, notice->reason);
	deadline_hint(&agent->deadline);
	candidates_hurry(agent->candidates);
	rate_set(agent->rate, 0);
	if (agent->watch != NULL)
		(void)agent_scan(agent);
}

static void
take_deadline(struct agent *agent, const struct notice *notice)
{
	struct cause cause = { .when = notice->deadline,
	    .survives = notice->survives };

	/* A hibernation begins at once and everything outlives it: nothing
	 * may be stopped for it. */
	if (notice->survives && !notice->stated &&
	    notice->deadline <= clock_monotonic() + CLOCK_SECOND) {
		hint(agent, notice);
		return;
	}
	memcpy(cause.id, notice->id, sizeof(cause.id));
	memcpy(cause.source, notice->source, sizeof(notice->source));
	memcpy(cause.reason, notice->reason, sizeof(cause.reason));
	agent_notice(agent, &cause, true);
}

static void
see(struct agent *agent, const struct notice *notice)
{
	struct sight_of_cloud *sight = &agent->sight;
	bool nowhere = strcmp(notice->reason, "no cloud") == 0;

	memcpy(sight->cloud, notice->source, sizeof(sight->cloud));
	if (notice->kind == NOTICE_SEEING) {
		sight->state = SIGHT_SEEING;
		sight->window = notice_window(&agent->needs.settings->notice,
		    notice->source);
		log_event(LOG_INFO, "seeing", LOG_FIELDS(
		    LOG_TEXT_FIELD("cloud", notice->source)),
		    "notices of %s can be seen here", notice->source);
		return;
	}
	sight->state = SIGHT_BLIND;
	sight->error = notice->error;
	memcpy(sight->cause, notice->reason, sizeof(sight->cause));
	/* On a machine of one's own that is as it should be. */
	log_failure(nowhere ? LOG_INFO : LOG_WARNING, "blind", &notice->error);
}

static void
noticed(void *context)
{
	struct agent *agent = context;
	struct notice notice;

	report_line_clear(&agent->line);
	while (notice_next(agent->notices, &notice)) {
		switch (notice.kind) {
		case NOTICE_SEEING:
		case NOTICE_BLIND:
			see(agent, &notice);
			break;
		case NOTICE_HINT:
			hint(agent, &notice);
			break;
		case NOTICE_DEADLINE:
			take_deadline(agent, &notice);
			break;
		case NOTICE_WITHDRAWN:
			agent_withdraw(agent, notice.id);
			break;
		}
	}
	agent_turn(agent);
}

int
agent_notice_begin(struct agent *agent, struct error *error)
{
	const struct settings *settings = agent->needs.settings;

	agent->beaten = clock_monotonic();
	agent->beaten_wall = clock_wall();
	agent->frozen = clock_boot() - agent->beaten;
	if (agent->needs.mode == AGENT_PUSH)
		return 0;
	if (settings->notice_file != NULL)
		notice_file_remove(settings->notice_file);
	if (settings->notice.cloud == NOTICE_CLOUD_NONE) {
		agent->sight.state = SIGHT_OFF;
		return 0;
	}
	agent->notices = notice_start(&settings->notice, error);
	if (agent->notices == NULL)
		return -1;
	return loop_watch(agent->loop, notice_fd(agent->notices), POLLIN,
	    noticed, agent, error);
}

static void
look_beforehand(struct agent *agent)
{
	uint64_t when = agent->needs.settings->deadline, lead = LEAD;
	uint64_t speed = speed_now(&agent->speed), now = clock_monotonic();
	struct cause cause = { .when = when, .source = "deadline",
	    .id = "deadline", .reason = "known beforehand" };

	if (when == 0 || agent->known_told)
		return;
	if (agent->needs.settings->grace > lead)
		lead = agent->needs.settings->grace;
	if (speed > 0 && agent->last_bytes / speed * 2 > LEAD / CLOCK_SECOND)
		lead = agent->last_bytes / speed * 2 * CLOCK_SECOND;
	if (lead > LEAD_MAXIMUM)
		lead = LEAD_MAXIMUM;
	if (now + lead < when)
		return;
	agent->known_told = true;
	agent_notice(agent, &cause, true);
}

/* This machine, or this process, stood still. */
static void
resume(struct agent *agent)
{
	log_line(LOG_WARNING, "resumed", "this machine or process was frozen; "
	    "connecting anew and looking at the directory again");
	agent->hinted = false;
	if (agent->notices != NULL)
		notice_resumed(agent->notices);
	if (agent->begun != NULL && agent->begun->backend != NULL)
		backend_refresh(agent->begun->backend);
	if (agent->phase != AGENT_RUNNING)
		return;
	/* Sent again at once, but for what was acknowledged. */
	if (agent->flying != NULL && !agent->giving_way)
		uploads_cancel(agent->uploads);
	candidates_hurry(agent->candidates);
	if (agent->watch != NULL)
		(void)agent_scan(agent);
}

void
agent_notice_beat(struct agent *agent)
{
	uint64_t now = clock_monotonic(), frozen = clock_boot() - now;
	struct timespec wall = clock_wall();
	int64_t jump = (int64_t)(wall.tv_sec - agent->beaten_wall.tv_sec) -
	    (int64_t)((now - agent->beaten) / CLOCK_SECOND);
	bool stood = frozen > agent->frozen + FREEZE ||
	    now - agent->beaten > FREEZE + CLOCK_SECOND || jump > WALL_JUMP;

	agent->beaten = now;
	agent->frozen = frozen;
	agent->beaten_wall = wall;
	if (stood)
		resume(agent);
	look_beforehand(agent);
}

bool
agent_acknowledge(struct agent *agent)
{
	const struct cause *cause;
	size_t i;

	if (agent->acknowledged || agent->notices == NULL || !agent->closed ||
	    !agent->needs.settings->notice.azure_acknowledge ||
	    agent->class != ERROR_NONE)
		return false;
	for (i = 0; i < agent->causes.count; i++) {
		cause = &agent->causes.items[i];
		if (strncmp(cause->source, "azure ", 6) != 0)
			continue;
		agent->acknowledged = true;
		notice_acknowledge(agent->notices, cause->id);
	}
	return agent->acknowledged;
}
