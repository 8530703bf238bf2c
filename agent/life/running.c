#include "life/running.h"

#include "base/error.h"
#include "base/json.h"
#include "life/control.h"
#include "life/place.h"
#include "life/settings.h"

/* Ask the agent that runs who it is. */
static void
name_the_other(const struct place *place, struct error *error)
{
	struct error ignored = ERROR_INIT;
	json_t *request, *answer = NULL;
	const char *remote;
	uint64_t pid;

	if ((request = json_pack("{s:s}", "request", "hello")) != NULL)
		answer = control_ask(place_socket(place), request, NULL, NULL,
		    &ignored);
	json_decref(request);
	if (answer != NULL && json_get_u64(answer, "pid", &pid) == 0 &&
	    (remote = json_get_text(answer, "remote")) != NULL)
		error_set(error, ERROR_FAILED, CAUSE_EXISTS,
		    place_folder(place), "an agent (process %llu) already "
		    "keeps this directory in %s",
		    (unsigned long long)pid, remote);
	json_decref(answer);
	error_cure(error, "there is one agent a directory; `ckptsync push` "
	    "asks it to make everything durable now");
}

struct place *
running_lock(const struct settings *settings, struct error *error)
{
	struct place *place;

	if ((place = place_new(settings->folder, settings->socket,
	    error)) == NULL)
		return NULL;
	if (place_lock(place, error) == 0)
		return place;
	if (error->cause == CAUSE_EXISTS)
		name_the_other(place, error);
	place_free(place);
	return NULL;
}
