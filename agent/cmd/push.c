#include "cmd/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "life/agent.h"
#include "life/control.h"
#include "life/place.h"
#include "life/report.h"
#include "life/settings.h"

/* How long an agent may hold its lock without listening. */
#define MOMENT (10 * CLOCK_SECOND)

/* What came of each checkpoint, from whichever agent did it. */
struct push {
	const struct options *options;
	struct report_line line;
	json_t *checkpoints;	/* name -> last event */
};

static void
heard(void *context, const json_t *event)
{
	struct push *push = context;
	const char *word = json_get_text(event, "event");
	const char *message = json_get_text(event, "message");
	const char *key = json_get_text(event, "name");
	char *name;
	uint64_t done, total;

	if (word == NULL)
		return;
	name = json_get_name(event, "name");
	if (strcmp(word, "progress") == 0 && name != NULL &&
	    json_get_u64(event, "done_bytes", &done) == 0 &&
	    json_get_u64(event, "total_bytes", &total) == 0) {
		report_line_show(&push->line, name, done, total, false);
	} else if (strcmp(word, "checkpoint") == 0 && message != NULL) {
		report_line_clear(&push->line);
		log_line(LOG_INFO, "push", "%s", message);
		if (key == NULL)
			key = json_get_text(event, "name_b64");
		if (key != NULL && push->checkpoints != NULL)
			json_object_set(push->checkpoints, key,
			    (json_t *)event);
	}
	free(name);
}

/* Ask the agent of the directory. */
static int
ask_agent(struct push *push, const struct place *place, struct error *error)
{
	const char *message;
	json_t *request, *answer = NULL;
	uint64_t class = ERROR_FAILED;

	request = json_pack("{s:s}", "request", "push");
	if (request != NULL && json_set_name(request, "remote",
	    push->options->settings.url) == 0)
		answer = control_ask(place_socket(place), request, heard,
		    push, error);
	json_decref(request);
	report_line_clear(&push->line);
	if (answer == NULL)
		return (int)error->class;
	(void)json_get_u64(answer, "class", &class);
	message = json_get_text(answer, "message");
	if (class != ERROR_NONE)
		error_set(error, (enum error_class)class, CAUSE_OTHER,
		    place_folder(place), "%s",
		    message == NULL ? "not durable" : message);
	json_decref(answer);
	return (int)class;
}

/* No agent runs: be one for a moment. */
static int
be_agent(struct push *push, struct place *place, struct error *error)
{
	struct agent_needs needs = { .settings = &push->options->settings,
	    .place = place, .mode = AGENT_PUSH, .link = -1,
	    .quiet = push->options->quiet };
	struct agent_outcome outcome = { 0 };
	int class = agent_run(&needs, &outcome);

	json_decref(push->checkpoints);
	push->checkpoints = outcome.checkpoints;
	if (class != ERROR_NONE)
		*error = outcome.error;
	return class;
}

static size_t
count_states(const json_t *checkpoints, const char *state)
{
	const char *key, *each;
	json_t *event;
	size_t count = 0;

	json_object_foreach((json_t *)checkpoints, key, event) {
		each = json_get_text(event, "state");
		if (each != NULL && strcmp(each, state) == 0)
			count++;
	}
	return count;
}

static uint64_t
sum(const json_t *checkpoints, const char *field)
{
	const char *key;
	json_t *event;
	uint64_t bytes, total = 0;

	json_object_foreach((json_t *)checkpoints, key, event)
		if (json_get_u64(event, field, &bytes) == 0)
			total += bytes;
	return total;
}

static int
print_json(const struct push *push, int class, const struct error *error)
{
	json_t *object = json_pack("{s:b, s:i, s:I, s:I, s:[]}", "durable",
	    class == ERROR_NONE, "class", class, "new_bytes",
	    (json_int_t)sum(push->checkpoints, "new_bytes"), "reused_bytes",
	    (json_int_t)sum(push->checkpoints, "reused_bytes"),
	    "checkpoints");
	const char *key;
	json_t *event;
	int status;

	if (object != NULL && push->checkpoints != NULL)
		json_object_foreach(push->checkpoints, key, event) {
			json_object_del(event, "event");
			json_array_append(json_object_get(object,
			    "checkpoints"), event);
		}
	if (class != ERROR_NONE)
		object = output_add_error(object, error);
	status = output_json(object);
	return class != ERROR_NONE ? class : status;
}

static int
print_result(const struct push *push, int class, const struct error *error)
{
	size_t durable, known;

	if (class != ERROR_NONE)
		(void)output_say(push->options, error);
	if (push->options->json)
		return print_json(push, class, error);
	if (class != ERROR_NONE)
		return class;
	durable = count_states(push->checkpoints, "durable");
	known = count_states(push->checkpoints, "known");
	if (durable + known == 0)
		printf("nothing complete lies in %s\n",
		    push->options->settings.folder);
	else
		printf("all durable: %zu new, %zu known before\n", durable,
		    known);
	return output_finish(ERROR_NONE);
}

/*
 * One that is just starting or ending holds the lock and does not listen: it
 * is given a moment.
 */
static int
lock_or_ask(struct push *push, struct place *place, struct error *error)
{
	uint64_t until = clock_monotonic() + MOMENT;
	int class;

	for (;;) {
		if (place_lock(place, error) == 0)
			return be_agent(push, place, error);
		if (error->cause != CAUSE_EXISTS)
			return (int)error->class;
		class = ask_agent(push, place, error);
		if (class != ERROR_NO_AGENT)
			return class;
		if (clock_monotonic() >= until)
			break;
		clock_sleep(CLOCK_SECOND / 10);
	}
	return error_set(error, ERROR_FAILED, CAUSE_OTHER,
	    place_folder(place), "an agent holds the lock of this directory "
	    "but does not listen"), ERROR_FAILED;
}

int
command_push(const struct options *options)
{
	struct push push = { .options = options };
	struct error error = ERROR_INIT;
	struct place *place;
	int class;

	report_line_start(&push.line, options->quiet);
	push.checkpoints = json_object();
	place = place_new(options->settings.folder, options->settings.socket,
	    &error);
	class = place == NULL ? (int)error.class :
	    lock_or_ask(&push, place, &error);
	class = print_result(&push, class, &error);
	json_decref(push.checkpoints);
	place_free(place);
	return class;
}
