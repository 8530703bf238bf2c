#include "format/model_files.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "base/source.h"
#include "format/format.h"
#include "format/legacy.h"
#include "format/safetensors_header.h"
#include "format/tar.h"

#define START_SIZE 512

/* Folders of a checkpoint that hold no weights. */
static const char *const other_folders[] = { "optimizer_[0-9]*", "optimizer",
	"runs", "logs", "wandb", "global_step[0-9]*", "opt_state", "dataset",
	"ocdbt.process_*", "d", "offloaded_tensors" };

/*
 * Files that are no weights: HF Trainer, accelerate, DeepSpeed, Megatron,
 * Lightning's sharded directories, verl, Keras.
 */
static const char *const other_files[] = { "optim*", "lr_scheduler*",
	"scheduler*", "scaler*", "rng_state*", "random_states_*", "sampler*",
	"dl_state_dict*", "custom_checkpoint_*", "trainer_state.json",
	"training_args.bin", "training_metadata.json", "zero_to_fp32.py",
	"*optim_states.pt", "distrib_optim.pt", "extra_state_*", "meta.pt",
	"common.pt", "latest*.txt", "requirements.txt", "run_metadata.json" };

/* Weights, and what belongs to them: configuration and tokenizers. */
static const char *const weight_files[] = { "*.safetensors", "*.bin", "*.pt",
	"*.pth", "*.ckpt", "*.pth.tar", "*.h5", "*.hdf5", "*.keras", "*.gguf",
	"*.nemo", "*.msgpack", "*.distcp", ".metadata" };
static const char *const companion_files[] = { "*.json", "*.txt", "*.model",
	"*.py", "*.jinja", "*.yaml", "*.yml", "*.tiktoken", "*.spm", "*.bpe",
	"*.vocab", "vocab.*", "README.md", "LICENSE*", "NOTICE*" };

#define COUNT(row) (sizeof(row) / sizeof((row)[0]))

static bool
matches(const char *const *globs, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (fnmatch(globs[i], name, 0) == 0)
			return true;
	return false;
}

/* Whether some folder on the way to ${path} matches. */
static bool
lies_in(const char *const *globs, size_t count, const char *path)
{
	char folder[256];
	const char *slash;

	while ((slash = strchr(path, '/')) != NULL) {
		size_t length = (size_t)(slash - path);

		if (length < sizeof(folder)) {
			memcpy(folder, path, length);
			folder[length] = '\0';
			if (matches(globs, count, folder))
				return true;
		}
		path = slash + 1;
	}
	return false;
}

/* Orbax: arrays saved as an item of their own. */
static bool
is_params_item(const char *path)
{
	static const char *const params[] = { "params" };

	return lies_in(params, 1, path);
}

bool
model_choose_file(const char *path)
{
	const char *name = path_base(path);

	if (is_params_item(path))
		return true;
	if (lies_in(other_folders, COUNT(other_folders), path) ||
	    matches(other_files, COUNT(other_files), name))
		return false;
	return matches(weight_files, COUNT(weight_files), name) ||
	    matches(companion_files, COUNT(companion_files), name);
}

int
model_files_content(const struct source *source, enum model_content *content,
    struct error *error)
{
	uint8_t start[START_SIZE];
	size_t length = source->size < sizeof(start) ? (size_t)source->size :
	    sizeof(start);

	*content = MODEL_CONTENT_OTHER;
	if (source_read(source, 0, start, length, error) != 0)
		return -1;
	if ((length >= 4 && memcmp(start, "PK\3\4", 4) == 0) ||
	    legacy_claimed(start, length))
		*content = MODEL_CONTENT_TORCH;
	else if (length >= 8 && memcmp(start, "\x89HDF\r\n\x1a\n", 8) == 0)
		*content = MODEL_CONTENT_HDF5;
	else if (length >= 4 && memcmp(start, "GGUF", 4) == 0)
		*content = MODEL_CONTENT_GGUF;
	else if (tar_claimed(start, length))
		*content = MODEL_CONTENT_TAR;
	else if (length >= 2 && memcmp(start, "\x1f\x8b", 2) == 0)
		*content = MODEL_CONTENT_GZIP;
	else if (safetensors_header_claimed(start, length))
		*content = MODEL_CONTENT_SAFETENSORS;
	return 0;
}

static int
add(struct model_plan *plan, size_t file)
{
	plan->files[plan->count++] = file;
	return 0;
}

