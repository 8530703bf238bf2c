#include "cmd/output.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "cmd/options.h"
#include "store/manifest.h"

int
output_say(const struct options *options, const struct error *error)
{
	char text[ERROR_TEXT_SIZE];

	if (options->log_format == LOG_JSON)
		log_failure(LOG_ERROR, "failed", error);
	else
		fprintf(stderr, "ckptsync %s: %s\n",
		    options_name(options->command), error_text(error, text));
	return (int)error->class;
}

json_t *
output_add_error(json_t *object, const struct error *error)
{
	json_t *fields;

	if (object == NULL || error->class == ERROR_NONE)
		return object;
	fields = json_pack("{s:i, s:o*, s:o*, s:o*}", "class",
	    (int)error->class, "object", json_text(error->object),
	    "message", json_text(error->message),
	    "cure", json_text(error->cure));
	json_object_set_new(object, "error", fields);
	return object;
}

int
output_failure(const struct options *options, const struct error *error)
{
	int class = output_say(options, error);

	if (options->json)
		(void)output_json(output_add_error(json_object(), error));
	return class;
}

int
output_finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "ckptsync: could not write to standard output\n");
	return status != 0 ? status : ERROR_FAILED;
}

int
output_json(json_t *object)
{
	int result = ERROR_FAILED;

	if (object == NULL)
		fprintf(stderr, "ckptsync: out of memory for the result\n");
	else if (json_dumpf(object, stdout, JSON_INDENT(2)) == 0) {
		fputc('\n', stdout);
		result = 0;
	}
	json_decref(object);
	return output_finish(result);
}

char *
output_time(struct timespec when, char text[OUTPUT_TIME_SIZE])
{
	struct tm tm;

	if (gmtime_r(&when.tv_sec, &tm) == NULL ||
	    strftime(text, OUTPUT_TIME_SIZE, "%Y-%m-%d %H:%M:%SZ", &tm) == 0)
		strcpy(text, "-");
	return text;
}

static void
make_harmless(char *text)
{
	for (; *text != '\0'; text++)
		if (iscntrl((unsigned char)*text))
			*text = '?';
}

void
output_name(const char *name)
{
	for (; *name != '\0'; name++)
		putchar(iscntrl((unsigned char)*name) ? '?' : *name);
}

char *
output_machine(const struct manifest *manifest,
    char text[OUTPUT_MACHINE_SIZE])
{
	const char *host = NULL, *type = NULL;

	if (manifest->environment != NULL) {
		host = json_get_text(manifest->environment, "host");
		type = json_get_text(manifest->environment, "machine_type");
	}
	if (host == NULL)
		strcpy(text, "-");
	else if (type == NULL)
		snprintf(text, OUTPUT_MACHINE_SIZE, "%s", host);
	else
		snprintf(text, OUTPUT_MACHINE_SIZE, "%s (%s)", host, type);
	make_harmless(text);
	return text;
}

json_t *
output_checkpoint(const struct manifest *manifest, int resume)
{
	char id[MANIFEST_ID_SIZE], machine[OUTPUT_MACHINE_SIZE];
	json_t *object;

	manifest_id(manifest, id);
	output_machine(manifest, machine);
	object = json_pack("{s:s, s:s, s:s, s:b, s:b, s:I, s:I}", "id", id,
	    "role", role_text(manifest->role), "layout", manifest->layout,
	    "resume_point", resume, "proven", manifest->proven,
	    "term", (json_int_t)manifest->term.number,
	    "node", (json_int_t)manifest->term.node);
	if (object == NULL)
		return NULL;
	if (json_set_name(object, "name", manifest->name) != 0 ||
	    json_set_name(object, "series", manifest->series) != 0 ||
	    (manifest->has_step &&
	    json_set_u64(object, "step", manifest->step) != 0) ||
	    json_set_u64(object, "size_bytes", manifest->size) != 0 ||
	    json_set_u64(object, "new_bytes", manifest->new_size) != 0 ||
	    json_set_time(object, "completed", manifest->completed) != 0 ||
	    json_set_time(object, "committed", manifest->committed) != 0 ||
	    json_object_set_new(object, "machine",
	    strcmp(machine, "-") == 0 ? json_null() :
	    json_string(machine)) != 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}
