#include "life/agent_private.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rate.h"
#include "base/unit.h"
#include "format/checkpoint.h"
#include "life/settings.h"
#include "life/uploads.h"

uint64_t
agent_flying_left(struct agent *agent)
{
	struct uploads_progress progress;
	uint64_t passed, left;

	if (agent->flying == NULL)
		return 0;
	progress = uploads_progress(agent->uploads);
	if (progress.started == 0)
		return agent->flying->left > 0 ? agent->flying->left :
		    agent->flying->checkpoint->size;
	left = progress.total > progress.done ?
	    progress.total - progress.done : 0;
	/* What was handed to the wire and is not acknowledged yet. */
	passed = rate_passed(agent->rate) - agent->passed_before;
	passed = passed > progress.moved ? passed - progress.moved : 0;
	return left > passed ? left - passed : 0;
}

uint64_t
agent_left(const struct agent *agent, const struct candidate *candidate)
{
	uint64_t size = candidate->checkpoint->size;

	if (candidate->left > 0)
		return candidate->left;
	/* As much of it is new as of the last one. */
	if (agent->last_size > 0 && agent->last_bytes < agent->last_size)
		return (uint64_t)((double)size * (double)agent->last_bytes /
		    (double)agent->last_size);
	return size;
}

void
agent_measure(struct agent *agent)
{
	if (agent->flying == NULL || agent_flying_left(agent) == 0)
		return;
	speed_sample(&agent->speed, clock_monotonic(),
	    rate_passed(agent->rate));
	if (agent->speed.fresh && agent->deadline.state == DEADLINE_RUNNING)
		agent->speed_proven = true;
}

/* All that is not durable; the caller frees it.  NULL: out of memory. */
static struct deadline_item *
make_items(struct agent *agent, size_t *count)
{
	size_t i, waiting = candidates_count(agent->candidates);
	const struct candidate *each;
	struct deadline_item *items;

	*count = waiting + (agent->flying != NULL);
	if ((items = calloc(*count + 1, sizeof(*items))) == NULL)
		return NULL;
	for (i = 0; i < *count; i++) {
		each = i < waiting ? candidates_at(agent->candidates, i) :
		    agent->flying;
		items[i] = (struct deadline_item){ .order = each->order,
		    .left = i < waiting ? agent_left(agent, each) :
		    agent_flying_left(agent),
		    .resumes = each->checkpoint->role == ROLE_RESUME,
		    .flying = i == waiting };
	}
	return items;
}

static void
say_hopeless(struct agent *agent, struct candidate *candidate, uint64_t left,
    uint64_t time)
{
	char size[UNIT_TEXT_SIZE], text[UNIT_TEXT_SIZE];

	if (candidate->hopeless)
		return;
	candidate->hopeless = true;
	log_event(LOG_WARNING, "cannot_make_it", LOG_FIELDS(
	    LOG_TEXT_FIELD("checkpoint", candidate->checkpoint->name),
	    LOG_NUMBER_FIELD("left_bytes", left),
	    LOG_NUMBER_FIELD("bytes_per_s", speed_now(&agent->speed))),
	    "%s cannot make it: %s would have to go up in %s; nothing more of "
	    "it is sent", candidate->checkpoint->name,
	    unit_size_text(left, size), unit_duration_text(time, text));
}

/* What is in flight gives way, to ${other} or (NULL) to nothing. */
static void
give_way(struct agent *agent, const struct candidate *other, uint64_t time)
{
	uint64_t left = agent_flying_left(agent);

	if (agent->giving_way)
		return;
	if (other != NULL)
		log_line(LOG_INFO, "replanned", "%s gives way to %s, which %s",
		    agent->flying->checkpoint->name, other->checkpoint->name,
		    other->order > agent->flying->order ? "is newer" :
		    "can still make it");
	else
		say_hopeless(agent, agent->flying, left, time);
	agent->giving_way = true;
	agent->flying->left = left > 0 ? left : 1;
	uploads_cancel(agent->uploads);
}

static size_t
choose(struct agent *agent, const struct deadline_item *items, size_t count,
    uint64_t time)
{
	size_t chosen = deadline_choose(items, count, time,
	    speed_now(&agent->speed));

	/* An old speed alone gives nothing up. */
	if (chosen == DEADLINE_NONE && !agent->speed_proven)
		chosen = deadline_choose(items, count, time, 0);
	return chosen;
}

void
agent_plan(struct agent *agent)
{
	uint64_t now = clock_monotonic(), end, time;
	size_t i, count, chosen, waiting;
	struct deadline_item *items;
	struct candidate *candidate;

	agent_measure(agent);
	waiting = candidates_count(agent->candidates);
	end = deadline_last_upload(&agent->deadline);
	time = end > now ? end - now : 0;
	if (time == 0 || (items = make_items(agent, &count)) == NULL)
		return;
	chosen = choose(agent, items, count, time);
	if (agent->flying != NULL && chosen != waiting) {
		give_way(agent, chosen == DEADLINE_NONE ? NULL :
		    candidates_at(agent->candidates, chosen), time);
	} else if (agent->flying == NULL && chosen != DEADLINE_NONE) {
		candidate = candidates_at(agent->candidates, chosen);
		if (candidate->not_before <= now)
			agent_send(agent, candidates_pick(agent->candidates,
			    chosen));
	} else if (chosen == DEADLINE_NONE) {
		for (i = 0; i < waiting; i++)
			say_hopeless(agent, candidates_at(agent->candidates,
			    i), items[i].left, time);
	}
	free(items);
}
