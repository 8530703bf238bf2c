#include "watch/layout.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/path.h"
#include "watch/pattern.h"
#include "watch/series.h"
#include "watch/tree.h"

/*
 * What is known of each trainer, and what follows from it.
 *
 * A checkpoint is torn as a whole when files of two saves are mixed, so the
 * unit is everything that one save writes.  Where a trainer writes a marker
 * last, nothing but the marker counts: without it the folder waits, however
 * long it lies there, since a killed save looks just like that.  A marker
 * that is older than the weights belongs to the save before (a folder that is
 * written again), so it counts for nothing either.  What is called complete
 * once stays so until something in it changes, whatever the pointer names
 * later; a tag that no pointer ever named while we looked is not trusted.
 *
 * Rows that need an early look at a folder (the marker not yet there) go by
 * what its first files are, so that it waits under the right rule.
 */

#define DCP ".metadata|.metadata.tmp|*.distcp"
#define HF_WEIGHTS "model*.safetensors|model*.safetensors.index.json|" \
    "pytorch_model*.bin|pytorch_model*.bin.index.json|" \
    "adapter_model.safetensors|adapter_model.bin"
/* One model, not one of each epoch. */
#define HF_MODEL "model.safetensors|model-#-of-#.safetensors|" \
    "model.safetensors.index.json|pytorch_model.bin|" \
    "pytorch_model-#-of-#.bin|pytorch_model.bin.index.json|" \
    "adapter_model.safetensors|adapter_model.bin"
#define HF_BESIDE "config.json|generation_config.json|adapter_config.json|" \
    "tokenizer*|special_tokens_map.json|added_tokens.json|vocab.*|" \
    "merges.txt|*.model|chat_template.*|preprocessor_config.json|" \
    "processor_config.json|training_args.bin"
/* What rank 0 of DeepSpeed has written when it writes `latest`. */
#define DEEPSPEED_FIRST(folder) folder "mp_rank_00_model_states.pt|" \
    folder "*zero_pp_rank_0_mp_rank_00_*"
#define ACCELERATE_WEIGHTS "*.safetensors|pytorch_model*|optimizer*|" \
    "*/*.safetensors|*/*.bin|*/*.distcp"
#define ACCELERATE "model*.safetensors|model*.safetensors.index.json|" \
    "pytorch_model*|optimizer*|scheduler*|sampler*.bin|dl_state_dict*.bin|" \
    "scaler.pt|random_states_#.pkl|custom_checkpoint_#.pkl"

