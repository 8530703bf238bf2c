#include "cmd/command.h"

#include <jansson.h>

#include "base/clock.h"
#include "base/json.h"
#include "cmd/ask.h"
#include "cmd/options.h"

int
command_flush(const struct options *options)
{
	json_t *request = json_pack("{s:s}", "request", "flush");

	if (request != NULL && options->has_time)
		json_set_u64(request, "timeout_ms",
		    options->time / CLOCK_MILLISECOND);
	return ask_report(options, request);
}
