#include "cmd/command.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/unit.h"
#include "cmd/ask.h"
#include "cmd/options.h"
#include "cmd/output.h"

static double
seconds(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_number(value) ? json_number_value(value) : -1;
}

static const char *
text_of(const json_t *object, const char *name)
{
	const char *text = json_get_text(object, name);

	return text == NULL ? "" : text;
}

static void
print_time(const char *before, double value, const char *after)
{
	char text[UNIT_TEXT_SIZE];

	printf("%s%s%s", before, unit_duration_text((uint64_t)(value *
	    (double)CLOCK_SECOND), text), after);
}

static void
print_name(const json_t *object, const char *field)
{
	char *name = json_get_name(object, field);

	if (name != NULL)
		output_name(name);
	free(name);
}

static void
print_mark(const char *title, const json_t *mark)
{
	const char *id = json_get_text(mark, "id");
	char size[UNIT_TEXT_SIZE];
	uint64_t bytes = 0;

	printf("  %-9s ", title);
	if (!json_is_object(mark)) {
		puts("none yet");
		return;
	}
	(void)json_get_u64(mark, "size_bytes", &bytes);
	print_name(mark, "name");
	printf("%s%s, %s, ", id != NULL ? " as " : "", id != NULL ? id : "",
	    unit_size_text(bytes, size));
	print_time("saved ", seconds(mark, "age_s"), " ago\n");
}

static void
print_flush(const json_t *status)
{
	double takes = seconds(status, "flush_s");
	double whole = seconds(status, "checkpoint_s");
	const json_t *notices = json_object_get(status, "notices");
	char size[UNIT_TEXT_SIZE];
	uint64_t bytes = 0, speed = 0;

	(void)json_get_u64(status, "behind_bytes", &bytes);
	(void)json_get_u64(status, "bytes_per_s", &speed);
	printf("  behind    %s", unit_size_text(bytes, size));
	if (speed > 0)
		printf(" at %s/s", unit_size_text(speed, size));
	if (takes >= 0)
		print_time(": a flush takes ", takes, "");
	putchar('\n');
	if (whole >= 0) {
		print_time("  fits      a checkpoint takes ", whole, "");
		print_time("; the notice here is ",
		    seconds(notices, "window_s"), "");
		puts(json_is_true(json_object_get(status, "fits")) ?
		    ": it fits" : ": it does NOT fit");
	}
}

static void
print_notices(const json_t *status)
{
	const json_t *notices = json_object_get(status, "notices");
	const json_t *deadline = json_object_get(status, "deadline");
	const char *state = text_of(notices, "state");

	printf("  notices   ");
	if (strcmp(state, "seen") == 0)
		printf("of %s can be seen\n", text_of(notices, "title"));
	else if (strcmp(state, "blind") == 0)
		printf("of a cloud cannot be seen (%s): %s\n",
		    text_of(notices, "cause"), text_of(notices, "message"));
	else
		puts(strcmp(state, "off") == 0 ? "only signals and `ckptsync "
		    "notice` (--cloud none)" : "looking for a cloud");
	if (!json_is_object(deadline))
		return;
	print_time("  DEADLINE  in ", seconds(deadline, "left_s"), ": ");
	printf("%s%s%s\n", text_of(deadline, "source"),
	    text_of(deadline, "reason")[0] != '\0' ? ": " : "",
	    text_of(deadline, "reason"));
}

static void
print_one(const struct ask_answer *answer)
{
	const json_t *status = answer->end;
	bool weak = json_is_true(json_object_get(status, "weak"));

	print_name(status, "dir");
	fputs(" in ", stdout);
	print_name(status, "remote");
	printf(": %s\n", text_of(status, "phase"));
	if (answer->class == ERROR_SUPERSEDED)
		printf("  SUPERSEDED: %s\n", answer->message);
	print_mark("newest", json_object_get(status, "newest"));
	print_mark(weak ? "committed" : "durable",
	    json_object_get(status, "durable"));
	if (weak)
		puts("            committed, not provably durable: this store "
		    "is only eventually consistent");
	print_flush(status);
	print_notices(status);
}

static void
heard(void *context, const struct ask_answer *answer)
{
	json_t *agents = context, *copy;

	if (agents == NULL) {
		print_one(answer);
		return;
	}
	if ((copy = json_copy((json_t *)answer->end)) == NULL)
		return;
	json_object_del(copy, "event");
	json_array_append_new(agents, copy);
}

int
command_status(const struct options *options)
{
	json_t *request = json_pack("{s:s}", "request", "status");
	json_t *agents = options->json ? json_array() : NULL;
	struct error failure = ERROR_INIT;
	int class = ERROR_FAILED, status;

	if (request != NULL && (!options->json || agents != NULL))
		class = ask_agents(options, request, heard, agents,
		    &failure);
	json_decref(request);
	if (options->json)
		status = output_json(output_add_error(json_pack("{s:i, s:o}",
		    "class", class, "agents", agents), &failure));
	else
		status = output_finish(ERROR_NONE);
	return class != ERROR_NONE ? class : status;
}
