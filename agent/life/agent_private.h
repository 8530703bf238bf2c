#ifndef LIFE_AGENT_PRIVATE_H
#define LIFE_AGENT_PRIVATE_H

#include <sys/types.h>

#include "life/agent.h"
#include "life/candidates.h"
#include "life/causes.h"
#include "life/control.h"
#include "life/deadline.h"
#include "life/flush.h"
#include "life/loop.h"
#include "life/report.h"
#include "life/speed.h"
#include "life/start.h"
#include "store/manifest.h"

struct hooks;
struct notice;
struct notice_watch;
struct rate;
struct sweeper;
struct uploads;
struct watch;

/*
 * What the files of the agent share: agent.c (its life, and the one place
 * where it decides), agent_watch.c (what the directory says), agent_upload.c
 * (what goes up), agent_plan.c (what matters while a deadline runs),
 * agent_talk.c (control socket, supervisor), agent_said.c (what it said),
 * agent_status.c (what `status` says), agent_notice.c (who says that this
 * machine goes), agent_end.c (flush, end).
 */

/* One `push` or `flush` of another process. */
struct push {
	struct control_client *client;
	struct flush flush;
	uint64_t until;		/* clock_monotonic(): then it is not durable */
	struct push *next;
};

/* A checkpoint that is not complete yet. */
struct unsettled {
	char *name;
	char *path;	/* something of it, to see whether it is still there */
	bool written;	/* somebody is writing it */
	char *unreadable;	/* why it cannot be read; NULL: it can */
	struct timespec changed;	/* wall time of its last change */
	struct unsettled *next;
};

/* A checkpoint that `status` speaks of. */
struct landmark {
	char *name;		/* NULL: none yet */
	char id[MANIFEST_ID_SIZE];	/* "": not known */
	bool has_step;
	uint64_t step;
	uint64_t size;
	struct timespec completed;
};

/* What can be seen of a cloud's notices. */
struct sight_of_cloud {
	enum { SIGHT_UNKNOWN, SIGHT_SEEING, SIGHT_BLIND, SIGHT_OFF } state;
	char cloud[32];
	uint64_t window;	/* ns, 0: unknown */
	char cause[160];	/* SIGHT_BLIND: a word or two */
	struct error error;
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
	struct error unseen;		/* a folder that cannot be read */
	struct speed speed;
	bool speed_proven;		/* measured since the notice */
	uint64_t passed_before;		/* rate_passed when it began to fly */
	bool giving_way;		/* it was cancelled for another one */
	uint64_t last_bytes;		/* new bytes of the last resume candidate */
	uint64_t last_size;		/* all bytes of it */
	uint64_t last_seen;		/* clock_monotonic(): when it was saved */
	bool habit_said;
	struct landmark newest;		/* complete */
	struct landmark durable;
	uint64_t durable_count;

	/* The trainer. */
	pid_t trainer;			/* 0: none (yet) */
	bool trainer_over;
	int trainer_fd;			/* pidfd once the supervisor is gone, -1 */

	/* The end. */
	struct deadline deadline;
	struct causes causes;
	struct notice_watch *notices;	/* NULL: not watched */
	struct sight_of_cloud sight;
	struct hooks *hooks;
	bool hinted;
	bool known_told;		/* the deadline known beforehand is a cause */
	uint64_t noticed_order;		/* last candidate before the save signal */
	uint64_t asked_at;		/* clock_monotonic() of the save signal */
	uint64_t round;			/* see struct deadline_facts */
	bool acknowledged;
	uint64_t beaten;		/* clocks at the last beat, to see a freeze */
	uint64_t frozen;		/* boot minus monotonic */
	struct timespec beaten_wall;
	uint64_t notice_scan;		/* token; 0: none, or it is over */
	bool saved;			/* see struct deadline_facts */
	bool ending;			/* end_flush has begun */
	struct flush end_flush;
	bool superseded;
	int class;			/* once phase is AGENT_CLOSING */
	bool close_sent;
	bool closed;			/* close.json is there */
	unsigned interrupts;
	const char *how;		/* for close.json */

	struct push *pushes;
	struct report_line line;
	json_t *events;			/* name -> last event */
	json_t *places;			/* name -> {name, path}, see agent_said.c */
	size_t places_many;		/* left at the last clearing */

