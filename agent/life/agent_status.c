#include "life/agent_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/unit.h"
#include "format/checkpoint.h"
#include "life/place.h"
#include "life/settings.h"
#include "life/uploads.h"
#include "store/backend.h"
#include "store/writer.h"

/* The manifest's PUT and the listing after it. */
#define COMMIT_SECONDS 0.5

/* Saves that go up faster than this are behind by nothing that matters. */
#define HABIT_SECONDS 5

void
agent_mark(struct landmark *mark, const struct checkpoint *checkpoint,
    const char *id)
{
	char *name = strdup(checkpoint->name);

	if (name == NULL)
		return;
	free(mark->name);
	*mark = (struct landmark){ .name = name,
	    .has_step = checkpoint->has_step, .step = checkpoint->step,
	    .size = checkpoint->size, .completed = checkpoint->completed };
	memcpy(mark->id, id, strlen(id) + 1);
}

/* How clouds are called by people. */
static const char *
cloud_title(const char *cloud)
{
	static const char *const titles[][2] = {
		{ "aws", "AWS" }, { "google", "Google Cloud" },
		{ "azure", "Azure" }, { "alibaba", "Alibaba Cloud" },
		{ "tencent", "Tencent Cloud" },
	};
	size_t i;

	for (i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		if (strcmp(titles[i][0], cloud) == 0)
			return titles[i][1];
	return cloud;
}

uint64_t
agent_window(const struct agent *agent)
{
	if (agent->sight.state == SIGHT_SEEING && agent->sight.window != 0)
		return agent->sight.window;
	return agent->needs.settings->grace;
}

static double
seconds_for(const struct agent *agent, uint64_t bytes)
{
	uint64_t speed = speed_now(&agent->speed);

	if (bytes == 0)
		return 0;
	return speed == 0 ? -1 : (double)bytes / (double)speed +
	    COMMIT_SECONDS;
}

void
agent_check_habit(struct agent *agent, uint64_t interval)
{
	double takes = seconds_for(agent, agent->last_bytes);
	double gives = (double)agent_window(agent) / (double)CLOCK_SECOND;
	double every = (double)interval / (double)CLOCK_SECOND;
	bool seeing = agent->sight.state == SIGHT_SEEING;
	char size[UNIT_TEXT_SIZE];

	if (agent->habit_said || takes < 0 ||
	    (takes <= gives && (interval == 0 || takes <= every ||
	    takes < HABIT_SECONDS)))
		return;
	agent->habit_said = true;
	unit_size_text(agent->last_bytes, size);
	if (takes > gives)
		log_event(LOG_WARNING, "habit", LOG_FIELDS(
		    LOG_SECONDS_FIELD("flush_s", takes),
		    LOG_SECONDS_FIELD("window_s", gives)),
		    "a %s checkpoint takes %.0f s here; %s gives %.0f: one "
		    "that is saved on notice will not make it", size, takes,
		    seeing ? cloud_title(agent->sight.cloud) :
		    "SIGTERM (--grace)", gives);
	else
		log_event(LOG_WARNING, "habit", LOG_FIELDS(
		    LOG_SECONDS_FIELD("flush_s", takes),
		    LOG_SECONDS_FIELD("interval_s", every)),
		    "a %s checkpoint takes %.0f s here, and one is saved "
		    "every %.0f s: not every save will be durable", size,
		    takes, every);
}

static double
age_of(const struct landmark *mark)
{
	struct timespec now = clock_wall();
	double age = (double)(now.tv_sec - mark->completed.tv_sec) +
	    (double)(now.tv_nsec - mark->completed.tv_nsec) / 1e9;

	return age > 0 ? age : 0;
}

static json_t *
mark_object(const struct landmark *mark)
{
	json_t *object;

	if (mark->name == NULL)
		return json_null();
	object = json_pack("{s:I, s:f}", "size_bytes", (json_int_t)mark->size,
	    "age_s", age_of(mark));
	if (object == NULL)
		return NULL;
	json_set_name(object, "name", mark->name);
	if (mark->has_step)
		json_set_u64(object, "step", mark->step);
	if (mark->id[0] != '\0')
		json_object_set_new(object, "id", json_string(mark->id));
	return object;
}

static json_t *
notices_object(const struct agent *agent)
{
	static const char *const words[] = {
		[SIGHT_UNKNOWN] = "looking", [SIGHT_SEEING] = "seen",
		[SIGHT_BLIND] = "blind", [SIGHT_OFF] = "off" };
	const struct sight_of_cloud *sight = &agent->sight;
	json_t *object;

	object = json_pack("{s:s, s:f, s:s}", "state", words[sight->state],
	    "window_s", (double)agent_window(agent) / (double)CLOCK_SECOND,
	    "title", sight->cloud[0] == '\0' ? "" : cloud_title(sight->cloud));
	if (object == NULL || sight->state == SIGHT_UNKNOWN ||
	    sight->state == SIGHT_OFF)
		return object;
	json_object_set_new(object, "cloud", json_string(sight->cloud));
	if (sight->state == SIGHT_BLIND) {
		json_object_set_new(object, "cause",
		    json_text(sight->cause));
		json_object_set_new(object, "message",
		    json_text(sight->error.message));
		json_object_set_new(object, "cure",
		    json_text(sight->error.cure));
	}
	return object;
}

static json_t *
deadline_object(const struct agent *agent)
{
	const struct cause *cause = causes_first(&agent->causes);
	uint64_t now = clock_monotonic();

	if (cause == NULL || agent->deadline.state == DEADLINE_NORMAL)
		return json_null();
	return json_pack("{s:f, s:o, s:o}", "left_s",
	    cause->when > now ? (double)(cause->when - now) /
	    (double)CLOCK_SECOND : 0.0, "source", json_text(cause->source),
	    "reason", json_text(cause->reason));
}

static uint64_t
bytes_behind(struct agent *agent)
{
	size_t i, count = candidates_count(agent->candidates);
	uint64_t behind = agent_flying_left(agent);

	for (i = 0; i < count; i++)
		behind += agent_left(agent, candidates_at(agent->candidates,
		    i));
	return behind;
}

static void
add_state(struct agent *agent, json_t *status, int class)
{
	bool running = agent->begun != NULL && agent->begun->writer != NULL;
	uint64_t behind = bytes_behind(agent);
	double takes = seconds_for(agent, behind), whole;

	whole = seconds_for(agent, agent->last_bytes > 0 ? agent->last_bytes :
	    agent->newest.size);
	json_object_set_new(status, "behind", json_boolean(class ==
	    ERROR_NOT_DURABLE));
	json_set_u64(status, "behind_bytes", behind);
	json_set_u64(status, "bytes_per_s", speed_now(&agent->speed));
	json_object_set_new(status, "flush_s", takes < 0 ? json_null() :
	    json_real(takes));
	json_object_set_new(status, "checkpoint_s", whole < 0 ? json_null() :
	    json_real(whole));
	json_object_set_new(status, "fits", takes < 0 || whole < 0 ?
	    json_null() : json_boolean((takes > whole ? takes : whole) <=
	    (double)agent_window(agent) / (double)CLOCK_SECOND));
	json_object_set_new(status, "weak", json_boolean(running &&
	    writer_is_weak(agent->begun->writer)));
	if (running)
		json_set_u64(status, "term",
		    writer_term(agent->begun->writer).number);
	if (agent->flying != NULL)
		json_set_name(status, "uploading",
		    agent->flying->checkpoint->name);
}

json_t *
agent_status(struct agent *agent, int *class)
{
	json_t *status = json_object();

	if (status == NULL)
		return NULL;
	*class = agent_class(agent);
	/* At the start nothing is known to be behind. */
	if (agent->phase == AGENT_STARTING && agent->begun == NULL)
		*class = ERROR_NONE;
	json_set_name(status, "dir", place_folder(agent->needs.place));
	json_set_name(status, "remote", agent->needs.settings->url);
	json_set_u64(status, "pid", (uint64_t)getpid());
	json_object_set_new(status, "version", json_string(CKPTSYNC_VERSION));
	json_object_set_new(status, "phase", json_string(agent_phase(agent)));
	json_object_set_new(status, "superseded",
	    json_boolean(agent->superseded));
	json_object_set_new(status, "newest", mark_object(&agent->newest));
	json_object_set_new(status, "durable", mark_object(&agent->durable));
	add_state(agent, status, *class);
	json_object_set_new(status, "notices", notices_object(agent));
	json_object_set_new(status, "deadline", deadline_object(agent));
	return status;
}
