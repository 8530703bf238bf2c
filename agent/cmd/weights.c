#include "cmd/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/path.h"
#include "base/unit.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "cmd/spectacle.h"
#include "cmd/tensors.h"
#include "cmd/weights_private.h"
#include "format/splice.h"
#include "move/weights.h"

#define TREE_MAXIMUM ((size_t)1 << 20)

/* One file on its way. */
struct making {
	struct weights_work *work;
	struct weights weights;
	struct weights_plan plan;
	const char *target;
	struct error *error;
};

static bool
ends_in(const char *name, const char *ending)
{
	size_t length = strlen(name), tail = strlen(ending);

	return length > tail && strcasecmp(name + length - tail, ending) == 0;
}

static bool
is_torch_name(const char *name)
{
	return ends_in(name, ".pt") || ends_in(name, ".pth") ||
	    ends_in(name, ".bin") || ends_in(name, ".ckpt");
}

bool
weights_is_file(const struct options *options)
{
	static const char *const endings[] = { ".safetensors", ".h5", ".hdf5",
		".keras", ".gguf", ".nemo" };
	const char *out = options->out;
	struct stat status;
	size_t i;

	if (out == NULL || (stat(out, &status) == 0 &&
	    S_ISDIR(status.st_mode)))
		return false;
	for (i = 0; i < sizeof(endings) / sizeof(*endings); i++)
		if (ends_in(out, endings[i]))
			return true;
	return is_torch_name(out);
}

