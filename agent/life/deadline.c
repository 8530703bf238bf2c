#include "life/deadline.h"

#include <assert.h>

#include "base/clock.h"

/* For the save itself and the commit, unless the whole time is short. */
#define RESERVE (5 * CLOCK_SECOND)
#define CLOSE_RESERVE CLOCK_SECOND

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Nanoseconds for ${bytes}, with a quarter more than measured. */
static uint64_t
time_for(uint64_t bytes, uint64_t rate)
{
	double time = (double)bytes / (double)rate * 1.25 *
	    (double)CLOCK_SECOND;

	assert(rate > 0);
	return time >= (double)(UINT64_MAX / 4) ? UINT64_MAX / 4 :
	    (uint64_t)time;
}

void
deadline_hint(struct deadline *deadline)
{
	if (deadline->state == DEADLINE_NORMAL)
		deadline->state = DEADLINE_HINT;
}

void
deadline_notice(struct deadline *deadline, uint64_t now, uint64_t when)
{
	if (deadline->state == DEADLINE_DONE)
		return;
	if (deadline->state == DEADLINE_RUNNING) {
		deadline->when = smaller(deadline->when, when);
		return;
	}
	deadline->state = DEADLINE_RUNNING;
	deadline->began = now;
	deadline->when = when < now ? now : when;
}

uint64_t
deadline_stop_time(const struct deadline *deadline,
    const struct deadline_facts *facts)
{
	uint64_t window = deadline->when - deadline->began, needed;

	if (facts->asked && facts->saved)
		return deadline->began;
	needed = smaller(RESERVE, window / 3);
	if (facts->rate > 0)
		needed += time_for(facts->bytes, facts->rate);
	else if (facts->bytes > 0)
		needed += window / 4;
	return deadline->when - smaller(needed, window);
}

uint64_t
deadline_last_upload(const struct deadline *deadline)
{
	uint64_t window = deadline->when - deadline->began;

	return deadline->when - smaller(CLOSE_RESERVE, window / 20);
}

unsigned
deadline_step(struct deadline *deadline, uint64_t now,
    const struct deadline_facts *facts)
{
	unsigned wanted = 0;

	if (deadline->state != DEADLINE_RUNNING)
		return 0;
	wanted |= DEADLINE_LIFT;
	if (facts->trainer && now >= deadline_stop_time(deadline, facts))
		wanted |= DEADLINE_STOP;
	if (facts->trainer && now >= deadline->when)
		wanted |= DEADLINE_KILL;
	if ((!facts->trainer && facts->flushed) || now >= deadline->when)
		wanted |= DEADLINE_END;
	wanted &= ~deadline->said;
	deadline->said |= wanted;
	if (wanted & DEADLINE_END)
		deadline->state = DEADLINE_DONE;
	return wanted;
}

enum deadline_plan
deadline_plan(uint64_t left, uint64_t rate, uint64_t flying, uint64_t newest)
{
	if (rate == 0)
		return DEADLINE_PLAN_BOTH;
	if (time_for(flying, rate) + time_for(newest, rate) <= left)
		return DEADLINE_PLAN_BOTH;
	if (time_for(newest, rate) <= left || newest < flying)
		return DEADLINE_PLAN_NEWEST;
	return DEADLINE_PLAN_FLYING;
}
