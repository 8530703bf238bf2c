#include "life/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/unit.h"
#include "life/agent.h"
#include "life/link.h"
#include "life/loop.h"
#include "life/place.h"
#include "life/settings.h"
#include "life/supervisor_private.h"

/* What `run` does after a notice when all is durable: EX_TEMPFAIL, which
 * batch systems and service managers take as "start it again". */
#define STATUS_NOTICED 75
#define STATUS_INTERRUPTED (128 + SIGINT)

int
supervisor_status(const struct supervisor_end *end)
{
	if (end->noticed)
		return end->class == ERROR_NONE ? STATUS_NOTICED :
		    ERROR_NOT_DURABLE;
	if (end->interrupted)
		return STATUS_INTERRUPTED;
	if (end->stopped)
		return ERROR_SUPERSEDED;
	if (end->trainer != 0)
		return end->trainer;
	if (end->began && end->class != ERROR_NONE &&
	    end->class != ERROR_SUPERSEDED)
		return ERROR_NOT_DURABLE;
	return end->class;
}

static const int watched_signals[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP,
    SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTTOU, SIGTTIN };

void
supervisor_finish(struct supervisor *supervisor)
{
	/* After a notice nothing of the trainer may go on unseen. */
	if (supervisor->end.noticed || supervisor->end.interrupted)
		trainer_signal_group(&supervisor->trainer, SIGKILL);
	supervisor->finished = true;
	loop_stop(supervisor->loop);
}

static void
tell_trainer(struct supervisor *supervisor)
{
	int result = 0;

	if (supervisor->link < 0)
		return;
	if (supervisor->trainer_over)
		result = link_say(supervisor->link, "{s:s}", "say", "ended");
	else if (supervisor->trainer.pid > 0)
		result = link_say(supervisor->link, "{s:s, s:i}", "say",
		    "trainer", "pid", (int)supervisor->trainer.pid);
	/* It would wait for ever; the next one asks again. */
	if (result != 0 && supervisor->agent > 0 && !supervisor->heard_end)
		kill(supervisor->agent, SIGKILL);
}

/* The trainer and, after a notice, what it left running are gone. */
static void
trainer_is_over(struct supervisor *supervisor)
{
	if (supervisor->trainer_over)
		return;
	supervisor->trainer_over = true;
	loop_timer_stop(supervisor->loop, &supervisor->linger);
	tell_trainer(supervisor);
	if (supervisor->end.interrupted ||
	    (supervisor->agent == 0 && supervisor->heard_end))
		supervisor_finish(supervisor);
}

/* Processes that the trainer left get the same signal and the same time. */
static void
linger(void *context)
{
	struct supervisor *supervisor = context;

	if (!trainer_lingers(&supervisor->trainer)) {
		trainer_is_over(supervisor);
		return;
	}
	loop_timer_set(supervisor->loop, &supervisor->linger,
	    clock_monotonic() + CLOCK_SECOND / 10, linger, supervisor);
}

static void
trainer_ended(struct supervisor *supervisor)
{
	int status = supervisor->trainer.status;

	supervisor->end.trainer = status;
	log_event(status == 0 ? LOG_INFO : LOG_WARNING, "trainer_ended",
	    LOG_FIELDS(LOG_NUMBER_FIELD("status", (uint64_t)status)),
	    "the trainer has ended with status %d%s", status,
	    status > 128 ? " (a signal)" : "");
	if (supervisor->end.noticed && trainer_lingers(&supervisor->trainer)) {
		trainer_signal_group(&supervisor->trainer,
		    supervisor->settings->stop_signal);
		linger(supervisor);
		return;
	}
	trainer_is_over(supervisor);
}

static void
start_trainer(struct supervisor *supervisor, const char *restored)
{
	const struct settings *settings = supervisor->settings;
	struct error error = ERROR_INIT;
	char **arguments;

	arguments = trainer_arguments(settings->command, restored,
	    settings->resume_arguments, &error);
	if (arguments == NULL) {
		supervisor->trainer.status = ERROR_USAGE;
	} else if (trainer_start(&supervisor->trainer, arguments, restored,
	    &supervisor->mask, &error) == 0) {
		log_event(LOG_INFO, "trainer_started", LOG_FIELDS(
		    LOG_TEXT_FIELD("restored", restored)),
		    "started %s (process %d), %s%s", arguments[0],
		    (int)supervisor->trainer.pid,
		    restored[0] != '\0' ? "to go on from " :
		    "from the beginning", restored);
		tell_trainer(supervisor);
	}
	supervisor->trainer_begun = true;
	supervisor->end.began = true;
	if (error.class != ERROR_NONE) {
		log_failure(LOG_ERROR, "trainer_not_started", &error);
		supervisor->trainer.ended = true;
		supervisor->end.trainer = supervisor->trainer.status;
		trainer_is_over(supervisor);
	}
	trainer_arguments_free(arguments);
}

void
supervisor_stop_trainer(struct supervisor *supervisor)
{
	if (supervisor->trainer.pid == 0 || supervisor->stop_sent)
		return;
	supervisor->stop_sent = true;
	log_line(LOG_INFO, "stop_signal", "sending the stop signal (%s) to "
	    "the trainer", strsignal(supervisor->settings->stop_signal));
	trainer_signal(&supervisor->trainer,
	    supervisor->settings->stop_signal);
}

static void
agent_ends(struct supervisor *supervisor, const json_t *message)
{
	uint64_t class = ERROR_FAILED;

	(void)json_get_u64(message, "class", &class);
	supervisor->heard_end = true;
	supervisor->end.class = (int)class;
}