static const struct layout folders[] = {
	/*
	 * Names that say "not yet".  Hugging Face staged in tmp-checkpoint-*
	 * for some versions, Orbax and Flax still do, TensorFlow gathers its
	 * shards in *_temp.
	 */
	{ .word = "temporary", .temporary = true,
	  .name = "tmp-checkpoint-*|*.orbax-checkpoint-tmp*|checkpoint_tmp*|"
		  "*_temp" },

	/*
	 * accelerate save_state, and trainers built on it (diffusers names the
	 * folder as Hugging Face does): random_states_* of each rank comes last
	 * but for custom_checkpoint_*, hence the settling.
	 */
	{ .word = "accelerate", .holds = "random_states_#.pkl",
	  .unless = "trainer_state.json|training_args.bin",
	  .needs = { "random_states_#.pkl", ACCELERATE_WEIGHTS },
	  .marker = "random_states_#.pkl", .late = "custom_checkpoint_#.pkl",
	  .settle = SETTLE_MARKER },
	{ .word = "accelerate", .name = "checkpoint_#",
	  .holds = "model*.safetensors|pytorch_model*.bin|optimizer*.bin",
	  .unless = "trainer_state.json|training_args.bin",
	  .needs = { "random_states_#.pkl", ACCELERATE_WEIGHTS },
	  .marker = "random_states_#.pkl", .late = "custom_checkpoint_#.pkl",
	  .settle = SETTLE_MARKER },
	{ .word = "accelerate", .name = "checkpoint-#",
	  .holds = "*/model*.safetensors|*/diffusion_pytorch_model*|"
		   "*/pytorch_model*.bin",
	  .unless = "trainer_state.json|training_args.bin|config.json|"
		    HF_WEIGHTS,
	  .needs = { "random_states_#.pkl", ACCELERATE_WEIGHTS },
	  .marker = "random_states_#.pkl", .late = "custom_checkpoint_#.pkl",
	  .settle = SETTLE_MARKER },

	/*
	 * Hugging Face Trainer.  rng_state.pth of a single process comes
	 * before the marker (in versions before 4.36 behind it); rng_state_K
	 * of other ranks at any time.  Only files directly in the folder are
	 * compared with the marker: those of DeepSpeed and FSDP beneath it are
	 * written by other ranks.
	 */
	{ .word = "hf-trainer", .name = "checkpoint-#",
	  .holds = "trainer_state.json|training_args.bin|optimizer.pt|"
		   "scheduler.pt|rng_state*.pth|config.json|" HF_WEIGHTS,
	  .needs = { "trainer_state.json", "model*.safetensors|"
		     "pytorch_model*|adapter_model*|*/adapter_model*|"
		     "global_step#" },
	  .marker = "trainer_state.json", .late = "rng_state*.pth",
	  .settle = SETTLE_MARKER, .ready = "rng_state.pth", .proves = true },

	/*
	 * DeepSpeed: the pointer is written by rank 0 when its own files are
	 * done, so the others' are looked at one by one and get time to come.
	 */
	{ .word = "deepspeed", .holds = "*_model_states.pt|*_optim_states.pt",
	  .needs = { "*_model_states.pt" }, .pointer = "latest",
	  .before = DEEPSPEED_FIRST(""), .settle = SETTLE_MARKER, .proves = true },

	/* verl, SkyRL: the tracker beside the folder names the step. */
	{ .word = "verl", .name = "global_step_#",
	  .holds = "*.pt|*/*.pt|*/*.safetensors",
	  .pointer = "latest_checkpointed_iteration.txt|"
		     "latest_ckpt_global_step.txt",
	  .before = "*/*_rank_0.pt", .settle = SETTLE_MARKER,
	  .proves = true },

	/*
	 * NeMo: the sibling *-unfinished (rule.c) and what Megatron writes.
	 * NeMo 2 has weights/ and context/.
	 */
	{ .word = "nemo", .holds = "weights/.metadata|weights/*.distcp|"
		   "weights/metadata.json|weights/common.pt",
	  .needs = { "weights/.metadata|weights/metadata.json|"
		     "weights/common.pt", "context" },
	  .settle = SETTLE_MARKER, .proves = true },
	{ .word = "nemo", .name = "*.ckpt", .holds = "metadata.json|common.pt",
	  .needs = { "metadata.json", "*.distcp|common.pt" },
	  .marker = "metadata.json",
	  .before = ".metadata|*.distcp|common.pt", .settle = SETTLE_MARKER,
	  .proves = true },

	/*
	 * Megatron: torch_dist writes metadata.json only when all is there,
	 * the old format has but the tracker.  Tokenizer files come behind
	 * either.
	 */
	{ .word = "megatron", .name = "iter_#|release",
	  .holds = DCP "|metadata.json|common.pt",
	  .needs = { "metadata.json", "*.distcp|common.pt" },
	  .marker = "metadata.json",
	  .before = ".metadata|*.distcp|common.pt", .settle = SETTLE_MARKER,
	  .proves = true },
	{ .word = "megatron", .name = "iter_#|release",
	  .holds = "mp_rank_*|model_optim_rng.pt",
	  .pointer = "latest_checkpointed_iteration.txt",
	  .before = "*/model_optim_rng.pt|model_optim_rng.pt",
	  .settle = SETTLE_MARKER, .proves = true },

	/*
	 * Lightning: a folder named *.ckpt is DeepSpeed's (a tag named
	 * "checkpoint" and the pointer inside) or DCP, where meta.pt of rank 0
	 * comes last.
	 */
	{ .word = "lightning", .name = "*.ckpt",
	  .holds = "checkpoint/*_states.pt",
	  .needs = { "latest", "checkpoint/*_model_states.pt" },
	  .marker = "latest", .before = DEEPSPEED_FIRST("checkpoint/"),
	  .settle = SETTLE_MARKER, .proves = true },
	{ .word = "lightning", .name = "*.ckpt", .holds = DCP "|meta.pt",
	  .needs = { ".metadata", "meta.pt" }, .marker = "meta.pt",
	  .before = ".metadata", .proves = true },

	/* DCP and who builds on it: renaming .metadata is the commit. */
	{ .word = "torchtitan", .name = "step-#",
	  .holds = DCP "|model*.safetensors",
	  .needs = { ".metadata|model.safetensors.index.json",
		     "*.distcp|*.safetensors" },
	  .proves = true },
	{ .word = "composer", .name = "ep#-ba#", .holds = DCP,
	  .needs = { ".metadata", "*.distcp" }, .proves = true },
	{ .word = "torch-dcp", .holds = DCP,
	  .needs = { ".metadata", "*.distcp" }, .proves = true },

	/*
	 * Orbax: on a local disk the whole folder is renamed from a temporary
	 * name; where it writes in place commit_success.txt comes last.  The
	 * folder of the steps looks nearly as a step with its items.
	 */
	{ .word = "orbax",
	  .holds = "_CHECKPOINT_METADATA|commit_success.txt|_METADATA|"
		   "manifest.ocdbt|*/_METADATA|*/manifest.ocdbt|"
		   "ocdbt.process_#|*/ocdbt.process_#",
	  .unless = "#/_METADATA|#/manifest.ocdbt|#/ocdbt.process_#|"
		    "*_#/_METADATA|*_#/manifest.ocdbt|*/_CHECKPOINT_METADATA|"
		    "*/commit_success.txt",
	  .needs = { "_CHECKPOINT_METADATA|commit_success.txt" },
	  .proves = true },

	/* Keras BackupAndRestore rewrites both files every epoch. */
	{ .word = "keras-backup", .holds = "training_metadata.json",
	  .needs = { "latest.weights.h5", "training_metadata.json" },
	  .marker = "training_metadata.json" },

	/* A folder that says by its name, or by what is in it, that its files
	 * belong together (is_generic).  Nothing tells its end. */
	{ .word = "folder", .settle = SETTLE_KNOWN }
};
#define FOLDER_COUNT (sizeof(folders) / sizeof(folders[0]))

