#ifndef LIFE_DEADLINE_H
#define LIFE_DEADLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What has to happen before this machine goes, and when (DESIGN 8): a small
 * state machine without clock or system calls.  Whoever hears of the end
 * (SIGTERM; a cloud's notice) feeds it; the agent does what it says.
 */

enum deadline_state {
	DEADLINE_NORMAL,
	DEADLINE_HINT,		/* the end has become likelier: upload sooner */
	DEADLINE_RUNNING,
	DEADLINE_DONE		/* there is nothing more to do */
};

/* What to do now; each is said once. */
enum deadline_action {
	DEADLINE_LIFT = 1,	/* lift every limit, tell the trainer (save signal) */
	DEADLINE_STOP = 2,	/* send the stop signal */
	DEADLINE_KILL = 4,	/* the trainer does not end: kill it */
	DEADLINE_END = 8,	/* commit no more, write close.json, end */
	DEADLINE_SAVE = 16	/* there is time for one more save: ask again */
};

/* How things stand. */
struct deadline_facts {
	bool trainer;		/* it is alive */
	bool asked;		/* a save signal was sent to it */
	bool saved;		/* a save that completed after that is durable */
	bool stays;		/* somebody else's trainer may save until the end */
	bool flushed;		/* all that is complete is durable, after a scan that
				 * began when the trainer had ended (or there is none) */
	uint64_t bytes;		/* what the last save will have to send; 0: unknown */
	uint64_t rate;		/* measured, bytes a second; 0: unknown */
	uint64_t round;		/* ns from the save signal to durable; 0: unknown */
};

struct deadline {
	enum deadline_state state;
	uint64_t began;		/* clock_monotonic() of the notice */
	uint64_t when;		/* and of the end */
	unsigned said;		/* actions */
	uint64_t again;		/* when to ask for one more save; 0: not decided,
				 * UINT64_MAX: never */
};

/**
 * deadline_hint(deadline):
 * The end has become likelier.  Nothing is stopped.
 */
void deadline_hint(struct deadline *deadline);

/**
 * deadline_notice(deadline, now, when):
 * This machine goes at ${when}.  An earlier end that is known already stays.
 */
void deadline_notice(struct deadline *deadline, uint64_t now, uint64_t when);

/**
 * deadline_withdraw(deadline):
 * No machine goes: normal again.  Does nothing once all is done.
 */
void deadline_withdraw(struct deadline *deadline);

/**
 * deadline_stop_time(deadline, facts):
 * When to send the stop signal: so that, at the measured speed and a quarter
 * more, the save that it causes can go up; at the last moment when no save
 * could; at once when a save that was asked for is durable.
 */
uint64_t deadline_stop_time(const struct deadline *deadline,
    const struct deadline_facts *facts);

/**
 * deadline_kill_time(deadline):
 * When to kill a trainer that has not ended: so that there is time to look at
 * what it left and to write close.json.
 */
uint64_t deadline_kill_time(const struct deadline *deadline);

/**
 * deadline_step(deadline, now, facts):
 * What to do now, as a set of enum deadline_action.
 */
unsigned deadline_step(struct deadline *deadline, uint64_t now,
    const struct deadline_facts *facts);

/**
 * deadline_last_upload(deadline):
 * When an upload must have ended, so that close.json can still be written.
 */
uint64_t deadline_last_upload(const struct deadline *deadline);

/* Something that is complete and not durable. */
struct deadline_item {
	uint64_t order;		/* of completion */
	uint64_t left;		/* bytes that are still to be sent */
	bool resumes;		/* a trainer would go on from it */
	bool flying;		/* it is being sent; at most one */
};

#define DEADLINE_NONE SIZE_MAX

/**
 * deadline_choose(items, count, left, rate):
 * What to send now, of ${count} ${items}, when ${left} ns are left at ${rate}
 * bytes a second (0: unknown): the index of the newest that can make it,
 * after what is in flight if both can; what a trainer goes on from before all
 * else.  DEADLINE_NONE when nothing can make it: no request is spent on that.
 */
size_t deadline_choose(const struct deadline_item *items, size_t count,
    uint64_t left, uint64_t rate);

#endif
