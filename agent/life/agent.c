#include "life/agent_private.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rate.h"
#include "base/unit.h"
#include "life/courtesy.h"
#include "life/hooks.h"
#include "life/link.h"
#include "life/place.h"
#include "life/settings.h"
#include "life/sweeper.h"
#include "life/uploads.h"
#include "notice/notice.h"
#include "store/backend.h"
#include "store/writer.h"
#include "watch/watch.h"

/* How long threads may take to end; then the process ends without them. */
#define JOIN_TIME (3 * CLOCK_SECOND)

static void
superseded_by_sweeper(void *context)
{
	struct agent *agent = context;
	struct error error = ERROR_INIT;

	if (sweeper_superseded(agent->sweeper, &error))
		agent_supersede(agent, &error);
	agent_turn(agent);
}

static int
begin_working(struct agent *agent, struct error *error)
{
	struct uploads_needs needs = {
		.settings = agent->needs.settings,
		.folder = place_folder(agent->needs.place),
		.backend = agent->begun->backend,
		.writer = agent->begun->writer,
		.rate = agent->rate,
		.save_attempt = (uint64_t)clock_wall().tv_sec,
	};

	if ((agent->uploads = uploads_start(&needs, error)) == NULL ||
	    loop_watch(agent->loop, uploads_fd(agent->uploads), POLLIN,
	    agent_uploaded, agent, error) != 0 ||
	    (agent->sweeper = sweeper_start(agent->begun->writer,
	    error)) == NULL ||
	    loop_watch(agent->loop, sweeper_fd(agent->sweeper), POLLIN,
	    superseded_by_sweeper, agent, error) != 0)
		return -1;
	return agent_watch_begin(agent, error);
}

static void
say_begun(struct agent *agent)
{
	const struct state *state = &agent->begun->state;

	log_event(LOG_INFO, "began", LOG_FIELDS(
	    LOG_NUMBER_FIELD("term", state->term.number),
	    LOG_TEXT_FIELD("remote", agent->begun->backend->name)),
	    "%s is kept in %s (term %" PRIu32 ")%s",
	    place_folder(agent->needs.place), agent->begun->backend->name,
	    state->term.number, writer_is_weak(agent->begun->writer) ?
	    "; this store is only eventually consistent: nothing is deleted, "
	    "and what is committed is not provably durable" : "");
	if (agent->needs.link >= 0) {
		char random[17];

		snprintf(random, sizeof(random), "%016" PRIx64,
		    state->term.random);
		link_say(agent->needs.link, "{s:s, s:I, s:s, s:{s:I, s:I}}",
		    "say", "term", "term", (json_int_t)state->term.number,
		    "random", random, "opened",
		    "s", (json_int_t)state->opened.tv_sec,
		    "ns", (json_int_t)state->opened.tv_nsec);
	}
}

/* A deadline began while the start was at its end. */
static void
catch_up(struct agent *agent)
{
	uploads_deadline(agent->uploads,
	    deadline_last_upload(&agent->deadline));
	if (agent->needs.trainer_begun)
		agent->notice_scan = agent_scan(agent);
	else
		agent_begin_flush(agent, "preempted");
}

/* The start is over, well or not. */
static void
begun(void *context)
{
	struct agent *agent = context;
	struct error error;

	if ((agent->begun = start_take(agent->start)) == NULL)
		return;
	loop_forget(agent->loop, start_fd(agent->start));
	report_line_clear(&agent->line);
	error = agent->begun->error;
	if (error.class == ERROR_NONE) {
		say_begun(agent);
		if (begin_working(agent, &error) == 0) {
			agent->phase = AGENT_RUNNING;
			agent_say_ready(agent);
			if (agent->needs.mode == AGENT_PUSH)
				agent_begin_flush(agent, "pushed");
			else if (agent->deadline.state == DEADLINE_RUNNING)
				catch_up(agent);
		}
	} else if (error.class == ERROR_SUPERSEDED &&
	    agent->needs.trainer_begun) {
		/* The trainer goes on; so does the reminder. */
		agent->phase = AGENT_RUNNING;
		agent_say_ready(agent);
		agent_supersede(agent, &error);
		error_clear(&error);
	}
	if (error.class != ERROR_NONE) {
		agent->outcome->error = error;
		/* `push` prints its own. */
		if (error.cause != CAUSE_CANCELLED &&
		    agent->needs.mode != AGENT_PUSH)
			log_failure(LOG_ERROR, "not_started", &error);
		agent_end(agent, error.cause == CAUSE_CANCELLED ?
		    agent_class(agent) : (int)error.class);
		return;
	}
	agent_turn(agent);
}