/*
 * Files in a folder that is no checkpoint itself (the top one, above all),
 * but belong together.
 */
static const struct layout groups[] = {
	{ .word = "keras-backup", .name = "training_metadata.json",
	  .holds = "latest.weights.h5", .title = "latest.weights.h5",
	  .members = "latest.weights.h5*|training_metadata.json*",
	  .needs = { "latest.weights.h5", "training_metadata.json" },
	  .marker = "training_metadata.json" },
	{ .word = "torch-dcp", .name = DCP, .title = ".metadata",
	  .members = "*.distcp|.metadata|meta.pt|metadata.json|common.pt",
	  .needs = { ".metadata", "*.distcp" }, .proves = true },
	{ .word = "accelerate", .name = "random_states_#.pkl",
	  .title = "model.safetensors|model.safetensors.index.json|"
		   "pytorch_model.bin|random_states_0.pkl",
	  .members = ACCELERATE,
	  .needs = { "random_states_#.pkl", ACCELERATE_WEIGHTS },
	  .marker = "random_states_#.pkl",
	  .late = "custom_checkpoint_#.pkl", .settle = SETTLE_MARKER },
	/* Weights and optimizer in two files that are always rewritten
	 * together. */
	{ .word = "group",
	  .name = "optimizer.pt|optimizer.pth|optimizer.bin|"
		  "optimizer.safetensors|optim.pt|optim.pth",
	  .holds = "model.pt|model.pth|model.bin|model.safetensors|"
		   "pytorch_model.bin",
	  .title = "model.safetensors|model.pt|model.pth|model.bin|"
		   "pytorch_model.bin",
	  .members = "model.*|optimizer.*|optim.*|scheduler.*|"
		     "lr_scheduler.*|scaler.*|rng_state*|" HF_MODEL "|"
		     HF_BESIDE, .settle = SETTLE_KNOWN },
	/*
	 * What save_model leaves at the end beside the checkpoint-N folders:
	 * the final weights.
	 */
	{ .word = "hf-model", .name = HF_MODEL,
	  .holds = "config.json|adapter_config.json",
	  .title = "model.safetensors.index.json|model.safetensors|"
		   "pytorch_model.bin.index.json|pytorch_model.bin|"
		   "adapter_model.safetensors|adapter_model.bin",
	  .members = HF_MODEL "|" HF_BESIDE, .settle = SETTLE_MARKER,
	  .final = true }
};
#define GROUP_COUNT (sizeof(groups) / sizeof(groups[0]))

/*
 * The index is written behind the data (rule.c).  CheckpointManager names it
 * in `checkpoint` then; Checkpoint.write does not, so that is not asked for.
 */
const struct layout layout_tensorflow = {
	.word = "tensorflow", .settle = SETTLE_MARKER
};

