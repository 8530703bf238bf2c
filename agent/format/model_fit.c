#include "format/model_fit.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "format/convert.h"
#include "format/model_take.h"
#include "format/tensor_make.h"

enum tensor_type
model_fit_type(enum tensor_type type, const enum tensor_type *convert)
{
	return convert != NULL && convert_possible(type, *convert) ?
	    *convert : type;
}

const char *
model_fit_objection(const struct tensor *tensor, enum model_output output,
    enum tensor_type type)
{
	if (!text_is_utf8(tensor->name))
		return "its name is not UTF-8";
	if (output == MODEL_OUTPUT_TORCH)
		return NULL;
	if (type == TENSOR_C128)
		return "safetensors has no word for complex128";
	if (strcmp(tensor->name, "__metadata__") == 0)
		return "safetensors keeps that name for itself";
	return NULL;
}

int
model_fit(struct model *model, enum model_output output,
    const enum tensor_type *convert, struct error *error)
{
	size_t kept = 0;
	int result = 0;

	for (size_t i = 0; i < model->count; i++) {
		struct tensor *tensor = &model->tensors[i];
		const char *why = model_fit_objection(tensor, output,
		    model_fit_type(tensor->type, convert));

		if (why == NULL) {
			model->tensors[kept++] = *tensor;
			continue;
		}
		if (result == 0)
			result = model_refuse(model, tensor->name, why, error);
		tensor_make_free(tensor);
	}
	model->count = kept;
	if (result == 0 && kept == 0 && model->refused_count > 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "none of its tensors can be taken: %s",
		    model->refused[0]);
	return result;
}
