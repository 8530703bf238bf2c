#include "cmd/command.h"

#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "life/control.h"
#include "life/launcher.h"
#include "life/place.h"
#include "life/running.h"
#include "life/supervisor.h"

int
command_run(const struct options *options)
{
	struct settings settings = options->settings;
	struct error error = ERROR_INIT;
	struct place *place;
	int status;

	if (launcher_check(&error) != 0)
		return output_failure(options, &error);
	if ((place = running_lock(&options->settings, &error)) == NULL)
		return output_failure(options, &error);
	if (running_prepare(&settings, place, &error) != 0) {
		place_free(place);
		return output_failure(options, &error);
	}
	status = supervisor_run(&settings, place, &error);
	if (error.class != ERROR_NONE)
		status = output_failure(options, &error);
	place_free(place);
	return status;
}
