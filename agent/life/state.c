#include "life/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"

#define STATE_SIZE_MAXIMUM 65536

static bool
names(const json_t *object, const char *field, const char *wanted)
{
	char *text = json_get_name(object, field);
	bool same = text != NULL && strcmp(text, wanted) == 0;

	free(text);
	return same;
}

/* Exactly 16 lower-case digits. */
static bool
read_random(const char *text, uint64_t *random)
{
	if (text == NULL || strlen(text) != 16 ||
	    strspn(text, "0123456789abcdef") != 16)
		return false;
	*random = strtoull(text, NULL, 16);
	return true;
}

bool
state_load(const char *path, const char *folder, const char *remote,
    struct state *state)
{
	struct buffer buffer;
	struct error ignored = ERROR_INIT;
	json_t *object = NULL;
	uint64_t node, number;
	bool found = false;

	memset(state, 0, sizeof(*state));
	buffer_init(&buffer, STATE_SIZE_MAXIMUM);
	if (path == NULL ||
	    path_read_at(AT_FDCWD, path, &buffer, &ignored) != 0 ||
	    (object = json_read(buffer.data, buffer.length, path,
	    &ignored)) == NULL)
		goto done;
	if (!names(object, "directory", folder) ||
	    !names(object, "remote", remote) ||
	    json_get_u64(object, "node", &node) != 0 ||
	    node > KEY_NODE_MAXIMUM ||
	    json_get_u64(object, "term", &number) != 0 ||
	    number > KEY_TERM_MAXIMUM ||
	    !read_random(json_get_text(object, "random"),
	    &state->term.random) ||
	    json_get_time(object, "opened", &state->opened) != 0)
		goto done;
	state->term.node = (uint32_t)node;
	state->term.number = (uint32_t)number;
	found = true;
done:
	json_decref(object);
	buffer_free(&buffer);
	if (!found)
		memset(state, 0, sizeof(*state));
	return found;
}

void
state_save(const char *path, const char *folder, const char *remote,
    const struct state *state)
{
	static bool told;
	struct error error = ERROR_INIT;
	char random[17], *text = NULL;
	struct stat status;
	json_t *object;

	if (path == NULL)
		return;
	snprintf(random, sizeof(random), "%016" PRIx64, state->term.random);
	if ((object = json_object()) == NULL ||
	    json_set_name(object, "directory", folder) != 0 ||
	    json_set_name(object, "remote", remote) != 0 ||
	    json_set_u64(object, "node", state->term.node) != 0 ||
	    json_set_u64(object, "term", state->term.number) != 0 ||
	    json_object_set_new(object, "random", json_string(random)) != 0 ||
	    json_set_time(object, "opened", state->opened) != 0 ||
	    (text = json_dumps(object, JSON_INDENT(1))) == NULL)
		error_set(&error, ERROR_FAILED, CAUSE_MEMORY, path,
		    "out of memory for the state file");
	else if (lstat(path, &status) == 0 && !S_ISREG(status.st_mode))
		error_set(&error, ERROR_FAILED, CAUSE_OTHER, path,
		    "what lies there is no state file");
	else
		path_write(path, text, strlen(text), 0600, &error);
	if (error.class != ERROR_NONE && !told) {
		told = true;
		log_failure(LOG_WARNING, "state_not_saved", &error);
	}
	free(text);
	json_decref(object);
}
