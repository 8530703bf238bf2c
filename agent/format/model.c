#include "format/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "format/format.h"
#include "format/model_dcp.h"
#include "format/model_files.h"
#include "format/model_safetensors.h"
#include "format/model_take.h"
#include "format/model_torch.h"
#include "format/model_whole.h"
#include "format/slice.h"
#include "format/tar.h"
#include "format/tensor_make.h"

/* The members of a tar as files of their own. */
struct members {
	struct format_report report;
	struct slice *slices;
	struct source *sources;
	struct model_file *files;
};

static int read_model(const struct model_file *files, size_t count,
    bool inside, const struct model_options *options, struct model *model,
    struct error *error);

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory for the members of a tar");
}

/* Whether the name of a file, which a tar makes "./x", is at fault. */
static const char *
plain_name(const char *name)
{
	return strncmp(name, "./", 2) == 0 ? name + 2 : name;
}

static void
free_members(struct members *members)
{
	format_report_free(&members->report);
	free(members->slices);
	free(members->sources);
	free(members->files);
}

static int
list_members(const struct source *source, struct members *members,
    struct error *error)
{
	size_t count;

	memset(members, 0, sizeof(*members));
	if (tar_inspect(source, &members->report, error) != 0)
		return -1;
	if (members->report.verdict == FORMAT_TORN)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
		    source->name, "%s", members->report.reason);
	count = members->report.record_count;
	members->slices = calloc(count + 1, sizeof(*members->slices));
	members->sources = calloc(count + 1, sizeof(*members->sources));
	members->files = calloc(count + 1, sizeof(*members->files));
	if (members->slices == NULL || members->sources == NULL ||
	    members->files == NULL)
		return no_memory(error);
	for (size_t i = 0; i < count; i++) {
		const struct format_record *record =
		    &members->report.records[i];

		members->slices[i] = (struct slice){ source, record->offset };
		members->sources[i] = slice_source(&members->slices[i],
		    record->length);
		members->files[i].path = plain_name(record->name);
		members->files[i].source = &members->sources[i];
	}
	return 0;
}

/* What was found in members lies in the tar, the ${file}th file. */
static void
move_out(const struct members *members, size_t file, struct model *model)
{
	for (size_t i = 0; i < model->count; i++) {
		struct tensor *tensor = &model->tensors[i];

		for (size_t j = 0; j < tensor->piece_count; j++) {
			struct tensor_piece *piece = &tensor->pieces[j];

			piece->offset += members->slices[piece->file].offset;
			piece->file = file;
		}
	}
	for (size_t i = 0; i < model->part_count; i++) {
		struct model_part *part = &model->parts[i];

		part->offset += members->slices[part->file].offset;
		part->file = file;
	}
}

static int
read_tar(const struct model_file *files, size_t file,
    const struct model_options *options, struct model *model,
    struct error *error)
{
	struct members members;
	int result = list_members(files[file].source, &members, error);

	if (result == 0)
		result = read_model(members.files,
		    members.report.record_count, true, options, model, error);
	if (result == 0)
		move_out(&members, file, model);
	free_members(&members);
	return result;
}

/*
 * A zip without data.pkl is Keras's when it has the weights that Keras puts
 * there; ${error} is why it is no file of torch.
 */
static int
read_keras(const struct model_file *files, size_t file, struct model *model,
    struct error *error)
{
	static const char *const name = "model.weights.h5";
	struct error other = ERROR_INIT;
	int result = model_whole_member(&files[file], file, name, model,
	    &other);

	if (result < 0)
		*error = other;
	if (result > 0)
		model->layout = MODEL_FILES;
	return result > 0 ? 0 : -1;
}

static int
read_file(const struct model_file *files, size_t file,
    const struct model_options *options, struct model *model,
    struct error *error)
{
	const struct source *source = files[file].source;
	int result;

	switch (model->layout) {
	case MODEL_SAFETENSORS:
		result = model_safetensors_take(source, file, options, model,
		    error);
		break;
	case MODEL_TORCH:
		result = model_torch_take(source, file, options, model,
		    error);
		if (result != 0 && error->cause == CAUSE_NOT_FOUND &&
		    error->class == ERROR_DAMAGED)
			result = read_keras(files, file, model, error);
		break;
	default:
		result = model_whole_file(&files[file], file, model, error);
	}
	if (result != 0 && error->object[0] == '\0') {
		struct error found = *error;

		error_set(error, found.class, found.cause, files[file].path,
		    "%s", found.message);
		error_cure(error, "%s", found.cure);
	}
	return result;
}

