#include "format/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "format/model_fit.h"
#include "format/safetensors_header.h"
#include "format/torch_write.h"
#include "format/zip_plan.h"

#define PICKLE_MAXIMUM ((size_t)1 << 30)
#define FOLDER "archive/"	/* as torch names it when it has no file name */

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory for the outline of a file");
}

static uint64_t
output_bytes(const struct tensor *tensor, enum tensor_type type)
{
	return tensor->bytes / tensor_type_width(tensor->type) *
	    tensor_type_width(type);
}

static int
add_literal(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	struct model_outline *outline = context;
	size_t count = outline->literal_count;
	void *row = outline->literals;

	/* The capacity is the next power of two. */
	if ((count & (count - 1)) == 0)
		row = realloc(row, (count == 0 ? 1 : 2 * count) *
		    sizeof(*outline->literals));
	if (row == NULL) {
		free(data);
		return no_memory(error);
	}
	outline->literals = row;
	outline->literals[count].offset = offset;
	outline->literals[count].length = length;
	outline->literals[count].data = data;
	outline->literal_count++;
	return 0;
}

/* A tensor in the order of a safetensors file. */
struct ranked {
	const struct tensor *tensor;
	unsigned width;
	size_t index;
};

/* Wide types first, so that all are aligned; then by name, as its own writer
 * does (safetensors/src/tensor.rs, prepare). */
static int
by_width(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	if (left->width != right->width)
		return left->width > right->width ? -1 : 1;
	return strcmp(left->tensor->name, right->tensor->name);
}

static struct ranked *
rank(const struct model *model, const struct model_outline *outline)
{
	struct ranked *ranked = malloc((model->count + 1) * sizeof(*ranked));

	if (ranked == NULL)
		return NULL;
	for (size_t i = 0; i < model->count; i++)
		ranked[i] = (struct ranked){ &model->tensors[i],
			tensor_type_width(outline->types[i]), i };
	qsort(ranked, model->count, sizeof(*ranked), by_width);
	return ranked;
}

static int
put_name(struct buffer *header, const char *name, struct error *error)
{
	int result = buffer_append(header, "\"", 1, error);

	for (; *name != '\0' && result == 0; name++) {
		if (*name == '"' || *name == '\\')
			result = buffer_format(header, error, "\\%c", *name);
		else if ((unsigned char)*name < 0x20)
			result = buffer_format(header, error, "\\u%04x",
			    (unsigned)*name);
		else
			result = buffer_append(header, name, 1, error);
	}
	return result != 0 ? -1 : buffer_append(header, "\":", 2, error);
}

static int
put_tensor(struct buffer *header, const struct tensor *tensor,
    enum tensor_type type, uint64_t begin, uint64_t end, struct error *error)
{
	if (buffer_append(header, ",", 1, error) != 0 ||
	    put_name(header, tensor->name, error) != 0 ||
	    buffer_format(header, error, "{\"dtype\":\"%s\",\"shape\":[",
	    tensor_type_text(type)) != 0)
		return -1;
	for (unsigned i = 0; i < tensor->dimensions; i++)
		if (buffer_format(header, error, "%s%" PRIu64,
		    i == 0 ? "" : ",", tensor->shape[i]) != 0)
			return -1;
	return buffer_format(header, error, "],\"data_offsets\":[%" PRIu64
	    ",%" PRIu64 "]}", begin, end);
}

/* The header's text; places and size are still those behind it. */
static int
make_header(const struct model *model, const struct ranked *ranked,
    struct model_outline *outline, struct buffer *header, struct error *error)
{
	uint64_t at = 0, end;

	if (buffer_format(header, error,
	    "{\"__metadata__\":{\"format\":\"pt\"}") != 0)
		return -1;
	for (size_t i = 0; i < model->count; i++) {
		size_t index = ranked[i].index;
		enum tensor_type type = outline->types[index];

		if (__builtin_add_overflow(at, output_bytes(ranked[i].tensor,
		    type), &end) || end > INT64_MAX / 2)
			return error_set(error, ERROR_FAILED, CAUSE_LIMIT,
			    NULL, "it would be too large for any file");
		if (put_tensor(header, ranked[i].tensor, type, at, end,
		    error) != 0)
			return -1;
		outline->places[index] = at;
		at = end;
	}
	outline->size = at;
	if (buffer_append(header, "}", 1, error) != 0)
		return -1;
	while (header->length % 8 != 0)
		if (buffer_append(header, " ", 1, error) != 0)
			return -1;
	return 0;
}

