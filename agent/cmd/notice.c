#include "cmd/command.h"

#include <jansson.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "cmd/ask.h"
#include "cmd/options.h"
#include "cmd/output.h"

int
command_notice(const struct options *options)
{
	json_t *request = json_pack("{s:s}", "request", "notice");
	struct error failure = ERROR_INIT;
	int class;

	if (request != NULL && options->has_time)
		json_set_u64(request, "left_ms",
		    options->time / CLOCK_MILLISECOND);
	if (request != NULL && options->reason != NULL)
		json_set_name(request, "reason", options->reason);
	if (!options->wait || request == NULL)
		return ask_report(options, request);
	/* All are told before any is waited for. */
	class = ask_agents(options, request, NULL, NULL, &failure);
	json_decref(request);
	if (class != ERROR_NONE && options->json)
		(void)output_json(output_add_error(json_pack("{s:i, s:[]}",
		    "class", class, "agents"), &failure));
	if (class != ERROR_NONE)
		return class;
	return ask_report(options, json_pack("{s:s}", "request", "flush"));
}