static void
hear_number(const json_t *message, struct supervisor *supervisor)
{
	uint64_t number;

	if (json_get_u64(message, "signal", &number) == 0 && number > 0 &&
	    number < NSIG)
		trainer_signal(&supervisor->trainer, (int)number);
}

static void
remember_term(struct supervisor *supervisor, const json_t *message)
{
	const char *random = json_get_text(message, "random");
	uint64_t number;

	if (random == NULL || json_get_u64(message, "term", &number) != 0 ||
	    number > KEY_TERM_MAXIMUM)
		return;
	supervisor->remembered.term.number = (uint32_t)number;
	supervisor->remembered.term.random = strtoull(random, NULL, 16);
	(void)json_get_time(message, "opened", &supervisor->remembered.opened);
}

static void
hear_ready(struct supervisor *supervisor, const json_t *message)
{
	char *restored;

	if (supervisor->trainer_begun) {
		tell_trainer(supervisor);
	} else if (!supervisor->end.noticed) {
		restored = json_get_name(message, "restored");
		start_trainer(supervisor, restored == NULL ? "" : restored);
		free(restored);
	}
}

static void
hear(struct supervisor *supervisor, const json_t *message)
{
	const char *word = json_get_text(message, "say");
	uint64_t left;

	if (word == NULL)
		return;
	if (strcmp(word, "term") == 0) {
		remember_term(supervisor, message);
	} else if (strcmp(word, "ready") == 0) {
		hear_ready(supervisor, message);
	} else if (strcmp(word, "notice") == 0) {
		if (json_get_u64(message, "left_ms", &left) == 0)
			supervisor_notice(supervisor,
			    left * CLOCK_MILLISECOND, false);
	} else if (strcmp(word, "withdrawn") == 0) {
		supervisor_withdraw(supervisor);
	} else if (strcmp(word, "signal") == 0) {
		hear_number(message, supervisor);
	} else if (strcmp(word, "stop") == 0) {
		supervisor->end.stopped |= !supervisor->end.noticed;
		supervisor_stop_trainer(supervisor);
	} else if (strcmp(word, "end") == 0) {
		agent_ends(supervisor, message);
	}
}

void
supervisor_listen(void *context)
{
	struct supervisor *supervisor = context;
	json_t *message;
	int closed = 0;

	while (supervisor->link >= 0 &&
	    (message = link_hear(supervisor->link, &closed)) != NULL) {
		hear(supervisor, message);
		json_decref(message);
	}
	if (closed && supervisor->link >= 0) {
		loop_forget(supervisor->loop, supervisor->link);
		close(supervisor->link);
		supervisor->link = -1;
	}
}

static void
reap(struct supervisor *supervisor)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid == supervisor->trainer.pid &&
		    !supervisor->trainer.ended) {
			trainer_changed(&supervisor->trainer, status);
			if (supervisor->trainer.ended)
				trainer_ended(supervisor);
		} else if (pid == supervisor->agent && !WIFSTOPPED(status)) {
			supervisor_agent_ended(supervisor, status);
		}
	}
}

static void
interrupt(struct supervisor *supervisor)
{
	if (supervisor->interrupts++ == 0 && !supervisor->trainer_over &&
	    supervisor->trainer.pid > 0) {
		trainer_signal_group(&supervisor->trainer, SIGINT);
		return;
	}
	/* A second one, or there is only the upload to wait for. */
	log_line(LOG_WARNING, "interrupted", "stopped at once");
	supervisor->end.interrupted = true;
	trainer_signal_group(&supervisor->trainer, SIGKILL);
	if (supervisor->link >= 0)
		link_say(supervisor->link, "{s:s}", "say", "give_up");
	if (supervisor->agent == 0)
		supervisor_finish(supervisor);
	else
		supervisor_wait_for_agent(supervisor);
}

static void
signal_came(void *context, const struct signalfd_siginfo *info)
{
	struct supervisor *supervisor = context;
	int number = (int)info->ssi_signo;

	switch (number) {
	case SIGCHLD:
		reap(supervisor);
		break;
	case SIGTERM:
		supervisor_notice(supervisor, supervisor->settings->grace,
		    true);
		break;
	case SIGINT:
		interrupt(supervisor);
		break;
	case SIGCONT:
		trainer_continue(&supervisor->trainer);
		break;
	case SIGTTIN:
	case SIGTTOU:
		break;
	default:
		trainer_signal(&supervisor->trainer, number);
		break;
	}
}

int
supervisor_run(const struct settings *settings, struct place *place,
    struct error *error)
{
	struct supervisor supervisor = { .settings = settings,
	    .place = place, .link = -1 };
	sigset_t signals;
	size_t i;
	int status = ERROR_FAILED;

	sigprocmask(SIG_SETMASK, NULL, &supervisor.mask);
	sigemptyset(&signals);
	for (i = 0; i < sizeof(watched_signals) / sizeof(watched_signals[0]);
	    i++)
		sigaddset(&signals, watched_signals[i]);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_IGN);
	if ((supervisor.loop = loop_new(error)) == NULL ||
	    loop_signals(supervisor.loop, &signals, signal_came, &supervisor,
	    error) != 0 ||
	    supervisor_start_agent(&supervisor, error) != 0)
		goto done;
	if (loop_run(supervisor.loop, error) == 0)
		status = supervisor_status(&supervisor.end);
done:
	trainer_free(&supervisor.trainer);
	if (supervisor.link >= 0)
		close(supervisor.link);
	loop_free(supervisor.loop);
	return status;
}
