#ifndef LIFE_AGENT_PRIVATE_H
#define LIFE_AGENT_PRIVATE_H

#include <sys/types.h>

#include "life/agent.h"
#include "life/candidates.h"
#include "life/control.h"
#include "life/deadline.h"
#include "life/flush.h"
#include "life/loop.h"
#include "life/report.h"
#include "life/start.h"

struct rate;
struct sweeper;
struct uploads;
struct watch;

/*
 * What the files of the agent share: agent.c (its life, and the one place
 * where it decides), agent_watch.c (what the directory says), agent_upload.c
 * (what goes up), agent_talk.c (control socket, supervisor), agent_end.c
 * (notice, flush, end).
 */

/* One `push` of another process that waits. */
struct push {
	struct control_client *client;
	struct flush flush;
	struct push *next;
};

/* A checkpoint that is not complete yet. */
struct unsettled {
	char *name;
	char *path;	/* something of it, to see whether it is still there */
	struct unsettled *next;
};

enum agent_phase { AGENT_STARTING, AGENT_RUNNING, AGENT_CLOSING };

struct agent {
	struct agent_needs needs;
	struct agent_outcome *outcome;
	enum agent_phase phase;
	int usual_nice;
	struct loop *loop;
	struct control *control;
	struct start *start;
	struct start_result *begun;	/* the backend, the writer, what is known */
	struct watch *watch;
	struct uploads *uploads;
	struct sweeper *sweeper;
	struct rate *rate;

	/* What goes up. */
	struct candidates *candidates;
	struct candidate *flying;	/* NULL: nothing is in flight */
	uint64_t batch;
	uint64_t scan;			/* token of the scan that runs, 0: none */
	uint64_t tokens;
	unsigned beats;
	struct unsettled *unsettled;
	uint64_t measured;		/* bytes a second, 0: unknown */
	uint64_t last_bytes;		/* new bytes of the last resume candidate */
	uint64_t durable_count;

	/* The trainer. */
	pid_t trainer;			/* 0: none (yet) */
	bool trainer_over;
	int trainer_fd;			/* pidfd once the supervisor is gone, -1 */

	/* The end. */
	struct deadline deadline;
	uint64_t noticed_order;		/* last candidate before the notice */
	uint64_t notice_scan;		/* token; 0: none, or it is over */
	bool saved;			/* see struct deadline_facts */
	bool ending;			/* end_flush has begun */
	struct flush end_flush;
	bool superseded;
	int class;			/* once phase is AGENT_CLOSING */
	bool close_sent;
	unsigned interrupts;
	const char *how;		/* for close.json */

	struct push *pushes;
	struct report_line line;
	json_t *events;			/* AGENT_PUSH: name -> last event */

	struct loop_timer turn_at;
	struct loop_timer beat;
	struct loop_timer superseded_beat;
	struct loop_timer over_at;
};

/**
 * agent_turn(agent):
 * Decide what is to be done now, as things stand, and do it.  Called after
 * everything that happens.
 */
void agent_turn(void *agent);

/**
 * agent_over(agent): the loop ends.
 */
void agent_over(void *agent);

/* agent_watch.c */

/**
 * agent_watch_begin(agent, error): watch the directory.  Return 0 or -1.
 */
int agent_watch_begin(struct agent *agent, struct error *error);

/**
 * agent_scan(agent): ask for a scan and return its token.
 */
uint64_t agent_scan(struct agent *agent);

/**
 * agent_has_unsettled(agent): whether something that is not complete yet still
 * lies there.
 */
bool agent_has_unsettled(struct agent *agent);
void agent_forget_unsettled(struct agent *agent, const char *name);

/* agent_upload.c */

/**
 * agent_send_next(agent): send the next candidate when nothing is in flight.
 * agent_replan(agent): a deadline runs: give up what is in flight for what
 * matters more, if that can make it.
 * agent_uploaded(agent): results came.
 */
void agent_send_next(struct agent *agent);
void agent_replan(struct agent *agent);
void agent_uploaded(void *agent);

/**
 * agent_flush_facts(agent): how things stand.
 */
struct flush_facts agent_flush_facts(struct agent *agent);

/**
 * agent_supersede(agent, error): a newer agent has taken over.
 */
void agent_supersede(struct agent *agent, const struct error *error);

/* agent_talk.c */

/**
 * agent_talk_begin(agent, error): listen to whoever may ask.  Return 0 or -1.
 */
int agent_talk_begin(struct agent *agent, struct error *error);

/**
 * agent_say_ready(agent): tell the supervisor that the start is over.
 */
void agent_say_ready(struct agent *agent);

/**
 * agent_tell(agent, event): an event for all who wait for a push; the
 * reference is taken, NULL is fine.
 */
void agent_tell(struct agent *agent, json_t *event);

/**
 * agent_check_pushes(agent): answer those whose flush is over.
 * agent_end_pushes(agent): answer all, as the agent ends.
 */
void agent_check_pushes(struct agent *agent);
void agent_end_pushes(struct agent *agent);

/**
 * agent_beat(agent): every second: progress.
 */
void agent_beat(void *agent);

/**
 * agent_signal_trainer(agent, number) / agent_stop_trainer(agent): through the
 * supervisor, or directly when that is gone.
 */
void agent_signal_trainer(struct agent *agent, int number);
void agent_stop_trainer(struct agent *agent);

/* agent_end.c */

/**
 * agent_notice(agent, left): this machine goes in ${left} ns.
 * agent_begin_flush(agent, how): make all durable, then end; ${how} goes into
 * close.json.
 * agent_end(agent, class): end now.
 * agent_check_end(agent): whether it is time for any of that.
 */
void agent_notice(struct agent *agent, uint64_t left);
void agent_begin_flush(struct agent *agent, const char *how);
void agent_end(struct agent *agent, int class);
void agent_check_end(struct agent *agent);

/**
 * agent_class(agent): 0, ERROR_SUPERSEDED or ERROR_NOT_DURABLE, as things
 * stand; fills the outcome's error.
 */
int agent_class(struct agent *agent);

#endif
