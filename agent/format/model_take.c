#include "format/model_take.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/path.h"
#include "format/key_tree.h"
#include "format/model_choice.h"
#include "format/tensor_make.h"

/* What taking needs on its way through the tree. */
struct taker {
	const struct model_maker *maker;
	const struct model_options *options;
	const struct model_choice *choice;
	struct model *model;
	struct buffer name;
	struct error *error;
};

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory for the tensors of a model");
}

/* Room for one more: the capacity is the next power of two, at least 16. */
static int
grow(void **row, size_t count, size_t size, struct error *error)
{
	size_t capacity = count < 16 ? 16 : count * 2;
	void *larger;

	if (count != 0 && (count < 16 || (count & (count - 1)) != 0))
		return 0;
	larger = realloc(*row, capacity * size);
	if (larger == NULL)
		return no_memory(error);
	*row = larger;
	return 0;
}

int
model_refuse(struct model *model, const char *name, const char *why,
    struct error *error)
{
	void *row = model->refused;

	if (grow(&row, model->refused_count, sizeof(*model->refused),
	    error) != 0)
		return -1;
	model->refused = row;
	if (asprintf(&model->refused[model->refused_count], "%s: %s", name,
	    why) < 0)
		return no_memory(error);
	model->refused_count++;
	return 0;
}

static bool
matches_any(const char *const *globs, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (path_matches(globs[i], name))
			return true;
	return false;
}

static bool
is_wanted(const struct model_options *options, const char *name)
{
	if (options->include_count > 0 && !matches_any(options->include,
	    options->include_count, name))
		return false;
	return !matches_any(options->exclude, options->exclude_count, name);
}

/* The name of ${key} below the base, into `name`. */
static int
make_name(struct taker *taker, const struct key *key)
{
	const struct key *base = taker->choice->base;
	size_t prefix = taker->choice->kind == MODEL_CHOICE_PREFIX ?
	    strlen(taker->choice->prefix) + 1 : 0;
	struct error full;

	buffer_clear(&taker->name);
	if (key->absolute ? buffer_append(&taker->name, key->name,
	    key->length, &full) != 0 : key_tree_path(key == base ?
	    key->parent : base, key, &taker->name, &full) != 0) {
		if (full.cause == CAUSE_MEMORY)
			return no_memory(taker->error);
		return error_set(taker->error, ERROR_DAMAGED, CAUSE_LIMIT,
		    NULL, "a tensor's name is longer than %d bytes",
		    KEY_TREE_NAME_MAXIMUM);
	}
	if (prefix > 0 && prefix < taker->name.length &&
	    memcmp(taker->name.data, taker->choice->prefix, prefix - 1) == 0) {
		memmove(taker->name.data, taker->name.data + prefix,
		    taker->name.length - prefix + 1);
		taker->name.length -= prefix;
	}
	return 0;
}

static int
add_tensor(struct taker *taker, struct tensor *tensor, const char *name)
{
	struct model *model = taker->model;
	void *row = model->tensors;

	tensor->name = strdup(name);
	if (tensor->name == NULL) {
		tensor_make_free(tensor);
		return no_memory(taker->error);
	}
	if (grow(&row, model->count, sizeof(*model->tensors),
	    taker->error) != 0) {
		tensor_make_free(tensor);
		return -1;
	}
	model->tensors = row;
	model->tensors[model->count++] = *tensor;
	model->left_out--;
	model->left_out_bytes -= tensor->bytes < model->left_out_bytes ?
	    tensor->bytes : model->left_out_bytes;
	return 0;
}

static int
take_tensor(struct taker *taker, const struct key *key)
{
	struct tensor tensor;
	const char *name, *why = key->why;
	int result = 1;

	if (make_name(taker, key) != 0)
		return -1;
	name = buffer_text(&taker->name);
	if (!is_wanted(taker->options, name))
		return 0;
	if (strlen(name) != taker->name.length)
		why = "its name holds a NUL";
	else if (key->kind == KEY_TENSOR)
		result = taker->maker->make(taker->maker->context, key,
		    &tensor, &why, taker->error);
	if (result < 0)
		return error_prefix(taker->error, "tensor %s", name);
	if (result > 0) {
		taker->model->left_out--;
		return model_refuse(taker->model, name, why, taker->error);
	}
	return add_tensor(taker, &tensor, name);
}

