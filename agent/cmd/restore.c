#include "cmd/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"
#include "base/unit.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "life/report.h"
#include "life/thread.h"
#include "move/restore.h"
#include "store/backend.h"
#include "store/remote.h"
#include "store/truth.h"
#include "watch/view.h"

/* One restore on its way. */
struct work {
	const struct options *options;
	struct backend *backend;
	struct truth *truth;
	const struct manifest **wanted;
	size_t count;
	struct restore restore;
	struct restore_plan plan;
	struct error *error;
	int result;
	_Atomic bool over;
	uint64_t took;
};

static int
has_complete(const struct options *options, bool *complete,
    struct error *error)
{
	struct view *view;
	size_t i;

	*complete = false;
	view = view_take(options->settings.folder, &options->settings.view,
	    NULL, error);
	if (view == NULL)
		return -1;
	for (i = 0; i < view->count; i++)
		if (view->checkpoints[i]->state == CHECKPOINT_COMPLETE)
			*complete = true;
	view_free(view);
	return 0;
}

/* The newest version of each name, the resume point last. */
static void
choose_all(struct work *work)
{
	const struct truth *truth = work->truth;
	const struct manifest *resume = truth->resume == SIZE_MAX ? NULL :
	    truth->valid[truth->resume];
	size_t i, j;

	for (i = 0; i < truth->count; i++) {
		if (resume != NULL && strcmp(truth->valid[i]->name,
		    resume->name) == 0)
			continue;
		for (j = 0; j < work->count; j++)
			if (strcmp(work->wanted[j]->name,
			    truth->valid[i]->name) == 0)
				break;
		if (j == work->count)
			work->wanted[work->count++] = truth->valid[i];
	}
	if (resume != NULL)
		work->wanted[work->count++] = resume;
}

