#include "cmd/tensors.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/unit.h"
#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "cmd/subject.h"
#include "format/model.h"
#include "store/manifest.h"
#include "store/truth.h"

#define TREE_MAXIMUM ((size_t)1 << 20)

static const struct {
	const char *word;	/* in JSON */
	const char *phrase;	/* for people */
} choices[] = {
	[SUBJECT_GIVEN] = { "given", "" },
	[SUBJECT_ASKED] = { "asked_for", "" },
	[SUBJECT_FINAL] = { "final", ", the final one" },
	[SUBJECT_BEST] = { "best", ", the best one" },
	[SUBJECT_RESUME] = { "resume_point", ", the resume point" },
};

static const char *const layouts[] = {
	[MODEL_TORCH] = "torch", [MODEL_SAFETENSORS] = "safetensors",
	[MODEL_DCP] = "dcp", [MODEL_FILES] = "files",
};

static void
print_shape(const struct tensor *tensor, char *text, size_t size)
{
	size_t used = 0;
	unsigned i;

	used += (size_t)snprintf(text, size, "[");
	for (i = 0; i < tensor->dimensions && used < size; i++)
		used += (size_t)snprintf(text + used, size - used,
		    "%s%" PRIu64, i == 0 ? "" : ", ", tensor->shape[i]);
	if (used < size)
		snprintf(text + used, size - used, "]");
}

void
tensors_print(const struct model *model)
{
	char shape[256], size[UNIT_TEXT_SIZE];
	size_t i;

	for (i = 0; i < model->count; i++) {
		print_shape(&model->tensors[i], shape, sizeof(shape));
		printf("  %-7s %-20s %10s  ",
		    tensor_type_text(model->tensors[i].type), shape,
		    unit_size_text(model->tensors[i].bytes, size));
		output_name(model->tensors[i].name);
		putchar('\n');
	}
	for (i = 0; i < model->part_count; i++) {
		printf("  %-28s %10s  ", "as it is",
		    unit_size_text(model->parts[i].length, size));
		output_name(model->parts[i].path);
		putchar('\n');
	}
	for (i = 0; i < model->refused_count; i++) {
		printf("  left out: ");
		output_name(model->refused[i]);
		putchar('\n');
	}
	if (model->note[0] != '\0') {
		printf("  ");
		output_name(model->note);
		putchar('\n');
	}
}

static json_t *
tensor_object(const struct tensor *tensor)
{
	json_t *object = json_pack("{s:s}", "dtype",
	    tensor_type_text(tensor->type));
	json_t *shape = json_array();
	unsigned i;

	for (i = 0; i < tensor->dimensions; i++)
		json_array_append_new(shape,
		    json_integer((json_int_t)tensor->shape[i]));
	if (object == NULL || shape == NULL ||
	    json_set_name(object, "name", tensor->name) != 0 ||
	    json_set_u64(object, "size_bytes", tensor->bytes) != 0 ||
	    json_object_set(object, "shape", shape) != 0) {
		json_decref(object);
		object = NULL;
	}
	json_decref(shape);
	return object;
}

static json_t *
part_object(const struct model_part *part)
{
	json_t *object = json_object();

	if (object != NULL &&
	    json_set_name(object, "path", part->path) == 0 &&
	    json_set_u64(object, "size_bytes", part->length) == 0)
		return object;
	json_decref(object);
	return NULL;
}

static int
set_lists(json_t *object, const struct model *model, uint64_t *bytes)
{
	json_t *tensors = json_array(), *parts = json_array();
	json_t *refused = json_array(), *line;
	int result = 0;
	size_t i;

	*bytes = 0;
	for (i = 0; i < model->count; i++) {
		*bytes += model->tensors[i].bytes;
		result |= json_array_append_new(tensors,
		    tensor_object(&model->tensors[i]));
	}
	for (i = 0; i < model->part_count; i++) {
		*bytes += model->parts[i].length;
		result |= json_array_append_new(parts,
		    part_object(&model->parts[i]));
	}
	for (i = 0; i < model->refused_count; i++) {
		line = json_object();
		result |= line == NULL ? -1 :
		    json_set_name(line, "text", model->refused[i]);
		result |= json_array_append_new(refused, line);
	}
	result |= json_object_set_new(object, "tensors", tensors);
	result |= json_object_set_new(object, "parts", parts);
	result |= json_object_set_new(object, "refused", refused);
	return result;
}

