#include "life/supervisor_private.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/unit.h"
#include "life/deadline.h"
#include "life/link.h"
#include "life/settings.h"

/*
 * The agent leads through a deadline (deadline.h).  Of these three timers one
 * kills a trainer that does not end, while there is time for a last look; the
 * others only make sure that it ends when the agent is dead or hangs.
 */
#define STOP_BEFORE (4 * CLOCK_SECOND)
#define AGENT_AFTER (2 * CLOCK_SECOND)

static void
stop_is_due(void *context)
{
	supervisor_stop_trainer(context);
}

static void
kill_is_due(void *context)
{
	struct supervisor *supervisor = context;

	if (supervisor->trainer.pid > 0 && !supervisor->trainer_over) {
		log_line(LOG_WARNING, "trainer_killed", "the trainer has not "
		    "ended in time; killing it");
		trainer_signal_group(&supervisor->trainer, SIGKILL);
	}
}

static void
give_up_is_due(void *context)
{
	struct supervisor *supervisor = context;

	log_line(LOG_ERROR, "agent_too_slow", "the agent has not ended in "
	    "time; killing it");
	if (supervisor->agent > 0)
		kill(supervisor->agent, SIGKILL);
	supervisor->end.class = ERROR_NOT_DURABLE;
	supervisor_finish(supervisor);
}

void
supervisor_wait_for_agent(struct supervisor *supervisor)
{
	loop_timer_set(supervisor->loop, &supervisor->give_up_at,
	    clock_monotonic() + AGENT_AFTER, give_up_is_due, supervisor);
}

/* SIGTERM is never taken back. */
void
supervisor_withdraw(struct supervisor *supervisor)
{
	uint64_t now = clock_monotonic(), end = supervisor->term_deadline;

	supervisor->deadline = 0;
	supervisor->end.noticed = false;
	loop_timer_stop(supervisor->loop, &supervisor->stop_at);
	loop_timer_stop(supervisor->loop, &supervisor->kill_at);
	loop_timer_stop(supervisor->loop, &supervisor->give_up_at);
	if (end != 0)
		supervisor_notice(supervisor, end > now ? end - now : 0,
		    false);
}

void
supervisor_notice(struct supervisor *supervisor, uint64_t left, bool tell)
{
	uint64_t now = clock_monotonic(), when = now + left, before;
	const struct deadline deadline = { .began = now, .when = when };
	char text[UNIT_TEXT_SIZE];

	if (tell && (supervisor->term_deadline == 0 ||
	    when < supervisor->term_deadline))
		supervisor->term_deadline = when;
	if (supervisor->deadline > 0 && supervisor->deadline <= when)
		return;
	supervisor->deadline = when;
	supervisor->end.noticed = true;
	/* What comes from the agent was logged there, with its reason. */
	if (tell)
		log_line(LOG_WARNING, "notice", "this machine goes in %s: "
		    "SIGTERM", unit_duration_text(left, text));
	if (tell && supervisor->link >= 0)
		link_say(supervisor->link, "{s:s, s:I}", "say", "notice",
		    "left_ms", (json_int_t)(left / CLOCK_MILLISECOND));
	before = left / 4 < STOP_BEFORE ? left / 4 : STOP_BEFORE;
	loop_timer_set(supervisor->loop, &supervisor->stop_at, when - before,
	    stop_is_due, supervisor);
	loop_timer_set(supervisor->loop, &supervisor->kill_at,
	    deadline_kill_time(&deadline), kill_is_due, supervisor);
	loop_timer_set(supervisor->loop, &supervisor->give_up_at,
	    when + AGENT_AFTER, give_up_is_due, supervisor);
	/* No agent and no trainer: there is nothing to wait for. */
	if (supervisor->agent == 0 && !supervisor->trainer_begun) {
		supervisor->end.class = ERROR_NOT_DURABLE;
		supervisor_finish(supervisor);
	}
}