/* For a cloud to hear that it may go on. */
#define ACKNOWLEDGE_TIME (CLOCK_SECOND + CLOCK_SECOND / 2)

/* What hooks that still run get when all else is done. */
#define HOOKS_TIME (2 * CLOCK_SECOND)

void
agent_over(void *context)
{
	struct agent *agent = context;
	uint64_t now = clock_monotonic();

	agent_end_pushes(agent);
	if (agent_acknowledge(agent))
		agent->last_wait = now + ACKNOWLEDGE_TIME;
	if (!agent->over) {
		agent->over = true;
		hooks_deadline(agent->hooks, now + HOOKS_TIME);
	}
	if (agent->interrupts < 2 &&
	    (now < agent->last_wait || hooks_busy(agent->hooks))) {
		loop_timer_set(agent->loop, &agent->over_at,
		    now + CLOCK_SECOND / 20, agent_over, agent);
		return;
	}
	if (agent->needs.link >= 0)
		link_say(agent->needs.link, "{s:s, s:i}", "say", "end",
		    "class", agent->class);
	loop_stop(agent->loop);
}

/* When something has to be decided again although nothing happened. */
static uint64_t
next_turn(struct agent *agent)
{
	uint64_t now = clock_monotonic(), next = CLOCK_NEVER, each;
	struct push *push;

	if (agent->deadline.state == DEADLINE_RUNNING) {
		next = now + CLOCK_SECOND / 5;
		each = deadline_last_upload(&agent->deadline);
		if (each > now && each < next)
			next = each;
	}
	if (agent->phase == AGENT_RUNNING && agent->flying == NULL &&
	    (each = candidates_next(agent->candidates)) < next)
		next = each;
	if (agent->ending && agent->end_flush.state == FLUSH_SETTLING &&
	    agent->end_flush.again < next)
		next = agent->end_flush.again;
	for (push = agent->pushes; push != NULL; push = push->next) {
		if (push->flush.state == FLUSH_SETTLING &&
		    push->flush.again < next)
			next = push->flush.again;
		if (push->until < next)
			next = push->until;
	}
	/* Never spin, whatever is due. */
	return next < now + CLOCK_SECOND / 50 ? now + CLOCK_SECOND / 50 : next;
}

void
agent_turn(void *context)
{
	struct agent *agent = context;
	uint64_t next;

	if (agent->phase != AGENT_CLOSING) {
		agent_send_next(agent);
		agent_check_pushes(agent);
		agent_check_end(agent);
	}
	next = next_turn(agent);
	if (agent->phase == AGENT_CLOSING || next == CLOCK_NEVER)
		loop_timer_stop(agent->loop, &agent->turn_at);
	else
		loop_timer_set(agent->loop, &agent->turn_at, next, agent_turn,
		    agent);
}

static void
signal_came(void *context, const struct signalfd_siginfo *info)
{
	struct agent *agent = context;
	bool daemon = agent->needs.mode == AGENT_DAEMON;

	if (info->ssi_signo == SIGCONT) {
		agent_notice_beat(agent);
		return;
	}
	if (info->ssi_signo == SIGTERM && agent->needs.mode != AGENT_PUSH) {
		agent_notice_of(agent, "SIGTERM", "",
		    agent->needs.settings->grace);
		agent_turn(agent);
		return;
	}
	/* Under the supervisor SIGINT is its business. */
	if (agent->needs.mode == AGENT_TRAINER)
		return;
	if (daemon && agent->interrupts++ == 0 &&
	    agent->phase == AGENT_RUNNING) {
		log_line(LOG_INFO, "interrupted", "stopping when all is "
		    "durable, at full speed; once more stops at once");
		/* Somebody waits for it. */
		rate_set(agent->rate, 0);
		agent_begin_flush(agent, "stopped");
		agent_turn(agent);
		return;
	}
	report_line_clear(&agent->line);
	log_line(LOG_WARNING, "interrupted", "stopped at once");
	agent_end(agent, agent_class(agent));
}