int
tensors_fill(json_t *object, const struct model *model)
{
	uint64_t bytes;

	if (set_lists(object, model, &bytes) != 0 ||
	    json_object_set_new(object, "layout",
	    json_string(layouts[model->layout])) != 0 ||
	    json_set_name(object, "key", model->key) != 0 ||
	    json_set_u64(object, "tensor_bytes", bytes) != 0 ||
	    json_set_u64(object, "left_out", model->left_out) != 0 ||
	    json_set_u64(object, "left_out_bytes", model->left_out_bytes &
	    INT64_MAX) != 0 ||
	    json_set_name(object, "note", model->note) != 0)
		return -1;
	return 0;
}

static bool
is_resume(const struct subject *subject)
{
	const struct truth *truth = subject->truth;

	return truth->resume != SIZE_MAX &&
	    subject->manifest == truth->valid[truth->resume];
}

int
tensors_subject(json_t *object, const struct subject *subject)
{
	json_t *checkpoint;

	if (json_set_name(object, "name", subject->name) != 0 ||
	    json_object_set_new(object, "choice",
	    json_string(choices[subject->choice].word)) != 0 ||
	    json_set_u64(object, "checkpoint_bytes", subject->size) != 0)
		return -1;
	if (subject->manifest == NULL)
		return 0;
	checkpoint = output_checkpoint(subject->manifest, is_resume(subject));
	return json_object_set_new(object, "checkpoint", checkpoint);
}

void
tensors_print_subject(const struct subject *subject)
{
	const struct manifest *manifest = subject->manifest;
	char id[MANIFEST_ID_SIZE];

	output_name(subject->name);
	if (manifest != NULL) {
		printf(" (%s", manifest_id(manifest, id));
		if (manifest->has_step)
			printf(", step %" PRIu64, manifest->step);
		putchar(')');
	}
	fputs(choices[subject->choice].phrase, stdout);
}

int
tensors_read(const struct subject *subject, const struct options *options,
    struct model *model, struct error *error)
{
	const struct model_options wanted = {
		/* All that there is, when nothing is taken. */
		.key = options->tensors ? "." : options->key,
		.ema = options->ema,
		.strip_prefix = options->strip_prefix,
		.include = options->include,
		.include_count = options->settings.view.include_count,
		.exclude = options->exclude,
		.exclude_count = options->settings.view.exclude_count
	};
	struct error trouble = ERROR_INIT;
	struct buffer tree;

	if (model_read(subject->files, subject->count, &wanted, model,
	    error) == 0)
		return 0;
	if (error->class != ERROR_USAGE)
		return -1;
	buffer_init(&tree, TREE_MAXIMUM);
	if (model_tree(subject->files, subject->count, &tree, &trouble) == 0)
		fputs(buffer_text(&tree), stderr);
	buffer_free(&tree);
	return -1;
}

int
command_tensors(const struct options *options)
{
	struct error error = ERROR_INIT;
	struct subject subject;
	struct model model = { .layout = MODEL_TORCH };
	json_t *object;
	int status;

	if (subject_open(&subject, options, &error) != 0 ||
	    tensors_read(&subject, options, &model, &error) != 0) {
		status = output_failure(options, &error);
	} else if (options->json) {
		object = json_object();
		if (object != NULL && (tensors_subject(object, &subject) != 0 ||
		    tensors_fill(object, &model) != 0)) {
			json_decref(object);
			object = NULL;
		}
		status = output_json(object);
	} else {
		tensors_print_subject(&subject);
		printf("\n");
		tensors_print(&model);
		status = output_finish(ERROR_NONE);
	}
	model_free(&model);
	subject_close(&subject);
	return status;
}
