#include "life/agent_private.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "format/checkpoint.h"
#include "life/link.h"
#include "life/place.h"
#include "life/settings.h"
#include "life/uploads.h"

/* How often a start that takes long says what it is doing. */
#define SAY_EVERY 10

/* Milliseconds that a request may name: a year. */
#define TIME_MAXIMUM (UINT64_C(366) * 24 * 3600 * 1000)

static const char *const modes[] = {
	[AGENT_TRAINER] = "run", [AGENT_DAEMON] = "agent",
	[AGENT_PUSH] = "push",
};

const char *
agent_phase(const struct agent *agent)
{
	if (agent->superseded)
		return "superseded";
	switch (agent->phase) {
	case AGENT_STARTING:
		return "starting";
	case AGENT_RUNNING:
		return agent->ending ? "flushing" : "running";
	case AGENT_CLOSING:
		break;
	}
	return "ending";
}

static void
begin_push(struct agent *agent, struct push *push)
{
	flush_begin(&push->flush, clock_monotonic(), agent_scan(agent));
}

/* ${client} waits until what is complete now is durable, or ${until}. */
static void
add_push(struct agent *agent, struct control_client *client, uint64_t until)
{
	struct push *push;

	if (agent->superseded) {
		control_end(client, ERROR_SUPERSEDED,
		    agent->outcome->error.message, NULL);
		return;
	}
	if (agent->phase == AGENT_CLOSING ||
	    (push = calloc(1, sizeof(*push))) == NULL) {
		control_end(client, ERROR_NOT_DURABLE,
		    "the agent of this directory is ending", NULL);
		return;
	}
	push->client = client;
	push->until = until;
	push->next = agent->pushes;
	agent->pushes = push;
	agent_tell_again(agent, client);
	if (agent->watch != NULL)
		begin_push(agent, push);
}

/* `push` of another process, which means this agent's remote. */
static void
take_push(struct agent *agent, struct control_client *client,
    const json_t *request)
{
	char *remote = json_get_name(request, "remote");
	json_t *ours = json_object();

	if (ours != NULL)
		json_set_name(ours, "remote", agent->needs.settings->url);
	if (remote == NULL ||
	    strcmp(remote, agent->needs.settings->url) != 0)
		control_end(client, ERROR_USAGE, "the agent of this directory "
		    "keeps it in another remote", json_incref(ours));
	else
		add_push(agent, client, CLOCK_NEVER);
	json_decref(ours);
	free(remote);
}

static void
take_flush(struct agent *agent, struct control_client *client,
    const json_t *request)
{
	uint64_t time;

	if (json_get_u64(request, "timeout_ms", &time) != 0 ||
	    time > TIME_MAXIMUM)
		add_push(agent, client, CLOCK_NEVER);
	else
		add_push(agent, client, clock_monotonic() +
		    time * CLOCK_MILLISECOND);
}

static void
take_notice(struct agent *agent, struct control_client *client,
    const json_t *request)
{
	char *reason = json_get_name(request, "reason");
	uint64_t left, usual = agent->needs.settings->grace;

	if (json_get_u64(request, "left_ms", &left) != 0 ||
	    left > TIME_MAXIMUM)
		left = usual / CLOCK_MILLISECOND;
	agent_notice_of(agent, "ckptsync notice", reason == NULL ? "" : reason,
	    left * CLOCK_MILLISECOND);
	free(reason);
	control_end(client, ERROR_NONE, "", NULL);
}

static void
take_status(struct agent *agent, struct control_client *client)
{
	int class = ERROR_FAILED;
	json_t *status = agent_status(agent, &class);

	control_end(client, class, class == ERROR_NONE ? "" :
	    class == ERROR_SUPERSEDED ? agent->outcome->error.message :
	    "not everything is durable", status);
}

static void
take_hello(struct agent *agent, struct control_client *client)
{
	json_t *more = json_pack("{s:i, s:s, s:s, s:s}", "pid", (int)getpid(),
	    "mode", modes[agent->needs.mode], "phase", agent_phase(agent),
	    "version", CKPTSYNC_VERSION);

	if (more != NULL)
		json_set_name(more, "remote", agent->needs.settings->url);
	control_end(client, ERROR_NONE, "", more);
}

static void
asked(void *context, struct control_client *client, const char *word,
    const json_t *request)
{
	struct agent *agent = context;

	if (strcmp(word, "hello") == 0) {
		take_hello(agent, client);
	} else if (strcmp(word, "push") == 0) {
		take_push(agent, client, request);
	} else if (strcmp(word, "flush") == 0) {
		take_flush(agent, client, request);
	} else if (strcmp(word, "notice") == 0) {
		take_notice(agent, client, request);
	} else if (strcmp(word, "status") == 0) {
		take_status(agent, client);
	} else {
		control_end(client, ERROR_USAGE,
		    "this agent does not know that request", NULL);
	}
	agent_turn(agent);
}