static int
lay_safetensors(const struct model *model, struct model_outline *outline,
    struct error *error)
{
	struct ranked *ranked = rank(model, outline);
	struct buffer header;
	uint8_t *data = NULL;
	int result = -1;

	buffer_init(&header, SAFETENSORS_HEADER_MAXIMUM);
	if (ranked == NULL) {
		no_memory(error);
		goto done;
	}
	if (make_header(model, ranked, outline, &header, error) != 0)
		goto done;
	data = malloc(header.length + 8);
	if (data == NULL) {
		no_memory(error);
		goto done;
	}
	for (int i = 0; i < 8; i++)
		data[i] = (uint8_t)((uint64_t)header.length >> (8 * i));
	memcpy(data + 8, header.data, header.length);
	for (size_t i = 0; i < model->count; i++)
		outline->places[i] += 8 + header.length;
	outline->size += 8 + header.length;
	result = add_literal(outline, 0, data, 8 + header.length, error);

done:
	buffer_free(&header);
	free(ranked);
	return result;
}

static int
add_record(struct model_outline *outline, const char *name, const void *data,
    uint64_t length, uint64_t *place, struct error *error)
{
	return zip_plan_add(outline->zip, name, strlen(name), data, length,
	    place, error);
}

static int
lay_storages(const struct model *model, struct model_outline *outline,
    struct error *error)
{
	for (size_t i = 0; i < model->count; i++) {
		char name[64];

		snprintf(name, sizeof(name), FOLDER "data/%zu", i);
		if (add_record(outline, name, NULL,
		    output_bytes(&model->tensors[i], outline->types[i]),
		    &outline->places[i], error) != 0)
			return -1;
	}
	return 0;
}

static int
lay_torch(const struct model *model, struct model_outline *outline,
    struct error *error)
{
	struct buffer pickle;
	uint64_t place;
	int result = -1;

	buffer_init(&pickle, PICKLE_MAXIMUM);
	outline->zip = zip_plan_new();
	if (outline->zip == NULL) {
		no_memory(error);
		goto done;
	}
	outline->needs_checksums = true;
	if (torch_write_pickle(model, outline->types, &pickle, error) != 0 ||
	    add_record(outline, FOLDER "data.pkl", pickle.data,
	    pickle.length, &place, error) != 0 ||
	    add_record(outline, FOLDER "byteorder", "little", 6, &place,
	    error) != 0 || lay_storages(model, outline, error) != 0 ||
	    add_record(outline, FOLDER "version", "3\n", 2, &place,
	    error) != 0)
		goto done;
	outline->size = zip_plan_size(outline->zip);
	result = 0;

done:
	buffer_free(&pickle);
	return result;
}

int
model_outline_make(const struct model *model, enum model_output output,
    const enum tensor_type *convert, struct model_outline *outline,
    struct error *error)
{
	memset(outline, 0, sizeof(*outline));
	outline->places = calloc(model->count + 1, sizeof(*outline->places));
	outline->types = calloc(model->count + 1, sizeof(*outline->types));
	if (outline->places == NULL || outline->types == NULL)
		return no_memory(error);
	for (size_t i = 0; i < model->count; i++) {
		const struct tensor *tensor = &model->tensors[i];
		const char *why;

		outline->types[i] = model_fit_type(tensor->type, convert);
		why = model_fit_objection(tensor, output, outline->types[i]);
		if (why != NULL)
			return error_set(error, ERROR_FAILED,
			    CAUSE_UNSUPPORTED, tensor->name, "%s", why);
	}
	return output == MODEL_OUTPUT_SAFETENSORS ?
	    lay_safetensors(model, outline, error) :
	    lay_torch(model, outline, error);
}

int
model_outline_seal(struct model_outline *outline, const uint32_t *checksums,
    struct error *error)
{
	return zip_plan_seal(outline->zip, checksums, add_literal, outline,
	    error);
}

void
model_outline_free(struct model_outline *outline)
{
	for (size_t i = 0; i < outline->literal_count; i++)
		free(outline->literals[i].data);
	free(outline->literals);
	free(outline->places);
	free(outline->types);
	zip_plan_free(outline->zip);
	memset(outline, 0, sizeof(*outline));
}
