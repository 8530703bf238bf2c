#ifndef LIFE_SUPERVISOR_PRIVATE_H
#define LIFE_SUPERVISOR_PRIVATE_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "life/loop.h"
#include "life/state.h"
#include "life/supervisor.h"
#include "life/trainer.h"

/*
 * What the files of the supervisor share: supervisor.c (the trainer and the
 * signals), supervisor_agent.c (the agent process), supervisor_deadline.c.
 */
struct supervisor {
	const struct settings *settings;
	struct place *place;
	struct loop *loop;
	sigset_t mask;			/* as this process was started */
	struct supervisor_end end;
	bool finished;

	pid_t agent;			/* 0: none runs */
	int link;			/* to it, -1: none */
	bool heard_end;			/* it has said how it ended */
	unsigned deaths;		/* in a row */
	uint64_t born;			/* clock_monotonic() */
	struct loop_timer rebirth;
	struct state remembered;	/* the last term it opened */

	struct trainer trainer;
	bool trainer_begun;		/* it was started, or could not be */
	bool trainer_over;		/* and has ended, with what it left */
	bool stop_sent;
	unsigned interrupts;
	struct loop_timer linger;

	uint64_t deadline;		/* clock_monotonic(), 0: none */
	uint64_t term_deadline;		/* the same, of SIGTERM */
	struct loop_timer stop_at;
	struct loop_timer kill_at;
	struct loop_timer give_up_at;
};

/**
 * supervisor_start_agent(supervisor, error): fork it.  Return 0 or -1.
 */
int supervisor_start_agent(struct supervisor *supervisor, struct error *error);

/**
 * supervisor_agent_ended(supervisor, status): waitpid's status of it.
 */
void supervisor_agent_ended(struct supervisor *supervisor, int status);

/**
 * supervisor_listen(supervisor): hear all that the agent said.
 */
void supervisor_listen(void *supervisor);

/**
 * supervisor_notice(supervisor, left, tell):
 * This machine goes in ${left} ns; ${tell} the agent too.
 */
void supervisor_notice(struct supervisor *supervisor, uint64_t left, bool tell);

/**
 * supervisor_withdraw(supervisor): it does not, says the agent.
 */
void supervisor_withdraw(struct supervisor *supervisor);

/**
 * supervisor_wait_for_agent(supervisor):
 * It was told to end: end without it when it takes longer than a moment.
 */
void supervisor_wait_for_agent(struct supervisor *supervisor);

/**
 * supervisor_stop_trainer(supervisor): the stop signal, once.
 */
void supervisor_stop_trainer(struct supervisor *supervisor);

/**
 * supervisor_finish(supervisor): end the loop.
 */
void supervisor_finish(struct supervisor *supervisor);

#endif