static int
choose(struct work *work)
{
	const struct options *options = work->options;
	const struct truth *truth = work->truth;
	const struct manifest *one = NULL;

	work->wanted = calloc(truth->count + 1, sizeof(*work->wanted));
	if (work->wanted == NULL)
		return error_set(work->error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the choice");
	if (options->all) {
		choose_all(work);
		return 0;
	}
	if (options->settings.checkpoint != NULL) {
		one = truth_find(truth, options->settings.checkpoint,
		    work->error);
		if (one == NULL)
			return -1;
	} else if (options->best) {
		one = truth_best(truth);
	} else if (truth->resume != SIZE_MAX) {
		one = truth->valid[truth->resume];
	}
	if (one == NULL)
		return error_set(work->error, ERROR_NOTHING, CAUSE_NOT_FOUND,
		    options->settings.url, "the remote holds no %s",
		    options->best ? "checkpoint whose name says that it is "
		    "the best" : "resume point");
	work->wanted[work->count++] = one;
	return 0;
}

static void *
run(void *context)
{
	struct work *work = context;

	work->result = restore_run(&work->restore, &work->plan, work->error);
	work->over = true;
	return NULL;
}

/* On a thread of its own, so that the progress can be shown. */
static int
run_and_show(struct work *work)
{
	struct report_line line;
	pthread_t thread;

	report_line_start(&line, work->options->quiet);
	if (!line.terminal) {
		run(work);
		return work->result;
	}
	if (thread_start(&thread, run, work, work->error) != 0)
		return -1;
	while (!work->over) {
		clock_sleep(CLOCK_SECOND / 20);
		report_line_show(&line, work->wanted[work->count - 1]->name,
		    work->restore.progress.done, work->restore.progress.total,
		    false);
	}
	pthread_join(thread, NULL);
	report_line_clear(&line);
	return work->result;
}

static void
fill(struct work *work)
{
	const struct options *options = work->options;
	struct restore *restore = &work->restore;

	memset(restore, 0, sizeof(*restore));
	restore->backend = work->backend;
	restore->truth = work->truth;
	restore->folder = options->settings.folder;
	restore->wanted = work->wanted;
	restore->wanted_count = work->count;
	restore->pointers = !options->best;
	restore->companions = options->all;
	restore->include = options->settings.view.include;
	restore->include_count = options->settings.view.include_count;
	restore->exclude = options->settings.view.exclude;
	restore->exclude_count = options->settings.view.exclude_count;
	restore->force = options->force;
}

static const char *
action_text(int action)
{
	switch (action) {
	case RESTORE_SAME:
		return "here";
	case RESTORE_REPLACE:
		return "replace";
	default:
		return "new";
	}
}

static json_t *
result_object(const struct work *work)
{
	json_t *object, *steps = json_array(), *checkpoints = json_array();
	char *path;
	size_t i;

	for (i = 0; i < work->count; i++) {
		json_t *each = output_checkpoint(work->wanted[i],
		    work->truth->resume != SIZE_MAX && work->wanted[i] ==
		    work->truth->valid[work->truth->resume]);

		path = path_join(work->options->settings.folder,
		    work->wanted[i]->name);
		if (each != NULL && path != NULL)
			json_set_name(each, "path", path);
		free(path);
		json_array_append_new(checkpoints, each);
	}
	for (i = 0; i < work->plan.count; i++) {
		json_t *step = json_pack("{s:s, s:I}", "action",
		    action_text(work->plan.steps[i].action), "size_bytes",
		    (json_int_t)work->plan.steps[i].size);

		if (step != NULL)
			json_set_name(step, "path", work->plan.steps[i].path);
		json_array_append_new(steps, step);
	}
	object = json_pack("{s:b, s:I, s:I, s:I, s:f, s:o, s:o}",
	    "dry_run", work->options->dry_run,
	    "total_bytes", (json_int_t)work->plan.total_bytes,
	    work->options->dry_run ? "fetch_bytes" : "fetched_bytes",
	    (json_int_t)work->plan.fetch_bytes,
	    "present_bytes", (json_int_t)work->plan.present_bytes,
	    "took_s", (double)work->took / (double)CLOCK_SECOND,
	    "checkpoints", checkpoints, "steps", steps);
	return output_add_error(object, work->error);
}

static void
print_checkpoint(const struct work *work, const struct manifest *manifest)
{
	char id[MANIFEST_ID_SIZE], when[OUTPUT_TIME_SIZE];

	printf("%s ", work->options->dry_run ? "would restore" : "restored");
	output_name(manifest->name);
	printf(" (%s", manifest_id(manifest, id));
	if (manifest->has_step)
		printf(", step %" PRIu64, manifest->step);
	printf(", committed %s)\n", output_time(manifest->committed, when));
}

static int
print_result(const struct work *work)
{
	char fetched[UNIT_TEXT_SIZE], here[UNIT_TEXT_SIZE];
	char size[UNIT_TEXT_SIZE], took[UNIT_TEXT_SIZE];
	size_t i;

	if (work->options->json)
		return output_json(result_object(work));
	for (i = 0; i < work->count; i++)
		print_checkpoint(work, work->wanted[i]);
	for (i = 0; work->options->dry_run && i < work->plan.count; i++) {
		printf("  %-7s %10s  ",
		    action_text(work->plan.steps[i].action),
		    unit_size_text(work->plan.steps[i].size, size));
		output_name(work->plan.steps[i].path);
		putchar('\n');
	}
	unit_size_text(work->plan.fetch_bytes, fetched);
	unit_size_text(work->plan.present_bytes, here);
	if (work->options->dry_run)
		printf("%s to fetch, %s here already\n", fetched, here);
	else
		printf("%s fetched, %s was here already, in %s\n", fetched,
		    here, unit_duration_text(work->took, took));
	return output_finish(ERROR_NONE);
}

/* Restore what was chosen. */
static int
restore_once(struct work *work)
{
	uint64_t began = clock_monotonic();
	int result = 0;

	fill(work);
	memset(&work->plan, 0, sizeof(work->plan));
	if (restore_plan_make(&work->restore, &work->plan, work->error) != 0)
		return -1;
	if (!work->options->dry_run)
		result = run_and_show(work);
	work->took = clock_monotonic() - began;
	if (result != 0)
		restore_plan_free(&work->plan);
	return result;
}

/* The next older resume candidate behind ${failed}, NULL: none. */
static const struct manifest *
older(const struct truth *truth, const struct manifest *failed)
{
	bool behind = false;
	size_t i;

	for (i = 0; i < truth->count; i++) {
		if (behind && truth->valid[i]->role == failed->role)
			return truth->valid[i];
		behind |= truth->valid[i] == failed;
	}
	return NULL;
}

static int
restore_with_fallback(struct work *work)
{
	const struct manifest *next;
	char text[ERROR_TEXT_SIZE];

	while (restore_once(work) != 0) {
		if (!work->options->fallback ||
		    work->error->class != ERROR_DAMAGED ||
		    (next = older(work->truth, work->wanted[0])) == NULL)
			return -1;
		log_line(LOG_WARNING, "fallback", "%s is damaged, falling "
		    "back to %s, which is older: %s", work->wanted[0]->name,
		    next->name, error_text(work->error, text));
		work->wanted[0] = next;
		error_clear(work->error);
	}
	return 0;
}

static int
look(struct work *work)
{
	const struct options *options = work->options;
	struct error damaged = ERROR_INIT;
	char text[ERROR_TEXT_SIZE];

	work->backend = remote_open(options->settings.url,
	    &options->settings.remote, false, work->error);
	if (work->backend == NULL)
		return -1;
	if (remote_check(work->backend, work->error) != 0)
		return -1;
	if (options->fallback)
		work->truth = truth_read_surviving(work->backend, 0, &damaged,
		    work->error);
	else if (options->all || options->best ||
	    options->settings.checkpoint != NULL)
		work->truth = truth_read_any(work->backend, 0, work->error);
	else
		work->truth = truth_read(work->backend, 0, work->error);
	if (damaged.class != ERROR_NONE)
		log_line(LOG_WARNING, "fallback", "a manifest is damaged, "
		    "going on with what is whole: %s",
		    error_text(&damaged, text));
	if (work->truth == NULL && work->error->class == ERROR_DAMAGED &&
	    !options->fallback)
		error_cure(work->error, "--fallback takes the next older "
		    "checkpoint");
	return work->truth != NULL ? 0 : -1;
}

int
command_restore(const struct options *options)
{
	struct error error = ERROR_INIT;
	struct work work = { .options = options, .error = &error };
	bool complete = false;
	int status;

	if (options->if_empty && has_complete(options, &complete,
	    &error) != 0)
		return output_failure(options, &error);
	if (complete) {
		log_line(LOG_INFO, "not_empty", "%s holds a complete "
		    "checkpoint; nothing was done",
		    options->settings.folder);
		return options->json ? output_json(result_object(&work)) :
		    ERROR_NONE;
	}
	if (look(&work) == 0 && choose(&work) == 0 &&
	    restore_with_fallback(&work) == 0) {
		/* What was passed over on the way is over. */
		error_clear(&error);
		if (options->all && work.truth->lost.count > 0) {
			error_set(&error, ERROR_DAMAGED, CAUSE_OTHER,
			    options->settings.url, "%zu valid checkpoint%s "
			    "could not be restored, all others were",
			    work.truth->lost.count,
			    work.truth->lost.count == 1 ? "" : "s");
			(void)output_say(options, &error);
		}
		status = print_result(&work);
		if (error.class != ERROR_NONE)
			status = (int)error.class;
		restore_plan_free(&work.plan);
	} else if (error.class == ERROR_NOTHING && options->if_exists) {
		log_line(LOG_INFO, "nothing_yet", "%s holds nothing yet",
		    options->settings.url);
		error_clear(&error);
		status = options->json ? output_json(result_object(&work)) :
		    ERROR_NONE;
	} else {
		status = output_failure(options, &error);
	}
	free(work.wanted);
	truth_free(work.truth);
	backend_free(work.backend);
	return status;
}
