#include "life/deadline.h"

#include <assert.h>

#include "base/clock.h"

/* For the save itself and the commit, unless the whole time is short. */
#define RESERVE (5 * CLOCK_SECOND)
#define CLOSE_RESERVE CLOCK_SECOND

/* For the last scan, and the upload of something small. */
#define LOOK_RESERVE CLOCK_SECOND

/* One more save is worth the trainer's pause when this much training lies
 * between it and the one before. */
#define WORTH_A_SAVE (10 * CLOCK_SECOND)

/* The manifest's PUT and the listing after it. */
#define COMMIT_TIME (CLOCK_SECOND / 2)

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

void
deadline_withdraw(struct deadline *deadline)
{
	if (deadline->state == DEADLINE_DONE)
		return;
	*deadline = (struct deadline){ .state = DEADLINE_NORMAL };
}

static uint64_t
reserve(const struct deadline *deadline)
{
	return smaller(RESERVE, (deadline->when - deadline->began) / 3);
}

uint64_t
deadline_stop_time(const struct deadline *deadline,
    const struct deadline_facts *facts)
{
	uint64_t window = deadline->when - deadline->began;
	uint64_t needed = reserve(deadline);

	if (facts->asked && facts->saved)
		return deadline->began;
	if (facts->rate > 0)
		needed += time_for(facts->bytes, facts->rate);
	else if (facts->bytes > 0)
		needed += window / 4;
	/* What cannot make it in any case is no reason to stop early. */
	if (needed > window)
		needed = reserve(deadline);
	return deadline->when - needed;
}

/* Whether a durable save is followed by a second one, later in the window. */
static void
decide_again(struct deadline *deadline, uint64_t now,
    const struct deadline_facts *facts)
{
	uint64_t needed = facts->round + facts->round / 4 + reserve(deadline);
	uint64_t least = facts->round > WORTH_A_SAVE ? facts->round :
	    WORTH_A_SAVE;

	if (deadline->again != 0)
		return;
	deadline->again = CLOCK_NEVER;
	if (facts->round > 0 && needed < deadline->when - deadline->began &&
	    deadline->when - needed > now + least)
		deadline->again = deadline->when - needed;
}

static bool
wants_stop(struct deadline *deadline, uint64_t now,
    const struct deadline_facts *facts)
{
	if (facts->asked && facts->saved) {
		decide_again(deadline, now, facts);
		if (deadline->again != CLOCK_NEVER &&
		    !(deadline->said & DEADLINE_SAVE))
			return false;
	}
	return now >= deadline_stop_time(deadline, facts);
}

uint64_t
deadline_last_upload(const struct deadline *deadline)
{
	uint64_t window = deadline->when - deadline->began;

	return deadline->when - smaller(CLOSE_RESERVE, window / 20);
}

uint64_t
deadline_kill_time(const struct deadline *deadline)
{
	uint64_t window = deadline->when - deadline->began;

	return deadline_last_upload(deadline) -
	    smaller(LOOK_RESERVE, window / 10);
}

unsigned
deadline_step(struct deadline *deadline, uint64_t now,
    const struct deadline_facts *facts)
{
	unsigned wanted = 0;
	bool over;

	if (deadline->state != DEADLINE_RUNNING)
		return 0;
	wanted |= DEADLINE_LIFT;
	if (facts->trainer && wants_stop(deadline, now, facts))
		wanted |= DEADLINE_STOP;
	if (facts->trainer && facts->saved && deadline->again != 0 &&
	    now >= deadline->again)
		wanted |= DEADLINE_SAVE;
	over = now >= deadline_last_upload(deadline);
	if (facts->trainer && now >= deadline_kill_time(deadline))
		wanted |= DEADLINE_KILL;
	if ((!facts->trainer && !facts->stays && facts->flushed) || over)
		wanted |= DEADLINE_END;
	wanted &= ~deadline->said;
	deadline->said |= wanted;
	if (wanted & DEADLINE_END)
		deadline->state = DEADLINE_DONE;
	return wanted;
}

enum chance { HOPELESS, DOUBTFUL, LIKELY };

/* Estimates are never exact: between yes and no lies a fifth. */
static enum chance
chance_of(uint64_t bytes, uint64_t left, uint64_t rate)
{
	double needed;

	if (rate == 0)
		return DOUBTFUL;
	needed = (double)bytes / (double)rate * (double)CLOCK_SECOND;
	if (needed * 1.05 + (double)COMMIT_TIME <= (double)left)
		return LIKELY;
	return needed * 0.85 <= (double)left ? DOUBTFUL : HOPELESS;
}

/* Whether ${a} is to be preferred when both have the same chance. */
static bool
matters_more(const struct deadline_item *a, const struct deadline_item *b)
{
	if (a->resumes != b->resumes)
		return a->resumes;
	return a->order > b->order;
}

size_t
deadline_choose(const struct deadline_item *items, size_t count,
    uint64_t left, uint64_t rate)
{
	size_t i, best = DEADLINE_NONE, flying = DEADLINE_NONE;
	enum chance chance, best_chance = HOPELESS;
	uint64_t both;

	for (i = 0; i < count; i++) {
		if (items[i].flying)
			flying = i;
		chance = chance_of(items[i].left, left, rate);
		if (chance == HOPELESS || chance < best_chance ||
		    (chance == best_chance &&
		    !matters_more(&items[i], &items[best])))
			continue;
		best = i;
		best_chance = chance;
	}
	if (flying == DEADLINE_NONE || best == DEADLINE_NONE ||
	    flying == best)
		return best;
	/* Nothing is known: nothing is given up. */
	if (rate == 0)
		return flying;
	both = items[flying].left > UINT64_MAX - items[best].left ?
	    UINT64_MAX : items[flying].left + items[best].left;
	if (matters_more(&items[best], &items[flying]) &&
	    chance_of(both, left, rate) == LIKELY)
		return flying;
	return best;
}
