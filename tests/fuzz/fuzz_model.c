/* room: format */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/source.h"
#include "format/model.h"
#include "format/splice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The box lies in the file, and starts within the tensor. */
static void
check_piece(const struct tensor *tensor, const struct tensor_piece *piece,
    size_t size)
{
	uint64_t last = piece->offset;
	unsigned width = tensor_type_width(tensor->type);

	if (piece->file != 0)
		abort();
	for (unsigned i = 0; i < tensor->dimensions; i++) {
		if (piece->size[i] == 0 ||
		    piece->start[i] + piece->size[i] > tensor->shape[i])
			abort();
		last += (piece->size[i] - 1) * piece->stride[i] * width;
	}
	if (last > size || width > size - last)
		abort();
}

static void
check_outline(const struct model *model, enum model_output output)
{
	struct model_outline outline;
	struct error error = ERROR_INIT;
	uint32_t *checksums = calloc(model->count + 1, sizeof(*checksums));

	if (model_outline_make(model, output, NULL, &outline, &error) == 0) {
		if (outline.needs_checksums &&
		    model_outline_seal(&outline, checksums, &error) != 0)
			abort();
		for (size_t i = 0; i < model->count; i++)
			if (outline.places[i] + model->tensors[i].bytes >
			    outline.size)
				abort();
	} else if (error.message[0] == '\0') {
		abort();
	}
	model_outline_free(&outline);
	free(checksums);
}

static void
check_model(struct model *model, size_t size)
{
	struct error error = ERROR_INIT;

	for (size_t i = 0; i < model->count; i++)
		for (size_t j = 0; j < model->tensors[i].piece_count; j++)
			check_piece(&model->tensors[i],
			    &model->tensors[i].pieces[j], size);
	for (size_t i = 0; i < model->part_count; i++)
		if (model->parts[i].offset > size ||
		    model->parts[i].length > size - model->parts[i].offset)
			abort();
	if (model->layout == MODEL_FILES)
		return;
	check_outline(model, MODEL_OUTPUT_TORCH);
	if (model_fit(model, MODEL_OUTPUT_SAFETENSORS, NULL, &error) == 0)
		check_outline(model, MODEL_OUTPUT_SAFETENSORS);
}

static void
check_splice(const struct source *source, size_t size)
{
	struct splice splice;
	struct error error = ERROR_INIT;

	if (splice_make(source, &splice, &error) != 0 &&
	    error.message[0] == '\0')
		abort();
	for (size_t i = 0; i < splice.count; i++)
		if (splice.copies[i].from > size ||
		    splice.copies[i].length > size - splice.copies[i].from)
			abort();
	splice_free(&splice);
}

/* Any file: a model whose pieces lie in it, or an error that says why. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_memory memory = { data, size };
	struct source source = source_from_memory(&memory);
	struct model_file file = { "x", &source };
	struct model_options options = { .key = size % 2 == 0 ? "." : NULL,
		.ema = size % 3 == 0, .strip_prefix = size % 5 == 0 };
	struct model model;
	struct buffer tree;
	struct error error = ERROR_INIT;

	if (model_read(&file, 1, &options, &model, &error) == 0)
		check_model(&model, size);
	else if (error.message[0] == '\0' || error.class == ERROR_NONE)
		abort();
	model_free(&model);
	buffer_init(&tree, 1 << 20);
	if (model_tree(&file, 1, &tree, &error) != 0 &&
	    error.message[0] == '\0')
		abort();
	buffer_free(&tree);
	if (size % 7 == 0)
		check_splice(&source, size);
	return 0;
}