static int
unsupported(struct error *error, const char *object, const char *what,
    const char *cure)
{
	error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, object, "%s", what);
	return error_cure(error, "%s", cure);
}

static int
not_found(struct error *error, const char *what)
{
	return error_set(error, ERROR_NOTHING, CAUSE_NOT_FOUND, NULL, "%s",
	    what);
}

/* torch.distributed.checkpoint: the one .metadata that is no optimizer's. */
static int
plan_dcp(const struct model_file *files, size_t count,
    struct model_plan *plan, struct error *error)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(path_base(files[i].path), ".metadata") != 0 ||
		    !model_choose_file(files[i].path))
			continue;
		if (plan->count > 0)
			return error_set(error, ERROR_USAGE, CAUSE_OTHER,
			    files[i].path, "beside %s: two distributed "
			    "checkpoints, give the one that is meant",
			    files[plan->files[0]].path);
		plan->layout = MODEL_DCP;
		add(plan, i);
	}
	return 0;
}

static int
plan_orbax(const struct model_file *files, size_t count,
    struct model_plan *plan, struct error *error)
{
	static const char *const marks[] = { "manifest.ocdbt", "_METADATA",
		"_CHECKPOINT_METADATA" };
	const char *mixed = NULL;

	for (size_t i = 0; i < count; i++)
		if (matches(marks, COUNT(marks), path_base(files[i].path)))
			mixed = files[i].path;
	if (mixed == NULL)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (is_params_item(files[i].path))
			add(plan, i);
	plan->layout = MODEL_FILES;
	if (plan->count > 0)
		return 0;
	return unsupported(error, mixed, "Orbax keeps the model and the "
	    "optimizer in the same files",
	    "restore it whole and let Orbax read only the parameters");
}

static int
refuse_tables(const struct model_file *files, size_t count,
    struct error *error)
{
	for (size_t i = 0; i < count; i++)
		if (fnmatch("*.data-[0-9]*-of-[0-9]*",
		    path_base(files[i].path), 0) == 0)
			return unsupported(error, files[i].path, "TensorFlow "
			    "keeps the model and the optimizer in the same "
			    "table", "restore it whole and export the model "
			    "with TensorFlow");
	return 0;
}

static int
refuse_zero_3(const struct model_file *files, size_t count,
    struct error *error)
{
	for (size_t i = 0; i < count; i++)
		if (fnmatch("*zero_pp_rank_*_model_states.pt",
		    path_base(files[i].path), 0) == 0)
			return unsupported(error, files[i].path, "DeepSpeed "
			    "ZeRO-3 keeps the weights inside the optimizer's "
			    "files", "restore it whole and run its "
			    "zero_to_fp32.py");
	return 0;
}

/* What format_index_shards calls for each shard of the index at ${folder}. */
struct shards {
	const struct model_file *files;
	size_t count;
	size_t folder;		/* bytes of the index's folder in its path */
	const char *index;
	struct model_plan *plan;
};

static int
add_shard(void *context, const char *name, struct error *error)
{
	struct shards *shards = context;

	for (size_t i = 0; i < shards->count; i++) {
		const char *path = shards->files[i].path;

		if (strncmp(path, shards->index, shards->folder) == 0 &&
		    strcmp(path + shards->folder, name) == 0)
			return add(shards->plan, i);
	}
	return error_set(error, ERROR_DAMAGED, CAUSE_NOT_FOUND, shards->index,
	    "it names the shard %s, which is not there", name);
}

/* The index of that name, or SIZE_MAX. */
static size_t
find_index(const struct model_file *files, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(path_base(files[i].path), name) == 0 &&
		    model_choose_file(files[i].path))
			return i;
	return SIZE_MAX;
}

static int
plan_index(const struct model_file *files, size_t count, const char *name,
    struct model_plan *plan, struct error *error)
{
	size_t index = find_index(files, count, name);
	struct shards shards = { files, count, 0, NULL, plan };

	if (index == SIZE_MAX)
		return 0;
	shards.index = files[index].path;
	shards.folder = (size_t)(path_base(shards.index) - shards.index);
	return format_index_shards(files[index].source, add_shard, &shards,
	    error);
}

/* Tensors cut for several GPUs cannot be joined without the framework. */
static int
check_ranks(const struct model_file *files, const struct model_plan *plan,
    struct error *error)
{
	const char *first = NULL;

