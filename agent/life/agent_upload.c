#include "life/agent_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/random.h"
#include "base/rate.h"
#include "format/checkpoint.h"
#include "life/hooks.h"
#include "life/place.h"
#include "life/settings.h"
#include "life/uploads.h"

#define PAUSE_MAXIMUM (60 * CLOCK_SECOND)
#define PAUSE_IN_A_HURRY (CLOCK_SECOND / 2)

/* With nothing else to wait for, a fault that does not pass ends a flush. */
#define FAILURES_MAXIMUM 3

struct flush_facts
agent_flush_facts(struct agent *agent)
{
	struct flush_facts facts = {
		.last = candidates_last(agent->candidates),
		.pending = candidates_since(agent->candidates),
		.unsettled = agent_has_unsettled(agent),
	};

	if (agent->flying != NULL && agent->flying->since < facts.pending)
		facts.pending = agent->flying->since;
	return facts;
}

void
agent_send(struct agent *agent, struct candidate *candidate)
{
	agent->flying = candidate;
	agent->giving_way = false;
	agent->passed_before = rate_passed(agent->rate);
	uploads_send(agent->uploads, candidate->checkpoint,
	    candidates_wants_snapshot(agent->candidates,
	    candidate->checkpoint->series));
}

void
agent_send_next(struct agent *agent)
{
	struct candidate *candidate;

	if (agent->phase != AGENT_RUNNING || agent->superseded ||
	    agent->uploads == NULL)
		return;
	if (agent->deadline.state == DEADLINE_RUNNING) {
		agent_plan(agent);
		return;
	}
	if (agent->flying != NULL)
		return;
	candidate = candidates_take(agent->candidates, clock_monotonic());
	if (candidate != NULL)
		agent_send(agent, candidate);
}

static void
say_superseded(void *context)
{
	struct agent *agent = context;

	log_line(LOG_ERROR, "superseded", "nothing of this directory is "
	    "uploaded any more: %s", agent->outcome->error.message);
	loop_timer_set(agent->loop, &agent->superseded_beat,
	    clock_monotonic() + 60 * CLOCK_SECOND, say_superseded, agent);
}

void
agent_supersede(struct agent *agent, const struct error *error)
{
	if (agent->superseded)
		return;
	agent->superseded = true;
	agent->outcome->error = *error;
	if (agent->flying != NULL)
		uploads_cancel(agent->uploads);
	say_superseded(agent);
	agent_failed(agent, NULL, error->message);
	if (agent->needs.settings->stop_on_superseded)
		agent_stop_trainer(agent);
}

static void
tell_commit(struct agent *agent, const struct uploads_result *result)
{
	const struct checkpoint *checkpoint = agent->flying->checkpoint;
	char step[24] = "", bytes[24];

	if (checkpoint->has_step)
		snprintf(step, sizeof(step), "%" PRIu64, checkpoint->step);
	snprintf(bytes, sizeof(bytes), "%" PRIu64, checkpoint->size);
	hooks_run(agent->hooks, "commit", agent->needs.settings->on_commit,
	    HOOK_FACTS({ "CHECKPOINT", checkpoint->name },
	    { "ID", result->id }, { "STEP", step }, { "BYTES", bytes },
	    { "DIR", place_folder(agent->needs.place) },
	    { "REMOTE", agent->needs.settings->url }));
}

/* What a checkpoint that a trainer goes on from teaches. */
static void
learn(struct agent *agent, const struct uploads_result *result)
{
	const struct candidate *candidate = agent->flying;
	uint64_t interval = 0;

	agent_mark(&agent->durable, candidate->checkpoint, result->id);
	if (agent->last_seen != 0 && candidate->seen > agent->last_seen)
		interval = candidate->seen - agent->last_seen;
	agent->last_seen = candidate->seen;
	if (!result->known) {
		agent->last_bytes = result->new_bytes;
		agent->last_size = candidate->checkpoint->size;
		agent_check_habit(agent, interval);
	}
	if (agent->deadline.state == DEADLINE_RUNNING &&
	    candidate->order > agent->noticed_order) {
		agent->saved = true;
		if (agent->asked_at != 0)
			agent->round = clock_monotonic() - agent->asked_at;
	}
}

static void
durable(struct agent *agent, const struct uploads_result *result)
{
	struct candidate *candidate = agent->flying;
	const struct checkpoint *checkpoint = candidate->checkpoint;

	if (result->known)
		agent_tell(agent, report_seen(checkpoint, "known"));
	else
		agent_tell(agent, report_durable(checkpoint, result,
		    candidate->seen));
	agent->durable_count++;
	if (checkpoint->role == ROLE_RESUME)
		learn(agent, result);
	if (!result->known)
		tell_commit(agent, result);
	candidates_end(agent->candidates, candidate, result->snapshot ?
	    CANDIDATE_SNAPSHOT_DURABLE : CANDIDATE_DURABLE);
}

