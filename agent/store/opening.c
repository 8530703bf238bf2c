#include "store/opening.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "store/backend.h"
#include "store/feature.h"

static json_t *
make_adopted(const struct opening *opening, int *failed)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < opening->adopted_count; i++) {
		json_t *object = json_object();

		*failed |= json_object_set_new(object, "key",
		    json_string(opening->adopted[i].key));
		*failed |= json_set_name(object, "name",
		    opening->adopted[i].name);
		*failed |= json_array_append_new(list, object);
	}
	return list;
}

int
opening_write(const struct opening *opening, json_t *identity,
    struct buffer *buffer, struct error *error)
{
	json_t *object = json_object();
	char random[17], *text = NULL;
	int failed = 0, result = -1;

	snprintf(random, sizeof(random), "%016" PRIx64, opening->term.random);
	failed |= json_set_u64(object, "format", MANIFEST_FORMAT);
	failed |= feature_write(object);
	failed |= json_set_u64(object, "node", opening->term.node);
	failed |= json_set_u64(object, "nodes", opening->nodes);
	failed |= json_set_u64(object, "term", opening->term.number);
	failed |= json_object_set_new(object, "term_random",
	    json_string(random));
	if (identity != NULL)
		failed |= json_object_set(object, "agent", identity);
	failed |= json_object_set_new(object, "adopted",
	    make_adopted(opening, &failed));
	if (opening->resume != NULL)
		failed |= json_object_set_new(object, "resume",
		    json_string(opening->resume));
	if (failed == 0)
		text = json_dumps(object, JSON_COMPACT);
	if (text == NULL)
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	else
		result = buffer_format(buffer, error, "%s\n", text);
	free(text);
	json_decref(object);
	return result;
}

struct input {
	struct opening *opening;
	const char *name;
	struct error *error;
};

static int
wrong(const struct input *input, const char *field)
{
	return error_set(input->error, ERROR_DAMAGED, CAUSE_OTHER, input->name,
	    "has no usable \"%s\"", field);
}

static int
no_memory(const struct input *input)
{
	return error_set(input->error, ERROR_FAILED, CAUSE_MEMORY, input->name,
	    "out of memory");
}

/* "host, time" from what the agent said about itself. */
static char *
agent_text(const json_t *object)
{
	const json_t *agent = json_object_get(object, "agent");
	char *host = json_get_name(agent, "host");
	char when[CLOCK_TEXT_SIZE] = "at an unknown time", *text = NULL;
	struct timespec time;
	int length;

	if (json_get_time(agent, "time", &time) == 0)
		clock_text(time, when);
	length = asprintf(&text, "%s, %s", host == NULL ? "an unknown host" :
	    host, when);
	free(host);
	return length < 0 ? NULL : text;
}

static int
take_adopted(const struct input *input, const json_t *object)
{
	struct opening *opening = input->opening;
	const json_t *list = json_object_get(object, "adopted");
	struct key_parts parts;
	size_t i;

	if (!json_is_array(list))
		return wrong(input, "adopted");
	opening->adopted = calloc(json_array_size(list) + 1,
	    sizeof(*opening->adopted));
	if (opening->adopted == NULL)
		return no_memory(input);
	for (i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		struct manifest_keep *keep = &opening->adopted[i];

		opening->adopted_count = i + 1;
		keep->key = json_get_name(item, "key");
		keep->name = json_get_name(item, "name");
		if (keep->key == NULL || keep->name == NULL)
			return wrong(input, "adopted");
		key_parse(keep->key, &parts);
		if (parts.kind != KEY_MANIFEST ||
		    parts.term.node != opening->term.node ||
		    parts.term.number >= opening->term.number)
			return wrong(input, "adopted");
	}
	return 0;
}

static int
take_resume(const struct input *input, const json_t *object)
{
	struct opening *opening = input->opening;
	size_t i;

	if (json_object_get(object, "resume") == NULL)
		return 0;
	opening->resume = json_get_name(object, "resume");
	for (i = 0; opening->resume != NULL && i < opening->adopted_count; i++)
		if (strcmp(opening->resume, opening->adopted[i].key) == 0)
			return 0;
	return wrong(input, "resume");
}

static int
take_all(const struct input *input, const json_t *object)
{
	struct opening *opening = input->opening;
	uint64_t format, node, term, nodes;
	const char *feature;

	if (json_get_u64(object, "format", &format) != 0)
		return wrong(input, "format");
	feature = format != MANIFEST_FORMAT ? "another format" :
	    feature_unknown(object, "needs_reader");
	if (feature != NULL)
		return feature_refuse(input->name, feature, input->error);
	feature = feature_unknown(object, "needs_writer");
	if (feature != NULL &&
	    (opening->needs_writer = strdup(feature)) == NULL)
		return no_memory(input);
	if (json_get_u64(object, "node", &node) != 0 ||
	    node != opening->term.node)
		return wrong(input, "node");
	if (json_get_u64(object, "term", &term) != 0 ||
	    term != opening->term.number)
		return wrong(input, "term");
	if (json_get_u64(object, "nodes", &nodes) != 0 || nodes == 0 ||
	    nodes > KEY_NODE_MAXIMUM + 1)
		return wrong(input, "nodes");
	opening->nodes = (uint32_t)nodes;
	opening->agent = agent_text(object);
	if (opening->agent == NULL)
		return no_memory(input);
	if (take_adopted(input, object) != 0)
		return -1;
	return take_resume(input, object);
}

struct opening *
opening_read(const struct term *term, const void *data, size_t length,
    struct error *error)
{
	struct input input = { .error = error };
	char key[KEY_SIZE];
	json_t *object;

	input.name = key_term_object(term, "open.json", key);
	object = json_read(data, length, key, error);
	if (object == NULL)
		return NULL;
	input.opening = calloc(1, sizeof(*input.opening));
	if (input.opening == NULL) {
		no_memory(&input);
	} else {
		input.opening->term = *term;
		if (take_all(&input, object) != 0) {
			opening_free(input.opening);
			input.opening = NULL;
		}
	}
	json_decref(object);
	return input.opening;
}

struct opening *
opening_get(struct backend *backend, const struct term *term,
    struct error *error)
{
	struct opening *opening = NULL;
	struct buffer buffer;
	char key[KEY_SIZE];

	buffer_init(&buffer, MANIFEST_SIZE_MAXIMUM);
	if (backend_get(backend, key_term_object(term, "open.json", key),
	    &buffer, 0, error) == 0)
		opening = opening_read(term, buffer_text(&buffer),
		    buffer.length, error);
	buffer_free(&buffer);
	return opening;
}

void
opening_free(struct opening *opening)
{
	size_t i;

	if (opening == NULL)
		return;
	for (i = 0; i < opening->adopted_count; i++) {
		free(opening->adopted[i].key);
		free(opening->adopted[i].name);
	}
	free(opening->adopted);
	free(opening->resume);
	free(opening->agent);
	free(opening->needs_writer);
	free(opening);
}