	for (size_t i = 0; i < plan->count; i++) {
		const char *path = files[plan->files[i]].path;
		const char *rank = strstr(path, "mp_rank_");

		if (rank == NULL)
			rank = strstr(path, "_rank_");
		if (rank == NULL)
			continue;
		if (first != NULL && strcmp(first, rank) != 0)
			return unsupported(error, path, "its tensors are cut "
			    "into the parts of several ranks", "merge them "
			    "with the framework that wrote them");
		first = rank;
	}
	return 0;
}

/* The weights of one content among several files; ${all}: also in folders
 * that most often hold other things. */
static int
plan_content(const struct model_file *files, size_t count,
    enum model_content wanted, bool all, struct model_plan *plan,
    struct error *error)
{
	for (size_t i = 0; i < count; i++) {
		enum model_content content;

		if (!matches(weight_files, COUNT(weight_files),
		    path_base(files[i].path)) ||
		    matches(other_files, COUNT(other_files),
		    path_base(files[i].path)) ||
		    (!all && !model_choose_file(files[i].path)))
			continue;
		if (model_files_content(files[i].source, &content,
		    error) != 0)
			return -1;
		if (content == wanted)
			add(plan, i);
	}
	return 0;
}

/* In the order in which the frameworks look for weights. */
static int
plan_weights(const struct model_file *files, size_t count,
    struct model_plan *plan, struct error *error)
{
	static const struct {
		const char *index;
		enum model_content content;
		enum model_layout layout;
	} ways[] = {
		{ "model.safetensors.index.json", MODEL_CONTENT_SAFETENSORS,
		    MODEL_SAFETENSORS },
		{ "pytorch_model.bin.index.json", MODEL_CONTENT_TORCH,
		    MODEL_TORCH },
		{ "", MODEL_CONTENT_HDF5, MODEL_FILES },
		{ "", MODEL_CONTENT_GGUF, MODEL_FILES },
	};

	for (int all = 0; all < 2; all++) {
		for (size_t i = 0; i < COUNT(ways); i++) {
			plan->layout = ways[i].layout;
			if (plan_index(files, count, ways[i].index, plan,
			    error) != 0)
				return -1;
			if (plan->count == 0 && plan_content(files, count,
			    ways[i].content, all != 0, plan, error) != 0)
				return -1;
			if (plan->count > 0)
				return check_ranks(files, plan, error);
		}
		/* Only now: gathered weights may lie beside the parts. */
		if (refuse_zero_3(files, count, error) != 0)
			return -1;
	}
	return not_found(error, "no file of it holds weights that are known");
}

static int
plan_one(const struct model_file *file, struct model_plan *plan,
    struct error *error)
{
	enum model_content content;

	if (refuse_zero_3(file, 1, error) != 0 ||
	    model_files_content(file->source, &content, error) != 0)
		return -1;
	add(plan, 0);
	switch (content) {
	case MODEL_CONTENT_TORCH:
		plan->layout = MODEL_TORCH;
		return 0;
	case MODEL_CONTENT_SAFETENSORS:
		plan->layout = MODEL_SAFETENSORS;
		return 0;
	case MODEL_CONTENT_TAR:
		plan->tar = true;
		return 0;
	case MODEL_CONTENT_HDF5:
	case MODEL_CONTENT_GGUF:
		plan->layout = MODEL_FILES;
		return 0;
	case MODEL_CONTENT_GZIP:
		return unsupported(error, file->path, "it is compressed by "
		    "gzip", "restore it whole and unpack it");
	case MODEL_CONTENT_OTHER:
		break;
	}
	return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, file->path,
	    "it is no format of weights that is known");
}

int
model_files_plan(const struct model_file *files, size_t count,
    struct model_plan *plan, struct error *error)
{
	memset(plan, 0, sizeof(*plan));
	plan->files = calloc(count + 1, sizeof(*plan->files));
	if (plan->files == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a list of files");
	if (count == 0)
		return not_found(error, "there are no files");
	if (refuse_tables(files, count, error) != 0)
		return -1;
	if (count == 1)
		return plan_one(&files[0], plan, error);
	if (plan_dcp(files, count, plan, error) != 0)
		return -1;
	if (plan->count == 0 && plan_orbax(files, count, plan, error) != 0)
		return -1;
	return plan->count > 0 ? 0 : plan_weights(files, count, plan, error);
}

void
model_files_plan_free(struct model_plan *plan)
{
	free(plan->files);
	plan->files = NULL;
	plan->count = 0;
}
