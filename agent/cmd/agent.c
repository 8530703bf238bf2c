#include "cmd/command.h"

#include "base/error.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "life/agent.h"
#include "life/launcher.h"
#include "life/place.h"
#include "life/running.h"

int
command_agent(const struct options *options)
{
	struct settings settings = options->settings;
	struct agent_needs needs = { .settings = &settings,
	    .mode = AGENT_DAEMON, .link = -1, .quiet = options->quiet };
	struct agent_outcome outcome = { 0 };
	struct error error = ERROR_INIT;
	int status;

	if (launcher_check(&error) != 0)
		return output_failure(options, &error);
	if ((needs.place = running_lock(&options->settings, &error)) == NULL)
		return output_failure(options, &error);
	if (running_prepare(&settings, needs.place, &error) != 0) {
		place_free(needs.place);
		return output_failure(options, &error);
	}
	status = agent_run(&needs, &outcome);
	place_free(needs.place);
	return status;
}