	struct loop_timer turn_at;
	struct loop_timer beat;
	struct loop_timer superseded_beat;
	struct loop_timer over_at;
	bool over;			/* only hooks and clouds are waited for */
	uint64_t last_wait;		/* not before */
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
 * agent_has_unsettled(agent): whether something that is not complete yet, and
 * no old leftover, still lies there.
 */
bool agent_has_unsettled(struct agent *agent);
void agent_forget_unsettled(struct agent *agent, const char *name);

/**
 * agent_unreadable(agent): one that lies there and cannot be read, which may
 * well be complete; NULL: none.
 */
const struct unsettled *agent_unreadable(const struct agent *agent);

/**
 * agent_is_blind(agent): whether a folder still cannot be read; agent->unseen
 * says which.
 */
bool agent_is_blind(struct agent *agent);

/**
 * agent_push_class(agent): agent_class for a push, which answers for what
 * cannot be read as well.
 */
int agent_push_class(struct agent *agent);

/* agent_said.c: what was said last of each checkpoint that lies here. */

/**
 * agent_note_place(agent, checkpoint): it was seen.
 * agent_note_event(agent, event): it was said.
 * agent_tell_again(agent, client): say it to one who came later.
 */
void agent_note_place(struct agent *agent, const struct checkpoint *checkpoint);
void agent_note_event(struct agent *agent, json_t *event);
void agent_tell_again(struct agent *agent, struct control_client *client);

/* agent_upload.c */

/**
 * agent_send_next(agent): send the next candidate when nothing is in flight.
 * agent_send(agent, candidate): this one; nothing is in flight.
 * agent_uploaded(agent): results came.
 */
void agent_send_next(struct agent *agent);
void agent_send(struct agent *agent, struct candidate *candidate);
void agent_uploaded(void *agent);

/**
 * agent_flush_facts(agent): how things stand.
 */
struct flush_facts agent_flush_facts(struct agent *agent);

/**
 * agent_supersede(agent, error): a newer agent has taken over.
 */
void agent_supersede(struct agent *agent, const struct error *error);

/* agent_plan.c */

/**
 * agent_plan(agent): a deadline runs: see that what matters most of what can
 * make it is in flight, and nothing else.
 * agent_flying_left(agent): bytes that are still to be handed to the wire of
 * what is in flight; 0: nothing is.
 * agent_left(agent, candidate): the same of one that waits, as far as known.
 * agent_measure(agent): look how fast the wire is.
 */
void agent_plan(struct agent *agent);
uint64_t agent_flying_left(struct agent *agent);
uint64_t agent_left(const struct agent *agent,
    const struct candidate *candidate);
void agent_measure(struct agent *agent);

/* agent_status.c */

/**
 * agent_status(agent, class):
 * What `status` says, as an object, and its exit code; NULL: out of memory.
 */
json_t *agent_status(struct agent *agent, int *class);

/**
 * agent_mark(mark, checkpoint, id): ${mark} is ${checkpoint} now.
 */
void agent_mark(struct landmark *mark, const struct checkpoint *checkpoint,
    const char *id);

/**
 * agent_window(agent): how long before the end it is said here, ns.
 * agent_check_habit(agent, interval): say once when the trainer's saves, which
 * come every ${interval} ns (0: unknown), do not fit that or the wire.
 */
uint64_t agent_window(const struct agent *agent);
void agent_check_habit(struct agent *agent, uint64_t interval);

/* agent_talk.c */

/**
 * agent_phase(agent): what it is doing, in a word.
 */
const char *agent_phase(const struct agent *agent);

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

/* agent_notice.c */

/**
 * agent_notice_begin(agent, error): watch the cloud.  Return 0 or -1.
 */
int agent_notice_begin(struct agent *agent, struct error *error);

/**
 * agent_notice(agent, cause, tell):
 * This machine goes; ${tell} the supervisor.
 * agent_notice_of(agent, source, reason, left): the same, in ${left} ns, of
 * somebody who never takes it back; tells the supervisor unless ${source} is
 * NULL: then it told us.
 * agent_withdraw(agent, id): it does not.
 */
void agent_notice(struct agent *agent, const struct cause *cause, bool tell);
void agent_notice_of(struct agent *agent, const char *source,
    const char *reason, uint64_t left);
void agent_withdraw(struct agent *agent, const char *id);

/**
 * agent_notice_beat(agent): every second: the deadline known beforehand, and
 * whether the machine was frozen.
 */
void agent_notice_beat(struct agent *agent);

/**
 * agent_acknowledge(agent): all is written: tell the cloud, if that was asked
 * for.  Return whether to wait a moment for it.
 */
bool agent_acknowledge(struct agent *agent);

/**
 * agent_failed(agent, checkpoint, message): the hook --on-error; ${checkpoint}
 * may be NULL.
 */
void agent_failed(struct agent *agent, const char *checkpoint,
    const char *message);

/* agent_end.c */

/**
 * agent_begin_flush(agent, how): make all durable, then end; ${how} goes into
 * close.json.
 * agent_end(agent, class): end now.
 * agent_check_end(agent): whether it is time for any of that.
 */
void agent_begin_flush(struct agent *agent, const char *how);
void agent_end(struct agent *agent, int class);
void agent_check_end(struct agent *agent);

/**
 * agent_class(agent): 0, ERROR_SUPERSEDED or ERROR_NOT_DURABLE, as things
 * stand; fills the outcome's error.
 */
int agent_class(struct agent *agent);

#endif