static void
client_gone(void *context, struct control_client *client)
{
	struct agent *agent = context;
	struct push **place, *push;

	for (place = &agent->pushes; (push = *place) != NULL;
	    place = &push->next) {
		if (push->client == client) {
			*place = push->next;
			free(push);
			return;
		}
	}
}

static void
answer(struct agent *agent, struct push *push)
{
	int class = agent_push_class(agent);

	control_end(push->client, class,
	    class == ERROR_NONE ? "" : agent->outcome->error.message, NULL);
}

static void
expire_pushes(struct agent *agent, uint64_t now)
{
	struct push **place = &agent->pushes, *push;

	while ((push = *place) != NULL) {
		if (now < push->until) {
			place = &push->next;
			continue;
		}
		control_end(push->client, ERROR_NOT_DURABLE,
		    "not durable within that time", NULL);
		*place = push->next;
		free(push);
	}
}

void
agent_check_pushes(struct agent *agent)
{
	struct flush_facts facts;
	struct push **place = &agent->pushes, *push;
	uint64_t now = clock_monotonic();

	expire_pushes(agent, now);
	if (agent->pushes == NULL || agent->phase != AGENT_RUNNING ||
	    (agent->watch == NULL && !agent->superseded))
		return;
	facts = agent_flush_facts(agent);
	while ((push = *place) != NULL) {
		if (push->flush.state == FLUSH_IDLE)
			begin_push(agent, push);
		if (flush_wants_scan(&push->flush, now))
			flush_begin_scan(&push->flush, agent_scan(agent));
		if (!agent->superseded && !flush_over(&push->flush, &facts)) {
			place = &push->next;
			continue;
		}
		answer(agent, push);
		*place = push->next;
		free(push);
	}
}

void
agent_end_pushes(struct agent *agent)
{
	struct push *push;

	while ((push = agent->pushes) != NULL) {
		agent->pushes = push->next;
		control_end(push->client, agent->class,
		    agent->class == ERROR_NONE ? "" :
		    agent->outcome->error.class != ERROR_NONE ?
		    agent->outcome->error.message : "the agent has ended",
		    NULL);
		free(push);
	}
}

void
agent_tell(struct agent *agent, json_t *event)
{
	struct push *push;

	if (event == NULL)
		return;
	for (push = agent->pushes; push != NULL; push = push->next)
		control_send(push->client, json_incref(event));
	agent_note_event(agent, event);
	json_decref(event);
}

static void
beat_start(struct agent *agent)
{
	struct start_progress progress = start_progress(agent->start);

	if (progress.total > 0)
		report_line_show(&agent->line, progress.doing, progress.done,
		    progress.total, false);
	else if (++agent->beats % SAY_EVERY == 0)
		log_line(LOG_INFO, "starting", "still %s", progress.doing);
}

static void
beat_upload(struct agent *agent)
{
	struct uploads_progress progress;
	uint64_t elapsed, rate = 0, left;
	struct push *push;
	bool trainer = agent->trainer > 0 && !agent->trainer_over;

	for (push = agent->pushes; push != NULL && agent->flying == NULL;
	    push = push->next)
		control_send(push->client, json_pack("{s:s}", "event",
		    "waiting"));
	if (agent->flying == NULL)
		return;
	progress = uploads_progress(agent->uploads);
	/* No progress line while a trainer runs (DESIGN 12). */
	if (!trainer && agent->ending && progress.total > 0)
		report_line_show(&agent->line, agent->flying->checkpoint->name,
		    progress.done, progress.total, false);
	if (agent->pushes == NULL)
		return;
	elapsed = progress.started == 0 ? 0 :
	    clock_monotonic() - progress.started;
	if (elapsed > 0)
		rate = (uint64_t)((double)progress.done /
		    ((double)elapsed / (double)CLOCK_SECOND));
	left = progress.total > progress.done ?
	    progress.total - progress.done : 0;
	for (push = agent->pushes; push != NULL; push = push->next) {
		json_t *event = json_pack("{s:s, s:I, s:I, s:I, s:I}",
		    "event", "progress", "total_bytes",
		    (json_int_t)progress.total, "done_bytes",
		    (json_int_t)progress.done, "bytes_per_s",
		    (json_int_t)rate, "left_s",
		    (json_int_t)(rate > 0 ? left / rate : 0));

		if (event != NULL)
			json_set_name(event, "name",
			    agent->flying->checkpoint->name);
		control_send(push->client, event);
	}
}

