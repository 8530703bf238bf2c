#include "cmd/command.h"

#include <jansson.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/ask.h"
#include "cmd/options.h"
#include "cmd/output.h"

/* What was told to whom, and what came of it. */
struct telling {
	const struct options *options;
	json_t *agents;
};

static void
told(void *context, const struct ask_answer *answer)
{
	struct telling *telling = context;
	struct error error = ERROR_INIT;
	json_t *one;

	if (answer->class != ERROR_NONE) {
		error_set(&error, (enum error_class)answer->class,
		    CAUSE_OTHER, answer->socket, "%s", answer->message);
		(void)output_failure(telling->options, &error);
	}
	one = json_pack("{s:s, s:i}", "socket", answer->socket, "class",
	    answer->class);
	if (one != NULL)
		json_array_append_new(telling->agents, one);
}

static int
print(struct telling *telling, int class)
{
	int status = ERROR_NONE;

	if (telling->options->json)
		status = output_json(json_pack("{s:i, s:O}", "class", class,
		    "agents", telling->agents));
	json_decref(telling->agents);
	return class != ERROR_NONE ? class : status;
}

/* All are told before any is waited for. */
int
command_notice(const struct options *options)
{
	struct telling telling = { options, json_array() };
	json_t *request = json_pack("{s:s}", "request", "notice");
	json_t *flush = json_pack("{s:s}", "request", "flush");
	int class = ERROR_FAILED;

	if (request == NULL || flush == NULL || telling.agents == NULL)
		goto done;
	if (options->has_time)
		json_set_u64(request, "left_ms",
		    options->time / CLOCK_MILLISECOND);
	if (options->reason != NULL)
		json_set_name(request, "reason", options->reason);
	class = ask_agents(options, request, options->wait ? NULL : told,
	    &telling);
	if (options->wait && class == ERROR_NONE)
		class = ask_agents(options, flush, told, &telling);
done:
	json_decref(request);
	json_decref(flush);
	return print(&telling, class);
}

int
command_flush(const struct options *options)
{
	struct telling telling = { options, json_array() };
	json_t *request = json_pack("{s:s}", "request", "flush");
	int class = ERROR_FAILED;

	if (request != NULL && telling.agents != NULL) {
		if (options->has_time)
			json_set_u64(request, "timeout_ms",
			    options->time / CLOCK_MILLISECOND);
		class = ask_agents(options, request, told, &telling);
	}
	json_decref(request);
	return print(&telling, class);
}
