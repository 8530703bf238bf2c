#include "cmd/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/unit.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "store/backend.h"
#include "store/remote.h"
#include "store/truth.h"

static json_t *
list_object(const struct options *options, const struct truth *truth,
    const struct error *error)
{
	json_t *object, *checkpoints, *each;
	size_t i;

	checkpoints = json_array();
	for (i = 0; truth != NULL && i < truth->count; i++) {
		each = output_checkpoint(truth->valid[i], i == truth->resume);
		if (each == NULL ||
		    json_array_append_new(checkpoints, each) != 0) {
			json_decref(checkpoints);
			return NULL;
		}
	}
	object = json_pack("{s:s, s:s*, s:o}", "remote",
	    options->settings.url, "agent",
	    truth == NULL ? NULL : truth->agent, "checkpoints", checkpoints);
	return output_add_error(object, error);
}

/* "2 min", so that a glance tells how old the newest is. */
static void
print_age(struct timespec when)
{
	struct timespec now = clock_wall();
	char text[UNIT_TEXT_SIZE];

	if (now.tv_sec > when.tv_sec)
		printf(" (%s ago)", unit_duration_text(
		    (uint64_t)(now.tv_sec - when.tv_sec) * CLOCK_SECOND,
		    text));
}

static void
print_row(const struct manifest *manifest, bool resume, int name_width)
{
	char id[MANIFEST_ID_SIZE], step[32] = "-", size[UNIT_TEXT_SIZE];
	char fresh[UNIT_TEXT_SIZE], when[OUTPUT_TIME_SIZE];
	char machine[OUTPUT_MACHINE_SIZE];
	int padding = name_width - (int)strlen(manifest->name);

	if (manifest->has_step)
		snprintf(step, sizeof(step), "%" PRIu64, manifest->step);
	printf("%c %-8s ", resume ? '*' : ' ', manifest_id(manifest, id));
	output_name(manifest->name);
	printf("%*s  %-6s %8s %10s %10s  %s", padding > 0 ? padding : 0, "",
	    role_text(manifest->role), step,
	    unit_size_text(manifest->size, size),
	    unit_size_text(manifest->new_size, fresh),
	    output_time(manifest->committed, when));
	print_age(manifest->committed);
	printf("  %s%s\n", output_machine(manifest, machine),
	    manifest->proven ? "" : "  unproven");
}

static void
print_table(const struct truth *truth)
{
	size_t i;
	int width = 4;

	for (i = 0; i < truth->count; i++)
		if ((int)strlen(truth->valid[i]->name) > width)
			width = (int)strlen(truth->valid[i]->name);
	if (width > 60)
		width = 60;
	printf("  %-8s %-*s  %-6s %8s %10s %10s  %s\n", "ID", width, "NAME",
	    "ROLE", "STEP", "SIZE", "NEW", "WHEN, MACHINE");
	for (i = 0; i < truth->count; i++)
		print_row(truth->valid[i], i == truth->resume, width);
	if (truth->resume != SIZE_MAX)
		printf("* is the resume point: what `restore` brings back\n");
}

/*
 * A lost checkpoint is a warning, and a failure when it is the one that would
 * be restored or when the truth itself is damaged, so that what is listed may
 * not be all.
 */
static int
tell_damage(const struct options *options, const struct truth *truth,
    const struct error *damaged, int status)
{
	bool truth_is_whole = truth->lost.count > 0 &&
	    strcmp(damaged->object, truth->lost.items[0].error.object) == 0;
	char text[ERROR_TEXT_SIZE];
	size_t i;

	for (i = 0; i < truth->lost.count; i++)
		log_line(LOG_WARNING, "checkpoint_lost", "%s is lost: its "
		    "manifest is damaged or gone: %s",
		    truth->lost.items[i].name,
		    error_text(&truth->lost.items[i].error, text));
	if (truth_is_whole && !truth->resume_lost)
		return status;
	return output_say(options, damaged);
}

int
command_list(const struct options *options)
{
	struct error error = ERROR_INIT, damaged = ERROR_INIT;
	struct backend *backend;
	struct truth *truth = NULL;
	int status;

	backend = remote_open(options->settings.url,
	    &options->settings.remote, false, &error);
	if (backend != NULL && remote_check(backend, &error) == 0)
		truth = truth_read_surviving(backend, 0, &damaged, &error);
	if (truth == NULL) {
		status = output_say(options, &error);
		if (options->json)
			(void)output_json(list_object(options, NULL, &error));
	} else if (options->json) {
		status = output_json(list_object(options, truth, &damaged));
	} else {
		print_table(truth);
		status = output_finish(ERROR_NONE);
	}
	if (truth != NULL && damaged.class != ERROR_NONE)
		status = tell_damage(options, truth, &damaged, status);
	truth_free(truth);
	backend_free(backend);
	return status;
}