/* Each rank of a Composer job without a shared disk writes a file. */
const struct layout layout_composer_ranks = {
	.word = "composer", .settle = SETTLE_MARKER
};

static const struct layout files[] = {
	/* timm saves under this name and renames; recovery-*, last and
	 * model_best are hard links of one another. */
	{ .word = "timm", .name = "tmp.pth.tar", .temporary = true },
	{ .word = "timm", .name = "*.pth.tar" },
	{ .word = "mmengine", .name = "epoch_#.pth|iter_#.pth|best_*.pth" },
	{ .word = "lightning", .name = "*.ckpt" },
	{ .word = "keras", .name = "*.keras|*.h5" },
	{ .word = "nemo", .name = "*.nemo" },
	{ .word = "pytorch", .name = "*.pt|*.pth" },
	/* Flax's old msgpack files; their arrays lie in checkpoint_N_gda/. */
	{ .word = "flax", .name = "checkpoint_#|checkpoint_#.orbax" },
	{ .word = "file", .name = "*" }
};
#define FILE_COUNT (sizeof(files) / sizeof(files[0]))

/* YOLO writes last.pt, best.pt and epochN.pt into weights/. */
static const struct layout yolo = { .word = "yolo" };
#define YOLO_NAMES "last.pt|best.pt|epoch#.pt"

/* Endings that only state of a training has. */
#define STRONG "*.pt|*.pth|*.ckpt|*.safetensors|*.pth.tar|*.pt.tar|" \
    "*.keras|*.weights.h5|*.nemo|*.gguf|*.msgpack|*.pdparams|*.pdopt|*.params"

/* Endings that data sets and results have too. */
#define WEAK "*.bin|*.h5|*.hdf5|*.npz|*.pkl|*.pickle|*.tar|*.joblib"

/*
 * Words in the name of a file with a weak ending that say what else it is.
 * Anything else is taken for a checkpoint: a companion too many costs bytes,
 * a checkpoint too few costs the training.
 */
static const char *const other_words[] = {
	"args", "metrics", "metric", "results", "result", "history", "hparams",
	"config", "data", "dataset", "train", "val", "valid", "test", "vocab",
	"tokenizer", "labels", "log", "logs", "stats", "cache", "predictions",
	"preds", "features", "embeddings", "images", "samples", "loss", "losses"
};

/* The parts of a save whose names say that there are more parts. */
#define SIDE_PARTS "optimizer*|optim.*|optim_*|scheduler*|lr_scheduler*|" \
    "scaler.*|rng_state*|random_states*|trainer_state*|training_state*|" \
    "train_state*"

#define STEP_FOLDERS "checkpoint-#|checkpoint_#|checkpoint#|ckpt-#|ckpt_#|" \
    "ckpt#|step-#|step_#|step#|steps-#|steps_#|global_step#|iter-#|iter_#|" \
    "iter#|iteration_#|epoch-#|epoch_#|epoch#|epoch=#*|*-step=#*|*_step_#|" \
    "*-step-#|*.ckpt"

static bool
has_other_word(const char *name)
{
	while (*name != '\0') {
		size_t length = strcspn(name, "-_.= ");

		for (size_t i = 0; i < sizeof(other_words) /
		    sizeof(other_words[0]); i++) {
			if (strlen(other_words[i]) == length && strncasecmp(
			    name, other_words[i], length) == 0)
				return true;
		}
		name += length;
		name += strspn(name, "-_.= ");
	}
	return false;
}

bool
layout_is_weights(const char *name)
{
	if (pattern_matches(STRONG, name))
		return true;
	return pattern_matches(WEAK, name) && !has_other_word(name);
}

bool
layout_is_ignored(const char *name)
{
	/*
	 * safetensors writes .tmpXXXXXX, Keras tmpXXXXXXXX beside the file; a
	 * hidden name with a checkpoint's ending is renamed when it is done.
	 */
	if (pattern_matches("*-unfinished|.tmp*|tmp????????|*.tmp.*|*.part|"
	    "*.partial|*.incomplete|.nfs*|checkpoint_tmp*", name))
		return true;
	return name[0] == '.' && layout_is_weights(name);
}

