#include "life/supervisor_private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/unit.h"
#include "life/agent.h"
#include "life/courtesy.h"
#include "life/link.h"
#include "life/settings.h"

/* An agent that lived this long was healthy. */
#define HEALTHY (600 * CLOCK_SECOND)
#define PAUSE_MAXIMUM (60 * CLOCK_SECOND)

/* With no trainer to stand by: how often it may die before we give up. */
#define DEATHS_MAXIMUM 5

/* The child's side of the fork: no exec, so that neither /proc nor the
 * program's file is needed, and an upgrade of it does no harm. */
static void
be_the_agent(struct supervisor *supervisor, int link)
{
	struct agent_needs needs = {
		.settings = supervisor->settings,
		.place = supervisor->place,
		.mode = AGENT_TRAINER,
		.link = link,
		.remembered = supervisor->remembered,
		.trainer_begun = supervisor->trainer_begun,
	};
	struct agent_outcome outcome = { 0 };
	int class;

	/* The terminal's signals are for the trainer and the supervisor. */
	setpgid(0, 0);
	prctl(PR_SET_NAME, "ckptsync-agent");
	class = agent_run(&needs, &outcome);
	fflush(NULL);
	_exit(class);
}

int
supervisor_start_agent(struct supervisor *supervisor, struct error *error)
{
	uint64_t now = clock_monotonic();
	int ends[2];
	pid_t pid;

	if (link_pair(ends, error) != 0)
		return -1;
	fflush(NULL);
	if ((pid = fork()) < 0) {
		error_set_errno(error, errno, NULL,
		    "could not start the agent process");
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	if (pid == 0) {
		close(ends[0]);
		be_the_agent(supervisor, ends[1]);
	}
	close(ends[1]);
	setpgid(pid, pid);
	supervisor->agent = pid;
	supervisor->link = ends[0];
	supervisor->born = now;
	supervisor->heard_end = false;
	if (supervisor->deadline > now)
		link_say(ends[0], "{s:s, s:I}", "say", "notice", "left_ms",
		    (json_int_t)((supervisor->deadline - now) /
		    CLOCK_MILLISECOND));
	return loop_watch(supervisor->loop, ends[0], POLLIN,
	    supervisor_listen, supervisor, error);
}

static void
start_again(void *context)
{
	struct supervisor *supervisor = context;
	struct error error = ERROR_INIT;

	if (supervisor_start_agent(supervisor, &error) == 0)
		return;
	log_failure(LOG_ERROR, "agent_not_started", &error);
	loop_timer_set(supervisor->loop, &supervisor->rebirth,
	    clock_monotonic() + PAUSE_MAXIMUM, start_again, supervisor);
}

static uint64_t
pause_after(struct supervisor *supervisor)
{
	uint64_t now = clock_monotonic(), pause;

	if (now - supervisor->born > HEALTHY)
		supervisor->deaths = 0;
	supervisor->deaths++;
	/* The first time at once; no time is lost to a chance death. */
	if (supervisor->deaths == 1 || supervisor->deadline > 0)
		return CLOCK_SECOND / 10;
	pause = CLOCK_SECOND << (supervisor->deaths > 6 ? 6 :
	    supervisor->deaths - 1);
	return pause > PAUSE_MAXIMUM ? PAUSE_MAXIMUM : pause;
}

void
supervisor_agent_ended(struct supervisor *supervisor, int status)
{
	char text[UNIT_TEXT_SIZE];
	uint64_t pause;
	bool waits;

	/* What it said last may still lie in the socket. */
	supervisor_listen(supervisor);
	if (supervisor->link >= 0) {
		loop_forget(supervisor->loop, supervisor->link);
		close(supervisor->link);
		supervisor->link = -1;
	}
	supervisor->agent = 0;
	waits = supervisor->trainer_begun && !supervisor->trainer_over;
	if (supervisor->heard_end || supervisor->end.interrupted) {
		/* At a deadline the trainer may outlive it for a moment. */
		if (!waits)
			supervisor_finish(supervisor);
		return;
	}
	pause = pause_after(supervisor);
	log_line(LOG_ERROR, "agent_died", "the agent process has died (%s %d)"
	    "%s", WIFSIGNALED(status) ? "signal" : "status",
	    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
	    waits ? "; the training goes on" : "");
	if (!waits && supervisor->deaths >= DEATHS_MAXIMUM) {
		log_line(LOG_ERROR, "agent_given_up", "it died %u times; "
		    "giving up", supervisor->deaths);
		supervisor->end.class = supervisor->trainer_begun ?
		    ERROR_NOT_DURABLE : ERROR_FAILED;
		supervisor_finish(supervisor);
		return;
	}
	log_line(LOG_INFO, "agent_again", "starting it again in %s",
	    unit_duration_text(pause, text));
	loop_timer_set(supervisor->loop, &supervisor->rebirth,
	    clock_monotonic() + pause, start_again, supervisor);
}