void
agent_beat(void *context)
{
	struct agent *agent = context;
	bool lively;

	if (agent->phase == AGENT_STARTING && agent->start != NULL)
		beat_start(agent);
	else if (agent->phase == AGENT_RUNNING)
		beat_upload(agent);
	agent_measure(agent);
	agent_notice_beat(agent);
	/* Idle costs nothing but one look a second while somebody waits. */
	lively = agent->line.terminal && agent->phase != AGENT_STARTING &&
	    agent->ending;
	loop_timer_set(agent->loop, &agent->beat, clock_monotonic() +
	    (lively ? CLOCK_SECOND / 5 : CLOCK_SECOND), agent_beat, agent);
}

static void
trainer_is_over(struct agent *agent)
{
	if (agent->trainer_over)
		return;
	agent->trainer_over = true;
	agent_begin_flush(agent, "finished");
}

/* Without a supervisor: stay until the trainer has ended, then end. */
static void
orphan_trainer_ended(void *context)
{
	struct agent *agent = context;

	loop_forget(agent->loop, agent->trainer_fd);
	trainer_is_over(agent);
	agent_turn(agent);
}

static void
supervisor_gone(struct agent *agent)
{
	struct error error = ERROR_INIT;

	loop_forget(agent->loop, agent->needs.link);
	close(agent->needs.link);
	agent->needs.link = -1;
	if (agent->phase == AGENT_CLOSING)
		return;
	log_line(LOG_ERROR, "supervisor_gone", "the supervisor is gone; "
	    "ending when the trainer has ended and all is durable");
	if (agent->trainer > 0 && !agent->trainer_over)
		agent->trainer_fd = (int)syscall(SYS_pidfd_open,
		    agent->trainer, 0);
	if (agent->trainer_fd >= 0 && loop_watch(agent->loop,
	    agent->trainer_fd, POLLIN, orphan_trainer_ended, agent,
	    &error) == 0)
		return;
	if (agent->phase == AGENT_STARTING) {
		start_cancel(agent->start);
		return;
	}
	trainer_is_over(agent);
}

static void
hear(struct agent *agent, const json_t *message)
{
	const char *word = json_get_text(message, "say");
	uint64_t number;

	if (word == NULL)
		return;
	if (strcmp(word, "trainer") == 0) {
		if (json_get_u64(message, "pid", &number) == 0)
			agent->trainer = (pid_t)number;
	} else if (strcmp(word, "ended") == 0) {
		trainer_is_over(agent);
	} else if (strcmp(word, "notice") == 0) {
		if (json_get_u64(message, "left_ms", &number) == 0)
			agent_notice_of(agent, NULL, "",
			    number * CLOCK_MILLISECOND);
	} else if (strcmp(word, "give_up") == 0) {
		agent->interrupts = 2;
		agent_end(agent, agent_class(agent));
	}
}

static void
supervisor_spoke(void *context)
{
	struct agent *agent = context;
	json_t *message;
	int closed = 0;

	while ((message = link_hear(agent->needs.link, &closed)) != NULL) {
		hear(agent, message);
		json_decref(message);
	}
	if (closed)
		supervisor_gone(agent);
	agent_turn(agent);
}

void
agent_say_ready(struct agent *agent)
{
	json_t *ready;

	if (agent->needs.link >= 0) {
		ready = json_pack("{s:s}", "say", "ready");
		if (ready != NULL && json_set_name(ready, "restored",
		    agent->begun->restored) != 0) {
			json_decref(ready);
			ready = NULL;
		}
		/* Without it the trainer would never be started: dying makes
		 * the supervisor try again. */
		if (link_send(agent->needs.link, ready) != 0)
			agent_end(agent, ERROR_FAILED);
	}
	/* Told before the watch began. */
	if (agent->trainer_over)
		agent_begin_flush(agent, "finished");
}

void
agent_signal_trainer(struct agent *agent, int number)
{
	if (agent->needs.link >= 0)
		link_say(agent->needs.link, "{s:s, s:i}", "say", "signal",
		    "signal", number);
	else if (agent->trainer > 0 && !agent->trainer_over)
		kill(agent->trainer, number);
}

void
agent_stop_trainer(struct agent *agent)
{
	if (agent->needs.link >= 0)
		link_say(agent->needs.link, "{s:s}", "say", "stop");
	else
		agent_signal_trainer(agent,
		    agent->needs.settings->stop_signal);
}

int
agent_talk_begin(struct agent *agent, struct error *error)
{
	struct control_handler handler = { .request = asked,
	    .gone = client_gone, .context = agent };

	agent->control = control_new(agent->loop,
	    place_socket(agent->needs.place), &handler, error);
	if (agent->control == NULL)
		return -1;
	if (agent->needs.link >= 0)
		return loop_watch(agent->loop, agent->needs.link, POLLIN,
		    supervisor_spoke, agent, error);
	return 0;
}