int
weights_target(const struct weights_work *work, const char *name,
    char **target, struct error *error)
{
	const struct options *options = work->options;
	struct stat status;

	*target = NULL;
	if (options->out == NULL)
		return 0;
	*target = weights_is_file(options) ? strdup(options->out) :
	    path_join(options->out, name);
	if (*target == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	if (options->force || options->dry_run ||
	    lstat(*target, &status) != 0)
		return 0;
	error_set(error, ERROR_FAILED, CAUSE_EXISTS, *target,
	    "it exists already");
	return error_cure(error, "--force replaces it");
}

/* Make the directory that ${target} will lie in. */
static int
make_room(const char *target, struct error *error)
{
	char *folder = strdup(target), *slash;
	int result = 0;

	if (folder == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	slash = strrchr(folder, '/');
	if (slash != NULL && slash != folder) {
		*slash = '\0';
		result = path_make_folders(folder, 0777, error);
	}
	free(folder);
	return result;
}

static int
run(void *context)
{
	struct making *making = context;

	return weights_run(&making->weights, &making->plan, making->target,
	    making->work->options->force, making->error);
}

/* Run a plan, which this frees. */
static int
make(struct making *making)
{
	struct weights_work *work = making->work;
	int result = 0;

	work->out_bytes += making->plan.size;
	work->fetch_bytes += making->plan.fetch_bytes;
	if (!work->options->dry_run) {
		result = make_room(making->target, making->error);
		if (result == 0)
			result = spectacle_run(work->subject.name,
			    work->options->quiet, &making->weights.progress,
			    run, making, making->error);
		work->fetched += making->weights.progress.moved;
	}
	weights_plan_free(&making->plan);
	return result;
}

static enum model_output
choose_format(const struct options *options)
{
	if (options->has_format)
		return options->format;
	return options->out != NULL && is_torch_name(options->out) ?
	    MODEL_OUTPUT_TORCH : MODEL_OUTPUT_SAFETENSORS;
}

/* Whether the user asked for tensors, not for files as they are. */
static bool
wants_tensors(const struct options *options)
{
	return options->key != NULL || options->ema ||
	    options->strip_prefix || options->has_dtype ||
	    options->settings.view.include_count > 0 ||
	    options->settings.view.exclude_count > 0;
}

/* Keep the pickle, which its own framework loads. */
static int
make_spliced(struct weights_work *work, struct making *making)
{
	struct splice splice;
	int result;

	work->format = "pt";
	result = splice_make(work->subject.files[0].source, &splice,
	    making->error);
	if (result == 0) {
		snprintf(work->dropped, sizeof(work->dropped), "%s",
		    splice.dropped);
		result = weights_plan_splice(&making->weights, &splice,
		    &making->plan, making->error);
	}
	result = result == 0 ? make(making) : -1;
	splice_free(&splice);
	return result;
}

static int
make_tensors(struct weights_work *work, struct making *making)
{
	const struct options *options = work->options;
	const enum tensor_type *type = options->has_dtype ? &options->dtype :
	    NULL;
	enum model_output format = choose_format(options);
	size_t i;

	work->format = format == MODEL_OUTPUT_TORCH ? "pt" : "safetensors";
	if (weights_target(work, format == MODEL_OUTPUT_TORCH ? "model.pt" :
	    "model.safetensors", &work->target, making->error) == -1)
		return -1;
	making->target = work->target;
	if (format == MODEL_OUTPUT_TORCH && work->model.module &&
	    !wants_tensors(options) && work->subject.count == 1)
		return make_spliced(work, making);
	if (model_fit(&work->model, format, type, making->error) == -1 ||
	    weights_plan_model(&making->weights, &work->model, format, type,
	    &making->plan, making->error) == -1) {
		weights_plan_free(&making->plan);
		return -1;
	}
	for (i = 0; i < work->model.count; i++)
		work->converted += making->plan.outline->types[i] !=
		    work->model.tensors[i].type;
	return make(making);
}

/* Members or files that are taken as they are. */
static int
make_parts(struct weights_work *work, struct making *making)
{
	const struct model_part *part;
	char *target;
	int result = 0;
	size_t i;

	work->format = "files";
	if (work->options->has_format || wants_tensors(work->options))
		return error_set(making->error, ERROR_USAGE, CAUSE_UNSUPPORTED,
		    work->subject.name, "its weights can only be taken as they "
		    "are, without --format, --dtype and choices of tensors");
	if (weights_is_file(work->options) && work->model.part_count > 1)
		return error_set(making->error, ERROR_USAGE, CAUSE_OTHER,
		    work->options->out, "a directory is needed for %zu files",
		    work->model.part_count);
	for (i = 0; i < work->model.part_count && result == 0; i++) {
		part = &work->model.parts[i];
		if (weights_target(work, path_base(part->path), &target,
		    making->error) == -1) {
			free(target);
			return -1;
		}
		making->target = target;
		result = weights_plan_part(&making->weights, part,
		    &making->plan, making->error);
		if (result == 0)
			result = make(making);
		else
			weights_plan_free(&making->plan);
		free(work->target);
		work->target = target;
	}
	return result;
}

/* Whether the files of a directory are weights as they are. */
static bool
is_whole(const struct weights_work *work)
{
	const struct model *model = &work->model;

	if (!work->subject.folder || weights_is_file(work->options) ||
	    work->options->has_format || wants_tensors(work->options))
		return false;
	return model->layout == MODEL_FILES || (model->layout != MODEL_DCP &&
	    model->key[0] == '\0' && model->left_out == 0 && !model->module);
}

static int
perform(struct weights_work *work, struct error *error)
{
	struct making making = { .work = work, .error = error };
	int result;

	if (subject_open(&work->subject, work->options, error) != 0 ||
	    tensors_read(&work->subject, work->options, &work->model,
	    error) != 0)
		return -1;
	work->whole = is_whole(work);
	subject_weights(&work->subject, &making.weights);
	if (work->whole)
		result = weights_folder(work, error);
	else if (work->model.layout == MODEL_FILES)
		result = make_parts(work, &making);
	else
		result = make_tensors(work, &making);
	work->fetched += work->subject.fetched;
	return result;
}

static json_t *
result_object(const struct weights_work *work)
{
	const struct options *options = work->options;
	json_t *object = json_object(), *files = json_array(), *file;
	int result = 0;
	size_t i;

	for (i = 0; i < work->file_count; i++) {
		file = json_object();
		result |= file == NULL ? -1 :
		    json_set_name(file, "path", work->files[i]);
		result |= json_array_append_new(files, file);
	}
	if (object == NULL || result != 0 ||
	    tensors_subject(object, &work->subject) != 0 ||
	    tensors_fill(object, &work->model) != 0 ||
	    json_object_set(object, "files", files) != 0 ||
	    json_object_set_new(object, "dry_run",
	    json_boolean(options->dry_run)) != 0 ||
	    json_object_set_new(object, "format",
	    json_string(work->format)) != 0 ||
	    json_set_name(object, "dropped", work->dropped) != 0 ||
	    (work->target != NULL &&
	    json_set_name(object, "out", work->target) != 0) ||
	    json_set_u64(object, "converted", work->converted) != 0 ||
	    json_set_u64(object, "out_bytes", work->out_bytes) != 0 ||
	    json_set_u64(object, "fetch_bytes", work->fetch_bytes) != 0 ||
	    json_set_u64(object, "fetched_bytes", work->fetched) != 0 ||
	    json_object_set_new(object, "took_s", json_real(
	    (double)work->took / (double)CLOCK_SECOND)) != 0) {
		json_decref(object);
		object = NULL;
	}
	json_decref(files);
	return object;
}

/* What was taken, and what was not. */
static void
print_model(const struct weights_work *work)
{
	const struct model *model = &work->model;
	char size[UNIT_TEXT_SIZE];
	uint64_t bytes = 0;
	size_t i;

	if (model->layout == MODEL_FILES || work->whole)
		return;
	for (i = 0; i < model->count; i++)
		bytes += model->tensors[i].bytes;
	printf("%zu tensors, %s", model->count, unit_size_text(bytes, size));
	if (model->key[0] != '\0') {
		printf(", under ");
		output_name(model->key);
	}
	if (model->left_out > 0)
		printf("; not %zu others, %s", model->left_out,
		    unit_size_text(model->left_out_bytes, size));
	putchar('\n');
	if (work->converted > 0)
		printf("%zu of them converted to %s, rounded to the nearest, "
		    "ties to even\n", work->converted,
		    tensor_type_text(work->options->dtype));
	if (work->dropped[0] != '\0') {
		printf("kept as its own framework loads it, without ");
		output_name(work->dropped);
		putchar('\n');
	}
}

static void
print_refused(const struct weights_work *work)
{
	const struct model *model = &work->model;
	size_t i;

	for (i = 0; i < model->refused_count; i++) {
		fputs("left out: ", stdout);
		output_name(model->refused[i]);
		putchar('\n');
	}
	if (model->note[0] != '\0') {
		output_name(model->note);
		putchar('\n');
	}
}

static int
print_result(const struct weights_work *work)
{
	char size[UNIT_TEXT_SIZE], took[UNIT_TEXT_SIZE];
	size_t i;

	if (work->options->json)
		return output_json(result_object(work));
	printf("%s ", work->options->dry_run ? "would take" : "took");
	tensors_print_subject(&work->subject);
	putchar('\n');
	print_model(work);
	if (!work->options->dry_run)
		print_refused(work);
	else if (!work->whole)
		tensors_print(&work->model);
	for (i = 0; work->options->dry_run && i < work->file_count; i++) {
		fputs("  ", stdout);
		output_name(work->files[i]);
		putchar('\n');
	}
	if (work->target != NULL) {
		output_name(work->target);
		printf(": ");
	}
	printf("%s", unit_size_text(work->out_bytes, size));
	if (work->subject.backend != NULL)
		printf(", %s%s of %s", unit_size_text(work->options->dry_run ?
		    work->fetch_bytes : work->fetched, took),
		    work->options->dry_run ? " to fetch" : " fetched",
		    unit_size_text(work->subject.size, size));
	if (!work->options->dry_run)
		printf(", in %s", unit_duration_text(work->took, took));
	putchar('\n');
	return output_finish(ERROR_NONE);
}

static int
list_keys(const struct options *options)
{
	struct error error = ERROR_INIT;
	struct subject subject;
	struct buffer tree;
	int status;

	buffer_init(&tree, TREE_MAXIMUM);
	if (subject_open(&subject, options, &error) != 0 ||
	    model_tree(subject.files, subject.count, &tree, &error) != 0) {
		status = output_failure(options, &error);
	} else {
		fputs(buffer_text(&tree), stdout);
		status = output_finish(ERROR_NONE);
	}
	buffer_free(&tree);
	subject_close(&subject);
	return status;
}

int
command_weights(const struct options *options)
{
	struct error error = ERROR_INIT;
	struct weights_work work = { .options = options };
	uint64_t began = clock_monotonic();
	int status;
	size_t i;

	if (options->list_keys)
		return list_keys(options);
	if (perform(&work, &error) == 0) {
		work.took = clock_monotonic() - began;
		status = print_result(&work);
	} else {
		status = output_failure(options, &error);
	}
	for (i = 0; i < work.file_count; i++)
		free(work.files[i]);
	free(work.files);
	free(work.target);
	model_free(&work.model);
	subject_close(&work.subject);
	return status;
}
