#include "format/model_safetensors.h"

#include <string.h>

#include "base/error.h"
#include "format/format.h"
#include "format/key_tree.h"
#include "format/model_take.h"
#include "format/safetensors_header.h"
#include "format/tensor_make.h"

/* What the header says of a tensor that can be taken. */
struct stored {
	enum tensor_type type;
	unsigned dimensions;
	uint64_t offset;
	uint64_t shape[];
};

struct reading {
	struct key_tree tree;
	size_t file;
};

static bool
find_type(const char *dtype, enum tensor_type *type)
{
	for (int i = TENSOR_BOOL; i <= TENSOR_F8_E4M3; i++) {
		if (strcmp(tensor_type_text((enum tensor_type)i), dtype) == 0) {
			*type = (enum tensor_type)i;
			return true;
		}
	}
	return false;
}

static struct stored *
store(struct reading *reading, const struct safetensors_tensor *tensor,
    enum tensor_type type, struct error *error)
{
	struct stored *stored = arena_take(&reading->tree.arena,
	    sizeof(*stored) + tensor->dimensions * sizeof(uint64_t), error);

	if (stored == NULL)
		return NULL;
	stored->type = type;
	stored->dimensions = (unsigned)tensor->dimensions;
	stored->offset = tensor->offset;
	memcpy(stored->shape, tensor->shape,
	    tensor->dimensions * sizeof(uint64_t));
	return stored;
}

/* The header was checked: this fits. */
static uint64_t
bytes_of(const struct stored *stored)
{
	uint64_t bytes = tensor_type_width(stored->type);

	for (unsigned i = 0; i < stored->dimensions; i++)
		bytes *= stored->shape[i];
	return bytes;
}

static int
visit(void *context, const struct safetensors_tensor *tensor,
    struct error *error)
{
	struct reading *reading = context;
	size_t length = strlen(tensor->name);
	char *name = arena_take(&reading->tree.arena, length + 1, error);
	struct stored *stored = NULL;
	enum tensor_type type;
	struct key *key;

	if (name == NULL)
		return -1;
	memcpy(name, tensor->name, length + 1);
	key = key_tree_add(&reading->tree, reading->tree.root, KEY_REFUSED,
	    error);
	if (key == NULL)
		return -1;
	key->name = name;
	key->length = length;
	key->why = "its element type is none that is known";
	if (find_type(tensor->dtype, &type) &&
	    tensor->dimensions <= TENSOR_DIMENSIONS_MAXIMUM) {
		stored = store(reading, tensor, type, error);
		if (stored == NULL)
			return -1;
		key->kind = KEY_TENSOR;
		key->scalar = stored->dimensions == 0;
		key->origin = stored;
	}
	return key_tree_count(&reading->tree, key, stored == NULL ? 0 :
	    bytes_of(stored), error);
}

static int
make(void *context, const struct key *key, struct tensor *tensor,
    const char **why, struct error *error)
{
	const struct reading *reading = context;
	const struct stored *stored = key->origin;

	(void)why;
	if (tensor_make_shape(tensor, stored->type, stored->dimensions,
	    error) != 0)
		return -1;
	memcpy(tensor->shape, stored->shape,
	    stored->dimensions * sizeof(uint64_t));
	if (tensor_make_bytes(tensor, error) != 0 || tensor_make_run(tensor,
	    reading->file, stored->offset, error) != 0) {
		tensor_make_free(tensor);
		return -1;
	}
	return 0;
}

static int
read_tree(const struct source *source, struct reading *reading,
    struct error *error)
{
	struct format_report report;
	uint64_t data;
	bool failed;
	int result;

	if (key_tree_init(&reading->tree, error) != 0)
		return -1;
	memset(&report, 0, sizeof(report));
	result = safetensors_header_read(source, visit, reading, &report,
	    &data, &failed, error);
	format_report_free(&report);
	return result;
}

int
model_safetensors_take(const struct source *source, size_t file,
    const struct model_options *options, struct model *model,
    struct error *error)
{
	struct reading reading = { .file = file };
	struct model_maker maker = { make, &reading };
	struct model_options all = *options;
	int result = read_tree(source, &reading, error);

	if (all.key == NULL && !all.ema)
		all.key = ".";
	if (result == 0 && reading.tree.tensors > 0)
		result = model_take(&reading.tree, &maker, &all, model, error);
	key_tree_free(&reading.tree);
	return result;
}

int
model_safetensors_print(const struct source *source, struct buffer *text,
    struct error *error)
{
	struct reading reading = { .file = 0 };
	int result = read_tree(source, &reading, error);

	if (result == 0)
		result = key_tree_print(&reading.tree, text, error);
	key_tree_free(&reading.tree);
	return result;
}