static int
set_up(struct agent *agent, struct error *error)
{
	const struct settings *settings = agent->needs.settings;
	bool beside_trainer = agent->needs.mode != AGENT_TRAINER ||
	    agent->needs.trainer_begun;
	struct start_needs needs = {
		.settings = settings,
		.folder = place_folder(agent->needs.place),
		.state_path = place_state(agent->needs.place),
		.remembered = agent->needs.remembered,
		.tidy = !beside_trainer,
		.again = agent->needs.trainer_begun,
		.give_up = !beside_trainer ? settings->start_timeout :
		    agent->needs.mode == AGENT_PUSH ? CLOCK_SECOND :
		    CLOCK_NEVER,
	};
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGCONT);
	signal(SIGPIPE, SIG_IGN);
	if ((agent->candidates = candidates_new()) == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the agent");
	if ((agent->loop = loop_new(error)) == NULL ||
	    loop_signals(agent->loop, &signals, signal_came, agent,
	    error) != 0 ||
	    (agent->rate = rate_new(settings->limit_rate, error)) == NULL ||
	    (agent->hooks = hooks_new(agent->loop, error)) == NULL ||
	    agent_notice_begin(agent, error) != 0 ||
	    agent_talk_begin(agent, error) != 0 ||
	    (agent->start = start_begin(&needs, error)) == NULL ||
	    loop_watch(agent->loop, start_fd(agent->start), POLLIN, begun,
	    agent, error) != 0)
		return -1;
	loop_timer_set(agent->loop, &agent->beat,
	    clock_monotonic() + CLOCK_SECOND, agent_beat, agent);
	return 0;
}

/* Free all, or leave it to the end of the process when a thread hangs. */
static void
tear_down(struct agent *agent)
{
	uint64_t until = clock_monotonic() + JOIN_TIME;
	struct push *push;

	control_free(agent->control);
	hooks_free(agent->hooks);
	notice_free(agent->notices);
	free(agent->newest.name);
	free(agent->durable.name);
	while ((push = agent->pushes) != NULL) {
		agent->pushes = push->next;
		free(push);
	}
	json_decref(agent->events);
	json_decref(agent->places);
	if (start_free(agent->start, until) != 0 ||
	    uploads_stop(agent->uploads, until) != 0 ||
	    sweeper_stop(agent->sweeper, until) != 0) {
		log_line(LOG_DEBUG, "hanging", "a request is still on its "
		    "way; ending without it");
		return;
	}
	watch_free(agent->watch);
	while (agent->unsettled != NULL)
		agent_forget_unsettled(agent, agent->unsettled->name);
	candidate_free(agent->flying);
	candidates_free(agent->candidates);
	start_result_free(agent->begun);
	rate_free(agent->rate);
	if (agent->trainer_fd >= 0)
		close(agent->trainer_fd);
	if (agent->needs.link >= 0)
		close(agent->needs.link);
	loop_free(agent->loop);
	free(agent);
}

int
agent_run(const struct agent_needs *needs, struct agent_outcome *outcome)
{
	struct agent *agent;
	struct error error = ERROR_INIT;
	int class;

	memset(outcome, 0, sizeof(*outcome));
	/* Not on the stack: a thread that hangs may outlive this call. */
	if ((agent = calloc(1, sizeof(*agent))) == NULL) {
		error_set(&outcome->error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the agent");
		return ERROR_FAILED;
	}
	agent->needs = *needs;
	agent->outcome = outcome;
	agent->trainer_fd = -1;
	agent->class = ERROR_FAILED;
	report_line_start(&agent->line,
	    needs->quiet || log_level_now() < LOG_INFO);
	if (needs->mode != AGENT_PUSH)
		agent->usual_nice = courtesy_begin();
	courtesy_descriptors();
	if (set_up(agent, &error) != 0 || loop_run(agent->loop, &error) != 0) {
		outcome->error = error;
		agent->class = error.class;
		if (needs->mode != AGENT_PUSH)
			log_failure(LOG_ERROR, "agent_failed", &error);
		if (needs->link >= 0)
			link_say(needs->link, "{s:s, s:i}", "say", "end",
			    "class", agent->class);
	}
	class = agent->class;
	report_line_clear(&agent->line);
	if (needs->mode == AGENT_PUSH)
		outcome->checkpoints = json_incref(agent->events);
	agent->outcome = NULL;
	tear_down(agent);
	return class;
}
