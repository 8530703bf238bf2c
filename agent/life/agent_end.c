#include "life/agent_private.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rate.h"
#include "base/unit.h"
#include "life/courtesy.h"
#include "life/settings.h"
#include "life/uploads.h"
#include "store/writer.h"

/* For close.json when nothing presses. */
#define CLOSE_TIME (20 * CLOCK_SECOND)

/* After the deadline has passed anyway. */
#define CLOSE_TIME_LATE (CLOCK_SECOND + CLOCK_SECOND / 2)

/* The newest that is complete and not durable; NULL: none. */
static const char *
lost_name(struct agent *agent)
{
	size_t count = candidates_count(agent->candidates);
	const struct candidate *newest = agent->flying, *each;
	size_t i;

	for (i = 0; i < count; i++) {
		each = candidates_at(agent->candidates, i);
		if (newest == NULL || each->order > newest->order)
			newest = each;
	}
	return newest != NULL ? newest->checkpoint->name :
	    candidates_lost(agent->candidates);
}

int
agent_class(struct agent *agent)
{
	struct flush_facts facts;
	struct error *error = &agent->outcome->error;
	const char *lost;

	if (agent->superseded)
		return ERROR_SUPERSEDED;
	if (agent->phase == AGENT_STARTING || agent->uploads == NULL) {
		if (agent->begun == NULL || agent->begun->undurable)
			return error_set(error, ERROR_NOT_DURABLE,
			    CAUSE_CANCELLED, NULL, "stopped before what lies "
			    "here was durable"), ERROR_NOT_DURABLE;
		return ERROR_NONE;
	}
	/* Nobody has looked yet, or not since the trainer ended. */
	if (agent->notice_scan != 0 || (agent->ending &&
	    agent->end_flush.state < FLUSH_DRAINING)) {
		error_set(error, ERROR_NOT_DURABLE, CAUSE_CANCELLED, NULL,
		    "the end came before all that lies here was looked at");
		return ERROR_NOT_DURABLE;
	}
	facts = agent_flush_facts(agent);
	if ((lost = candidates_lost(agent->candidates)) != NULL) {
		if (error->class == ERROR_NONE)
			error_set(error, ERROR_NOT_DURABLE, CAUSE_OTHER, lost,
			    "complete here, but not durable");
		error->class = ERROR_NOT_DURABLE;
		return ERROR_NOT_DURABLE;
	}
	if (facts.pending != UINT64_MAX) {
		error_set(error, ERROR_NOT_DURABLE, CAUSE_CANCELLED,
		    lost_name(agent), "complete here, but not durable");
		return ERROR_NOT_DURABLE;
	}
	error_clear(error);
	return ERROR_NONE;
}

int
agent_push_class(struct agent *agent)
{
	const struct unsettled *unsettled;
	struct error *error = &agent->outcome->error;
	int class = agent_class(agent);

	if (class != ERROR_NONE)
		return class;
	/* This forgets what is gone. */
	(void)agent_has_unsettled(agent);
	unsettled = agent_unreadable(agent);
	if (unsettled == NULL && !agent_is_blind(agent))
		return ERROR_NONE;
	if (unsettled == NULL) {
		*error = agent->unseen;
		error->class = ERROR_NOT_DURABLE;
		return ERROR_NOT_DURABLE;
	}
	error_set(error, ERROR_NOT_DURABLE, CAUSE_DENIED, unsettled->name,
	    "it could not be read, so it is not durable: %s",
	    unsettled->unreadable);
	return ERROR_NOT_DURABLE;
}

void
agent_begin_flush(struct agent *agent, const char *how)
{
	if (agent->phase == AGENT_CLOSING)
		return;
	if (agent->how == NULL)
		agent->how = how;
	if (agent->ending || agent->phase == AGENT_STARTING ||
	    agent->watch == NULL)
		return;
	agent->ending = true;
	candidates_hurry(agent->candidates);
	flush_begin(&agent->end_flush, clock_monotonic(), agent_scan(agent));
}

static json_t *
close_facts(struct agent *agent)
{
	const char *lost = lost_name(agent);
	const struct cause *cause = causes_first(&agent->causes);
	json_t *facts;

	facts = json_pack("{s:s, s:b, s:I}", "outcome", agent->superseded ?
	    "superseded" : agent->how == NULL ? "stopped" : agent->how,
	    "durable", agent->class == ERROR_NONE, "commits",
	    (json_int_t)agent->durable_count);
	if (facts != NULL && lost != NULL)
		json_set_name(facts, "not_durable", lost);
	if (facts != NULL && cause != NULL)
		json_object_set_new(facts, "notice", json_pack("{s:o, s:o}",
		    "source", json_text(cause->source), "reason",
		    json_text(cause->reason)));
	if (facts != NULL && agent->durable.name != NULL)
		json_set_name(facts, "newest_durable", agent->durable.name);
	return facts;
}