bool
layout_holds(const struct tree *tree, size_t folder, const char *patterns)
{
	const struct tree_node *nodes = tree->nodes;
	size_t skip = strlen(nodes[folder].path);
	bool deep = strchr(patterns, '/') != NULL;

	skip += skip > 0;
	for (size_t i = folder + 1; i < nodes[folder].end; i = nodes[i].end) {
		if (pattern_matches(patterns, nodes[i].base))
			return true;
		if (!deep)
			continue;
		for (size_t k = i + 1; k < nodes[i].end; k = nodes[k].end) {
			if (pattern_matches(patterns, nodes[k].path + skip))
				return true;
		}
	}
	return false;
}

/*
 * A name that changes from save to save, or that says "best" or "last": a
 * folder that holds such a file holds checkpoints, and is none.  Shards are
 * numbered too.
 */
static bool
is_checkpoint_name(const char *name)
{
	struct series series;
	bool is;

	if (pattern_matches("*-#-of-#.*|*-#-of-#-*|*rank*|*shard*", name) ||
	    pattern_matches(SIDE_PARTS, name))
		return false;
	if (pattern_matches("last*|latest*|*_last.*|*-last.*", name))
		return true;
	if (series_of(name, &series) != 0)
		return false;
	is = series.has_step || series.role != ROLE_RESUME;
	free(series.name);
	return is;
}

/* Weights together with what only makes sense beside them. */
static bool
holds_parts(const struct tree *tree, size_t folder)
{
	const struct tree_node *nodes = tree->nodes;
	size_t weights = 0, parts = 0;

	/* What a training leaves beside its checkpoints is not around them. */
	if (layout_holds(tree, folder, STEP_FOLDERS "|tmp-checkpoint-*"))
		return false;
	for (size_t i = folder + 1; i < nodes[folder].end; i = nodes[i].end) {
		const char *name = nodes[i].base;

		if (nodes[i].kind != TREE_FILE)
			continue;
		if (layout_is_weights(name) && is_checkpoint_name(name))
			return false;
		if (pattern_matches("trainer_state.json|saved_model.pb", name) ||
		    (pattern_matches(SIDE_PARTS, name) &&
		    layout_is_weights(name)))
			parts++;
		else if (layout_is_weights(name))
			weights++;
	}
	if (weights > 0 && parts > 0)
		return true;
	return layout_holds(tree, folder, "saved_model.pb") ||
	    (layout_holds(tree, folder, HF_WEIGHTS) &&
	    layout_holds(tree, folder, "config.json|adapter_config.json"));
}

static bool
is_generic(const struct tree *tree, size_t folder)
{
	const struct tree_node *nodes = tree->nodes;

	if (holds_parts(tree, folder))
		return true;
	if (!pattern_matches(STEP_FOLDERS, nodes[folder].base))
		return false;
	for (size_t i = folder + 1; i < nodes[folder].end; i++) {
		if (nodes[i].kind == TREE_FILE &&
		    layout_is_weights(nodes[i].base))
			return true;
	}
	return false;
}

const struct layout *
layout_of_folder(const struct tree *tree, size_t folder)
{
	const char *name = tree->nodes[folder].base;

	for (size_t i = 0; i < FOLDER_COUNT - 1; i++) {
		const struct layout *row = &folders[i];

		if ((row->name == NULL || pattern_matches(row->name, name)) &&
		    (row->holds == NULL ||
		    layout_holds(tree, folder, row->holds)) &&
		    (row->unless == NULL ||
		    !layout_holds(tree, folder, row->unless)))
			return row;
	}
	return is_generic(tree, folder) ? &folders[FOLDER_COUNT - 1] : NULL;
}

static bool
is_yolo(const char *path)
{
	const char *name = path_base(path);

	if (!pattern_matches(YOLO_NAMES, name))
		return false;
	return strcmp(path, name) != 0 && name - path >= 8 &&
	    strncmp(name - 8, "weights/", 8) == 0 &&
	    (name - path == 8 || name[-9] == '/');
}

const struct layout *
layout_of_file(const char *path)
{
	const char *name = path_base(path);

	if (is_yolo(path))
		return &yolo;
	/* Without an ending nothing but Flax's own names is weights. */
	if (!layout_is_weights(name) &&
	    !pattern_matches("checkpoint_#|checkpoint_#.orbax", name))
		return NULL;
	for (size_t i = 0; i < FILE_COUNT; i++) {
		if (pattern_matches(files[i].name, name))
			return &files[i];
	}
	return NULL;
}

const struct layout *
layout_group(size_t index)
{
	return index < GROUP_COUNT ? &groups[index] : NULL;
}