/* No deeper than the tree is (KEY_TREE_DEPTH_MAXIMUM). */
static int
take_beneath(struct taker *taker, const struct key *key)
{
	if (key->kind == KEY_TENSOR || key->kind == KEY_REFUSED)
		return take_tensor(taker, key);
	for (const struct key *at = key->child; at != NULL; at = at->next) {
		if (key == taker->choice->base &&
		    !model_choice_holds(taker->choice, at))
			continue;
		if (take_beneath(taker, at) != 0)
			return -1;
	}
	return 0;
}

/* Which key was taken, said once for all files. */
static int
say_key(const struct key_tree *tree, const struct model_choice *choice,
    struct model *model, struct error *error)
{
	struct buffer path;
	int result;

	if (model->key != NULL)
		return 0;
	buffer_init(&path, (size_t)KEY_TREE_DEPTH_MAXIMUM *
	    KEY_TREE_NAME_MAXIMUM);
	result = key_tree_path(tree->root, choice->base, &path, error);
	if (result == 0 && choice->kind == MODEL_CHOICE_PREFIX)
		result = buffer_format(&path, error, "%s%s",
		    path.length > 0 ? "." : "", choice->prefix);
	if (result == 0) {
		model->key = strdup(buffer_text(&path));
		if (model->key == NULL)
			result = no_memory(error);
	}
	buffer_free(&path);
	return result;
}

int
model_take(const struct key_tree *tree, const struct model_maker *maker,
    const struct model_options *options, struct model *model,
    struct error *error)
{
	struct model_choice choice;
	struct taker taker = { .maker = maker, .options = options,
		.choice = &choice, .model = model, .error = error };
	int result;

	if (model_choice_make(tree, options, &choice, error) != 0 ||
	    say_key(tree, &choice, model, error) != 0)
		return -1;
	model->module = model->module || choice.base->kind == KEY_MODULE;
	model->left_out += tree->root->tensors;
	if (__builtin_add_overflow(model->left_out_bytes, tree->root->bytes,
	    &model->left_out_bytes))
		model->left_out_bytes = UINT64_MAX;
	buffer_init(&taker.name, KEY_TREE_NAME_MAXIMUM);
	result = take_beneath(&taker, choice.base);
	buffer_free(&taker.name);
	return result;
}

/*
 * What wrappers put before all names: DistributedDataParallel, torch.compile,
 * Lightning.  Only when it is before all: half of the names changed is a
 * state dict of nothing.
 */
static void
strip_prefixes(struct model *model)
{
	static const char *const prefixes[] = { "module.", "_orig_mod.",
		"model." };
	bool stripped = true;

	while (stripped && model->count > 0) {
		stripped = false;
		for (size_t i = 0; i < 3; i++) {
			size_t length = strlen(prefixes[i]), having = 0;

			while (having < model->count &&
			    strncmp(model->tensors[having].name, prefixes[i],
			    length) == 0)
				having++;
			if (having < model->count)
				continue;
			for (size_t j = 0; j < model->count; j++) {
				char *name = model->tensors[j].name;

				memmove(name, name + length,
				    strlen(name + length) + 1);
			}
			stripped = true;
		}
	}
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int
check_twins(const struct model *model, struct error *error)
{
	const char **names = malloc((model->count + 1) * sizeof(*names));
	int result = 0;

	if (names == NULL)
		return no_memory(error);
	for (size_t i = 0; i < model->count; i++)
		names[i] = model->tensors[i].name;
	qsort(names, model->count, sizeof(*names), by_text);
	for (size_t i = 1; i < model->count && result == 0; i++) {
		if (strcmp(names[i - 1], names[i]) != 0)
			continue;
		error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "two of its tensors are named %s", names[i]);
		result = error_cure(error, "if they come from several files, "
		    "give the one that is meant");
	}
	free(names);
	return result;
}

int
model_finish(struct model *model, const struct model_options *options,
    struct error *error)
{
	if (model->count == 0 && model->refused_count > 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "none of its tensors can be taken: %s",
		    model->refused[0]);
	if (model->count == 0)
		return error_set(error, options->include_count > 0 ||
		    options->exclude_count > 0 ? ERROR_USAGE : ERROR_NOTHING,
		    CAUSE_NOT_FOUND, NULL, "no tensor is left to be taken");
	if (options->strip_prefix)
		strip_prefixes(model);
	return check_twins(model, error);
}
