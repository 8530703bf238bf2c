#include "life/agent_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/path.h"
#include "format/checkpoint.h"
#include "life/place.h"

/* When that many names are remembered, see which of them still exist. */
#define NAMES_MANY 1024

/* The name of an event as it is in JSON; it is the key of what is kept. */
static const char *
key_of(const json_t *event)
{
	const char *key = json_get_text(event, "name");

	return key != NULL ? key : json_get_text(event, "name_b64");
}

static bool
is_here(const struct agent *agent, const json_t *event)
{
	char *name = json_get_name(event, "path"), *path = NULL;
	struct stat status;
	bool here;

	if (name != NULL)
		path = path_join(place_folder(agent->needs.place), name);
	here = path != NULL && lstat(path, &status) == 0;
	free(path);
	free(name);
	return here;
}

static void
forget_gone(struct agent *agent)
{
	json_t *place;
	const char *key;
	void *next;

	json_object_foreach_safe(agent->places, next, key, place) {
		if (is_here(agent, place))
			continue;
		if (agent->events != NULL)
			json_object_del(agent->events, key);
		json_object_del(agent->places, key);
	}
}

void
agent_note_place(struct agent *agent, const struct checkpoint *checkpoint)
{
	json_t *place = json_object();
	const char *path = checkpoint->name;
	size_t i;

	for (i = 0; i < checkpoint->entry_count; i++) {
		if (checkpoint->entries[i].kind != ENTRY_FOLDER) {
			path = checkpoint->entries[i].path;
			break;
		}
	}
	if (agent->places == NULL)
		agent->places = json_object();
	if (place != NULL && agent->places != NULL &&
	    json_set_name(place, "name", checkpoint->name) == 0 &&
	    json_set_name(place, "path", path) == 0)
		json_object_set(agent->places, key_of(place), place);
	json_decref(place);
	/* A push process looks once and ends. */
	if (agent->needs.mode != AGENT_PUSH &&
	    json_object_size(agent->places) > agent->places_many + NAMES_MANY) {
		forget_gone(agent);
		agent->places_many = json_object_size(agent->places);
	}
}

void
agent_note_event(struct agent *agent, json_t *event)
{
	const char *key = key_of(event);

	if (agent->events == NULL)
		agent->events = json_object();
	if (agent->events != NULL && key != NULL)
		json_object_set(agent->events, key, event);
}

void
agent_tell_again(struct agent *agent, struct control_client *client)
{
	json_t *event, *known;
	const char *key, *state;

	forget_gone(agent);
	json_object_foreach(agent->events, key, event) {
		state = json_get_text(event, "state");
		if (state == NULL || strcmp(state, "durable") != 0)
			known = json_incref(event);
		else
			known = report_known(event);
		if (known != NULL)
			control_send(client, known);
	}
}