void
agent_end(struct agent *agent, int class)
{
	uint64_t now = clock_monotonic(), limit = now + CLOSE_TIME;

	if (agent->phase != AGENT_CLOSING) {
		agent->phase = AGENT_CLOSING;
		agent->class = class;
		if (agent->deadline.state == DEADLINE_RUNNING ||
		    agent->deadline.state == DEADLINE_DONE)
			limit = agent->deadline.when > now + CLOSE_TIME_LATE ?
			    agent->deadline.when : now + CLOSE_TIME_LATE;
		if (class != ERROR_NONE && agent->interrupts > 1)
			limit = now + CLOSE_TIME_LATE;
		loop_timer_set(agent->loop, &agent->over_at, limit,
		    agent_over, agent);
		if (agent->flying != NULL)
			uploads_cancel(agent->uploads);
	}
	if (agent->flying != NULL || agent->close_sent)
		return;
	if (agent->uploads == NULL || agent->superseded) {
		agent_over(agent);
		return;
	}
	agent->close_sent = true;
	uploads_close(agent->uploads, close_facts(agent),
	    agent->over_at.when);
}

static void
say_end(struct agent *agent, int class)
{
	const char *lost = lost_name(agent);
	char text[ERROR_TEXT_SIZE];

	if (agent->needs.mode == AGENT_PUSH)
		return;
	if (class == ERROR_NONE) {
		log_line(LOG_INFO, "all_durable", "everything that is "
		    "complete here is durable%s%s",
		    agent->durable.name != NULL ? "; the newest is " : "",
		    agent->durable.name != NULL ? agent->durable.name : "");
		return;
	}
	log_event(LOG_ERROR, "not_durable", LOG_FIELDS(
	    LOG_TEXT_FIELD("lost", lost == NULL ? "" : lost),
	    LOG_TEXT_FIELD("newest_durable", agent->durable.name == NULL ? "" :
	    agent->durable.name)),
	    "%s: %s; the newest durable one is %s",
	    class == ERROR_SUPERSEDED ? "superseded" : "NOT durable",
	    error_text(&agent->outcome->error, text),
	    agent->durable.name != NULL ? agent->durable.name :
	    "none of this life");
	agent_failed(agent, lost, agent->outcome->error.message);
}

static void
follow_deadline(struct agent *agent)
{
	struct flush_facts flush = agent_flush_facts(agent);
	struct deadline_facts facts = {
		.trainer = agent->trainer > 0 && !agent->trainer_over,
		.asked = agent->needs.settings->save_signal != 0,
		.saved = agent->saved,
		.stays = agent->needs.mode == AGENT_DAEMON && !agent->ending,
		.flushed = agent->ending &&
		    flush_over(&agent->end_flush, &flush),
		.bytes = agent->last_bytes,
		.rate = speed_now(&agent->speed),
		.round = agent->round,
	};
	unsigned actions;
	int class;

	actions = deadline_step(&agent->deadline, clock_monotonic(), &facts);
	if (actions & DEADLINE_LIFT) {
		if (agent->needs.mode != AGENT_PUSH)
			courtesy_end(agent->usual_nice);
		rate_set(agent->rate, 0);
	}
	if (actions & DEADLINE_SAVE) {
		log_line(LOG_INFO, "save_again", "the last save is durable "
		    "and there is time for one more: asking for it");
		agent->saved = false;
		agent->noticed_order = candidates_last(agent->candidates);
		agent_signal_trainer(agent,
		    agent->needs.settings->save_signal);
	}
	if (actions & DEADLINE_STOP)
		agent_stop_trainer(agent);
	/* Killing is the supervisor's; it has the same deadline. */
	if (actions & DEADLINE_END) {
		class = agent_class(agent);
		say_end(agent, class);
		agent_end(agent, class);
	}
}

void
agent_check_end(struct agent *agent)
{
	struct flush_facts facts;
	uint64_t now = clock_monotonic();
	int class;

	if (agent->superseded && (agent->needs.mode != AGENT_TRAINER ||
	    agent->trainer_over)) {
		agent_end(agent, ERROR_SUPERSEDED);
		return;
	}
	if (agent->ending && flush_wants_scan(&agent->end_flush, now))
		flush_begin_scan(&agent->end_flush, agent_scan(agent));
	if (agent->deadline.state == DEADLINE_RUNNING) {
		follow_deadline(agent);
		return;
	}
	if (!agent->ending)
		return;
	facts = agent_flush_facts(agent);
	if (!flush_over(&agent->end_flush, &facts))
		return;
	class = agent->needs.mode == AGENT_PUSH ? agent_push_class(agent) :
	    agent_class(agent);
	say_end(agent, class);
	agent_end(agent, class);
}
