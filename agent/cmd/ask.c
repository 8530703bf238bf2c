#include "cmd/ask.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "life/control.h"
#include "life/place.h"
#include "life/report.h"

struct asking {
	const struct options *options;
	const json_t *request;
	void (*heard)(void *context, const struct ask_answer *answer);
	void *context;
	struct report_line line;
	bool all;		/* one that is not there is not missed */
	unsigned count;
	int class;
	struct error *failure;
};

static void
show_progress(void *context, const json_t *event)
{
	struct asking *asking = context;
	const char *word = json_get_text(event, "event");
	char *name = json_get_name(event, "name");
	uint64_t done, total;

	if (word != NULL && strcmp(word, "progress") == 0 && name != NULL &&
	    json_get_u64(event, "done_bytes", &done) == 0 &&
	    json_get_u64(event, "total_bytes", &total) == 0)
		report_line_show(&asking->line, name, done, total, false);
	free(name);
}

static void
ask_one(void *context, const char *socket)
{
	struct asking *asking = context;
	struct error error = ERROR_INIT;
	struct ask_answer answer = { .socket = socket };
	uint64_t class = ERROR_FAILED;
	json_t *end;

	end = control_ask(socket, asking->request, show_progress, asking,
	    &error);
	report_line_clear(&asking->line);
	if (end == NULL) {
		if (asking->all && error.class == ERROR_NO_AGENT)
			return;
		asking->count++;
		*asking->failure = error;
		(void)output_say(asking->options, &error);
		if ((int)error.class > asking->class)
			asking->class = error.class;
		return;
	}
	asking->count++;
	(void)json_get_u64(end, "class", &class);
	answer.end = end;
	answer.class = (int)class;
	answer.message = json_get_text(end, "message");
	if (answer.message == NULL)
		answer.message = "";
	if (answer.class > asking->class)
		asking->class = answer.class;
	if (asking->heard != NULL)
		asking->heard(asking->context, &answer);
	json_decref(end);
}

int
ask_agents(const struct options *options, const json_t *request,
    void (*heard)(void *context, const struct ask_answer *answer),
    void *context, struct error *failure)
{
	const char *socket = options->settings.socket;
	struct asking asking = { .options = options, .request = request,
	    .heard = heard, .context = context, .failure = failure };
	struct place *place;

	error_clear(failure);
	report_line_start(&asking.line, options->quiet);
	if (socket == NULL && (socket = getenv("CKPTSYNC_SOCKET")) != NULL &&
	    socket[0] == '\0')
		socket = NULL;
	if (socket != NULL) {
		ask_one(&asking, socket);
	} else if (options->settings.folder != NULL) {
		place = place_new(options->settings.folder, NULL, failure);
		if (place == NULL)
			return output_say(options, failure);
		ask_one(&asking, place_socket(place));
		place_free(place);
	} else {
		asking.all = true;
		place_visit(ask_one, &asking);
	}
	if (asking.count > 0)
		return asking.class;
	error_set(failure, ERROR_NO_AGENT, CAUSE_NOT_FOUND, NULL,
	    "no agent of this user is running here");
	return output_say(options, failure);
}

/* What agents answered, for --json. */
struct telling {
	const struct options *options;
	json_t *agents;
	struct error failure;	/* what an agent answered */
};

static void
told(void *context, const struct ask_answer *answer)
{
	struct telling *telling = context;
	json_t *one;

	if (answer->class != ERROR_NONE) {
		error_set(&telling->failure, (enum error_class)answer->class,
		    CAUSE_OTHER, answer->socket, "%s", answer->message);
		(void)output_say(telling->options, &telling->failure);
	}
	one = json_pack("{s:i}", "class", answer->class);
	if (one != NULL && json_set_name(one, "socket", answer->socket) != 0)
		json_decref(one);
	else if (one != NULL)
		json_array_append_new(telling->agents, one);
}

int
ask_report(const struct options *options, json_t *request)
{
	struct telling telling = { .options = options,
	    .agents = json_array() };
	struct error failure = ERROR_INIT;
	int class = ERROR_FAILED, status = ERROR_NONE;

	if (request != NULL && telling.agents != NULL)
		class = ask_agents(options, request, told, &telling,
		    &failure);
	if (failure.class == ERROR_NONE)
		failure = telling.failure;
	if (options->json)
		status = output_json(output_add_error(json_pack("{s:i, s:O}",
		    "class", class, "agents", telling.agents), &failure));
	json_decref(telling.agents);
	json_decref(request);
	return class != ERROR_NONE ? class : status;
}