/* Whether a file of it was deleted: the trainer's right. */
static bool
is_gone(struct agent *agent, const struct checkpoint *checkpoint)
{
	struct stat status;
	char *path;
	bool gone = false;
	size_t i;

	for (i = 0; i < checkpoint->entry_count && !gone; i++) {
		path = path_join(place_folder(agent->needs.place),
		    checkpoint->entries[i].path);
		gone = path != NULL && lstat(path, &status) != 0;
		free(path);
	}
	return gone;
}

/* Whether trying again can help, as far as anybody can know. */
static bool
may_pass(struct agent *agent, const struct error *error)
{
	bool nothing_else = agent->ending &&
	    agent->deadline.state != DEADLINE_RUNNING;

	if (error->cause == CAUSE_UNREACHABLE)
		return true;
	if (error->cause == CAUSE_LIMIT || error->cause == CAUSE_FEATURE ||
	    error->class == ERROR_DAMAGED ||
	    error->class == ERROR_NOT_DURABLE)
		return false;
	return !nothing_else || agent->flying->failures + 1 < FAILURES_MAXIMUM;
}

static void
try_again(struct agent *agent, const struct error *error)
{
	struct candidate *candidate = agent->flying;
	uint64_t pause;

	pause = CLOCK_SECOND << (candidate->failures > 6 ? 6 :
	    candidate->failures);
	if (pause > PAUSE_MAXIMUM)
		pause = PAUSE_MAXIMUM;
	pause = pause / 2 + random_below(pause / 2);
	if (agent->deadline.state == DEADLINE_RUNNING)
		pause = PAUSE_IN_A_HURRY;
	agent_tell(agent, report_failed(candidate->checkpoint, "retry", error,
	    pause));
	if (candidate->failures == 0)
		agent_failed(agent, candidate->checkpoint->name,
		    error->message);
	candidates_return(agent->candidates, candidate,
	    clock_monotonic() + pause);
}

static void
failed(struct agent *agent, const struct error *error)
{
	struct candidate *candidate = agent->flying;
	const struct checkpoint *checkpoint = candidate->checkpoint;

	if (error->class == ERROR_SUPERSEDED) {
		candidates_end(agent->candidates, candidate, CANDIDATE_LOST);
		agent->flying = NULL;
		agent_supersede(agent, error);
	} else if (error->cause == CAUSE_CANCELLED && agent->giving_way) {
		candidates_hold(agent->candidates, candidate,
		    candidate->left > 0 ? candidate->left : 1);
	} else if (error->cause == CAUSE_CANCELLED) {
		candidates_return(agent->candidates, candidate, 0);
	} else if (error->cause == CAUSE_CHANGED) {
		agent_tell(agent, report_seen(checkpoint, "changed"));
		candidates_end(agent->candidates, candidate,
		    CANDIDATE_CHANGED);
	} else if (is_gone(agent, checkpoint)) {
		agent_tell(agent, report_seen(checkpoint, "gone"));
		candidates_end(agent->candidates, candidate, CANDIDATE_GONE);
	} else if (may_pass(agent, error)) {
		try_again(agent, error);
	} else {
		agent->outcome->error = *error;
		agent_tell(agent, report_failed(checkpoint, "lost", error, 0));
		agent_failed(agent, checkpoint->name, error->message);
		candidates_end(agent->candidates, candidate, CANDIDATE_LOST);
	}
}

void
agent_uploaded(void *context)
{
	struct agent *agent = context;
	struct uploads_result *result;

	report_line_clear(&agent->line);
	while ((result = uploads_next(agent->uploads)) != NULL) {
		if (result->kind == UPLOADS_CLOSED) {
			if (result->error.class != ERROR_NONE)
				log_failure(LOG_WARNING, "close_failed",
				    &result->error);
			agent->closed = result->error.class == ERROR_NONE;
			free(result);
			agent_over(agent);
			return;
		}
		speed_ended(&agent->speed, result->new_bytes, result->took);
		if (result->error.class == ERROR_NONE)
			durable(agent, result);
		else
			failed(agent, &result->error);
		agent->flying = NULL;
		free(result);
	}
	if (agent->phase == AGENT_CLOSING)
		agent_end(agent, agent->class);
	else
		agent_turn(agent);
}