/*
 * One file of several need not have what is asked for: only when none has, it
 * is an error.
 */
static int
read_files(const struct model_file *files, const struct model_plan *plan,
    const struct model_options *options, struct model *model,
    struct error *error)
{
	bool found = false;

	for (size_t i = 0; i < plan->count; i++) {
		if (read_file(files, plan->files[i], options, model,
		    error) == 0)
			found = true;
		else if (error->cause != CAUSE_NOT_FOUND ||
		    error->class == ERROR_DAMAGED)
			return -1;
	}
	return found ? 0 : -1;
}

static int
read_model(const struct model_file *files, size_t count, bool inside,
    const struct model_options *options, struct model *model,
    struct error *error)
{
	struct model_plan plan;
	int result = model_files_plan(files, count, &plan, error);

	if (result == 0 && plan.tar) {
		result = inside ? error_set(error, ERROR_DAMAGED,
		    CAUSE_UNSUPPORTED, files[plan.files[0]].path,
		    "it is a tar in a tar") :
		    read_tar(files, plan.files[0], options, model, error);
	} else if (result == 0) {
		model->layout = plan.layout;
		result = plan.layout == MODEL_DCP ?
		    model_dcp_take(files, count, plan.files[0], options,
		    model, error) :
		    read_files(files, &plan, options, model, error);
	}
	model_files_plan_free(&plan);
	return result;
}

int
model_read(const struct model_file *files, size_t count,
    const struct model_options *options, struct model *model,
    struct error *error)
{
	memset(model, 0, sizeof(*model));
	if (read_model(files, count, false, options, model, error) != 0)
		return -1;
	if (model->key == NULL && (model->key = strdup("")) == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the tensors of a model");
	return model->layout == MODEL_FILES ? 0 :
	    model_finish(model, options, error);
}

static int print_tree(const struct model_file *files, size_t count,
    bool inside, struct buffer *tree, struct error *error);

static int
print_tar(const struct model_file *file, struct buffer *tree,
    struct error *error)
{
	struct members members;
	int result = list_members(file->source, &members, error);

	if (result == 0)
		result = print_tree(members.files,
		    members.report.record_count, true, tree, error);
	free_members(&members);
	return result;
}

static int
print_file(const struct model_file *file, enum model_layout layout,
    struct buffer *tree, struct error *error)
{
	switch (layout) {
	case MODEL_SAFETENSORS:
		return model_safetensors_print(file->source, tree, error);
	case MODEL_TORCH:
		return model_torch_print(file->source, tree, error);
	case MODEL_DCP:
		return model_dcp_print(file->source, tree, error);
	default:
		return buffer_format(tree, error, "%s: a file without keys\n",
		    file->path);
	}
}

static int
print_tree(const struct model_file *files, size_t count, bool inside,
    struct buffer *tree, struct error *error)
{
	struct model_plan plan;
	int result = model_files_plan(files, count, &plan, error);

	if (result == 0 && plan.tar)
		result = inside ? error_set(error, ERROR_DAMAGED,
		    CAUSE_UNSUPPORTED, files[plan.files[0]].path,
		    "it is a tar in a tar") :
		    print_tar(&files[plan.files[0]], tree, error);
	for (size_t i = 0; i < plan.count && result == 0 && !plan.tar; i++) {
		if (plan.count > 1)
			result = buffer_format(tree, error, "%s:\n",
			    files[plan.files[i]].path);
		if (result == 0)
			result = print_file(&files[plan.files[i]], plan.layout,
			    tree, error);
	}
	model_files_plan_free(&plan);
	return result;
}

int
model_tree(const struct model_file *files, size_t count, struct buffer *tree,
    struct error *error)
{
	return print_tree(files, count, false, tree, error);
}

void
model_free(struct model *model)
{
	for (size_t i = 0; i < model->count; i++)
		tensor_make_free(&model->tensors[i]);
	for (size_t i = 0; i < model->refused_count; i++)
		free(model->refused[i]);
	for (size_t i = 0; i < model->part_count; i++)
		free(model->parts[i].path);
	free(model->tensors);
	free(model->refused);
	free(model->parts);
	free(model->key);
	memset(model, 0, sizeof(*model));
}
