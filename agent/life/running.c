#include "life/running.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/unit.h"
#include "life/control.h"
#include "life/launcher.h"
#include "life/notice_file.h"
#include "life/place.h"
#include "life/settings.h"

/* How long an agent may hold its lock without listening: it is starting or
 * ending. */
#define MOMENT (10 * CLOCK_SECOND)

/* Ask the agent that runs who it is; NULL when it does not answer. */
static json_t *
ask(const struct place *place)
{
	struct error ignored = ERROR_INIT;
	json_t *request, *answer = NULL;

	if ((request = json_pack("{s:s}", "request", "hello")) != NULL)
		answer = control_ask(place_socket(place), request, NULL, NULL,
		    &ignored);
	json_decref(request);
	return answer;
}

static void
name_the_other(const struct place *place, const json_t *answer,
    struct error *error)
{
	char *remote = NULL;
	uint64_t pid;

	if (answer != NULL && json_get_u64(answer, "pid", &pid) == 0 &&
	    (remote = json_get_name(answer, "remote")) != NULL)
		error_set(error, ERROR_FAILED, CAUSE_EXISTS,
		    place_folder(place), "an agent (process %llu) already "
		    "keeps this directory in %s",
		    (unsigned long long)pid, remote);
	free(remote);
	error_cure(error, "there is one agent a directory; `ckptsync push` "
	    "asks it to make everything durable now");
}

/* Whether the one that holds the lock will be gone soon by itself. */
static bool
is_passing(const json_t *answer, uint64_t silent_until)
{
	const char *mode = answer == NULL ? NULL :
	    json_get_text(answer, "mode");

	if (answer == NULL)
		return clock_monotonic() < silent_until;
	return mode != NULL && strcmp(mode, "push") == 0;
}

struct place *
running_lock(const struct settings *settings, struct error *error)
{
	uint64_t silent_until = clock_monotonic() + MOMENT;
	struct place *place;
	json_t *answer;
	bool passing, told = false;

	if ((place = place_new(settings->folder, settings->socket,
	    error)) == NULL)
		return NULL;
	while (place_lock(place, error) != 0) {
		passing = false;
		if (error->cause == CAUSE_EXISTS) {
			answer = ask(place);
			passing = is_passing(answer, silent_until);
			if (!passing)
				name_the_other(place, answer, error);
			json_decref(answer);
		}
		if (!passing) {
			place_free(place);
			return NULL;
		}
		if (!told)
			log_line(LOG_INFO, "lock_taken", "waiting for a push "
			    "of this directory to end");
		told = true;
		clock_sleep(CLOCK_SECOND / 10);
	}
	error_clear(error);
	return place;
}

static void
take_job_end(struct settings *settings)
{
	struct error error = ERROR_INIT;
	int64_t now = (int64_t)clock_wall().tv_sec, end;
	char text[UNIT_TEXT_SIZE];
	uint64_t left;

	if (settings->deadline != 0)
		return;
	end = launcher_job_end(now, &error);
	if (error.class != ERROR_NONE)
		log_failure(LOG_WARNING, "job_end", &error);
	if (end == 0)
		return;
	left = (uint64_t)(end - now) * CLOCK_SECOND;
	settings->deadline = clock_monotonic() + left;
	log_line(LOG_INFO, "job_end", "this Slurm job ends in %s",
	    unit_duration_text(left, text));
}

int
running_prepare(struct settings *settings, struct place *place,
    struct error *error)
{
	char *path;

	take_job_end(settings);
	if (settings->notice_file == NULL && settings->command == NULL)
		return 0;
	if (settings->notice_file != NULL) {
		path = notice_file_check(place_folder(place),
		    settings->notice_file, error);
		if (path == NULL)
			return -1;
		place_set_notice(place, path);
	} else if (notice_file_own(place_notice(place), error) != 0) {
		return -1;
	}
	settings->notice_file = place_notice(place);
	if (setenv("CKPTSYNC_NOTICE_FILE", settings->notice_file, 1) != 0)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the environment");
	return 0;
}
