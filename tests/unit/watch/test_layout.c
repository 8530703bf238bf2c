#include "scene.h"

#include <sys/stat.h>

/*
 * For every layout: what its trainer writes, in its order, and a look after
 * each step.  Before the step `whole` the checkpoint is never complete, and
 * at the end it is.
 */

enum what { WRITE = 1, PART, TEXT, FOLDER, RENAME, LINK, SYMLINK, REMOVE };

struct step {
	enum what what;
	const char *path;
	const char *with;	/* fixture, text, new name or target */
};

struct story {
	const char *title;
	struct step steps[16];
	size_t whole;		/* the step after which it may be complete */
	const char *name, *layout, *series;
	int64_t number;		/* step, -1: none */
	enum role role;
	bool pointed, unproven;
	size_t entries;		/* of the checkpoint */
};

#define TORCH "torch-2.8.pt"
#define TENSORS "model.safetensors"
#define STATE "trainer_state.json"

static const struct story stories[] = {
	{ .title = "torch.save in place",
	  .steps = { { PART, "last.pt", TORCH }, { WRITE, "last.pt", TORCH } },
	  .whole = 2, .name = "last.pt", .layout = "pytorch",
	  .series = "last.pt", .number = -1, .entries = 1 },
	{ .title = "torch.save that failed, then again",
	  .steps = { { WRITE, "best.pt", "torch-failed.pt" },
		     { WRITE, "best.pt", "torch-legacy.pt" } },
	  .whole = 2, .name = "best.pt", .layout = "pytorch",
	  .series = "best.pt", .number = -1, .role = ROLE_BEST, .entries = 1 },
	{ .title = "Lightning with last.ckpt as a link",
	  .steps = { { WRITE, "lightning_logs/version_0/checkpoints/"
			      "epoch=3-step=400.ckpt", TORCH },
		     { SYMLINK, "lightning_logs/version_0/checkpoints/"
			      "last.ckpt", "epoch=3-step=400.ckpt" } },
	  .whole = 1, .name = "lightning_logs/version_0/checkpoints/"
			      "epoch=3-step=400.ckpt", .layout = "lightning",
	  .series = "lightning_logs/version_0/checkpoints/"
		    "epoch=*-step=*.ckpt",
	  .number = 400, .pointed = true, .entries = 1 },
	{ .title = "Lightning with last.ckpt as a file",
	  .steps = { { WRITE, "last.ckpt", TORCH } }, .whole = 1,
	  .name = "last.ckpt", .layout = "lightning", .series = "last.ckpt",
	  .number = -1, .entries = 1 },
	{ .title = "Lightning with DeepSpeed",
	  .steps = { { WRITE, "last.ckpt/checkpoint/"
			      "mp_rank_00_model_states.pt", TORCH },
		     { WRITE, "last.ckpt/checkpoint/"
			      "zero_pp_rank_0_mp_rank_00_optim_states.pt",
		       TORCH },
		     { TEXT, "last.ckpt/latest", "checkpoint" } },
	  .whole = 3, .name = "last.ckpt", .layout = "lightning",
	  .series = "last.ckpt", .number = -1, .entries = 5 },
	{ .title = "Lightning with FSDP",
	  .steps = { { TEXT, "epoch=1-step=10.ckpt/__0_0.distcp", "data" },
		     { TEXT, "epoch=1-step=10.ckpt/.metadata.tmp", "m" },
		     { RENAME, "epoch=1-step=10.ckpt/.metadata.tmp",
		       "epoch=1-step=10.ckpt/.metadata" },
		     { WRITE, "epoch=1-step=10.ckpt/meta.pt", TORCH } },
	  .whole = 4, .name = "epoch=1-step=10.ckpt", .layout = "lightning",
	  .series = "epoch=*-step=*.ckpt", .number = 10, .entries = 4 },
	{ .title = "Hugging Face Trainer",
	  .steps = { { TEXT, "checkpoint-500/config.json", "{}" },
		     { WRITE, "checkpoint-500/model.safetensors", TENSORS },
		     { WRITE, "checkpoint-500/training_args.bin", TORCH },
		     { WRITE, "checkpoint-500/optimizer.pt", TORCH },
		     { WRITE, "checkpoint-500/scheduler.pt", TORCH },
		     { WRITE, "checkpoint-500/rng_state.pth", TORCH },
		     { PART, "checkpoint-500/trainer_state.json", STATE },
		     { WRITE, "checkpoint-500/trainer_state.json", STATE } },
	  .whole = 8, .name = "checkpoint-500", .layout = "hf-trainer",
	  .series = "checkpoint-*", .number = 500, .entries = 8 },
	{ .title = "Hugging Face Trainer into a folder that was there",
	  .steps = { { WRITE, "checkpoint-5/trainer_state.json", STATE },
		     { WRITE, "checkpoint-5/model.safetensors", TENSORS },
		     { WRITE, "checkpoint-5/optimizer.pt", TORCH },
		     { WRITE, "checkpoint-5/trainer_state.json", STATE },
		     { WRITE, "checkpoint-5/rng_state_1.pth", TORCH } },
	  .whole = 4, .name = "checkpoint-5", .layout = "hf-trainer",
	  .series = "checkpoint-*", .number = 5, .entries = 5 },
	{ .title = "Hugging Face Trainer by way of a temporary folder",
	  .steps = { { WRITE, "tmp-checkpoint-7/model.safetensors", TENSORS },
		     { WRITE, "tmp-checkpoint-7/trainer_state.json", STATE },
		     { RENAME, "tmp-checkpoint-7", "checkpoint-7" } },
	  .whole = 3, .name = "checkpoint-7", .layout = "hf-trainer",
	  .series = "checkpoint-*", .number = 7, .entries = 3 },
	{ .title = "Hugging Face Trainer, sharded",
	  .steps = { { WRITE, "checkpoint-8/model-00001-of-00002.safetensors",
		       TENSORS },
		     { WRITE, "checkpoint-8/trainer_state.json", STATE },
		     { TEXT, "checkpoint-8/model.safetensors.index.json",
		       "{\"metadata\": {}, \"weight_map\": {"
		       "\"a\": \"model-00001-of-00002.safetensors\", "
		       "\"b\": \"model-00002-of-00002.safetensors\"}}" },
		     { WRITE, "checkpoint-8/model-00002-of-00002.safetensors",
		       TENSORS },
		     { WRITE, "checkpoint-8/trainer_state.json", STATE } },
	  .whole = 5, .name = "checkpoint-8", .layout = "hf-trainer",
	  .series = "checkpoint-*", .number = 8, .entries = 5 },
	{ .title = "Hugging Face Trainer with DeepSpeed",
	  .steps = { { WRITE, "checkpoint-9/model.safetensors", TENSORS },
		     { TEXT, "checkpoint-9/latest", "global_step9" },
		     { WRITE, "checkpoint-9/trainer_state.json", STATE },
		     { WRITE, "checkpoint-9/global_step9/"
			      "mp_rank_00_model_states.pt", TORCH } },
	  .whole = 4, .name = "checkpoint-9", .layout = "hf-trainer",
	  .series = "checkpoint-*", .number = 9, .entries = 6 },
	{ .title = "accelerate",
	  .steps = { { WRITE, "checkpoints/checkpoint_3/model.safetensors",
		       TENSORS },
		     { WRITE, "checkpoints/checkpoint_3/optimizer.bin", TORCH },
		     { WRITE, "checkpoints/checkpoint_3/random_states_0.pkl",
		       "torch-legacy.pt" } },
	  .whole = 3, .name = "checkpoints/checkpoint_3",
	  .layout = "accelerate", .series = "checkpoints/checkpoint_*",
	  .number = 3, .entries = 4 },
	{ .title = "accelerate as diffusers names it",
	  .steps = { { WRITE, "checkpoint-40/unet/model.safetensors", TENSORS },
		     { WRITE, "checkpoint-40/optimizer.bin", TORCH },
		     { WRITE, "checkpoint-40/random_states_0.pkl", TORCH } },
	  .whole = 3, .name = "checkpoint-40", .layout = "accelerate",
	  .series = "checkpoint-*", .number = 40, .entries = 5 },
	{ .title = "accelerate into a folder that was there",
	  .steps = { { WRITE, "state/random_states_0.pkl", TORCH },
		     { WRITE, "state/model.safetensors", TENSORS },
		     { WRITE, "state/optimizer.bin", TORCH },
		     { WRITE, "state/random_states_0.pkl", TORCH },
		     { WRITE, "state/custom_checkpoint_0.pkl", TORCH } },
	  .whole = 4, .name = "state", .layout = "accelerate",
	  .series = "state", .number = -1, .entries = 5 },
	{ .title = "DeepSpeed into a folder that was there",
	  .steps = { { TEXT, "latest", "tag" },
		     { WRITE, "tag/mp_rank_00_model_states.pt", TORCH },
		     { WRITE, "tag/zero_pp_rank_0_mp_rank_00_optim_states.pt",
		       TORCH },
		     { TEXT, "latest", "tag" } },
	  .whole = 4, .name = "tag", .layout = "deepspeed", .series = "tag",
	  .number = -1, .pointed = true, .entries = 3 },
	{ .title = "Lightning with FSDP into a folder that was there",
	  .steps = { { WRITE, "last.ckpt/meta.pt", TORCH },
		     { TEXT, "last.ckpt/__0_0.distcp", "data" },
		     { TEXT, "last.ckpt/.metadata", "m" },
		     { WRITE, "last.ckpt/meta.pt", TORCH } },
	  .whole = 4, .name = "last.ckpt", .layout = "lightning",
	  .series = "last.ckpt", .number = -1, .entries = 4 },
	{ .title = "Megatron into a folder that was there",
	  .steps = { { TEXT, "iter_0000300/metadata.json", "{}" },
		     { TEXT, "iter_0000300/__0_0.distcp", "data" },
		     { TEXT, "iter_0000300/.metadata", "m" },
		     { TEXT, "iter_0000300/metadata.json", "{}" } },
	  .whole = 4, .name = "iter_0000300", .layout = "megatron",
	  .series = "iter_*", .number = 300, .entries = 4 },
	{ .title = "accelerate into the directory itself",
	  .steps = { { WRITE, "model.safetensors", TENSORS },
		     { WRITE, "optimizer.bin", TORCH },
		     { WRITE, "random_states_0.pkl", TORCH },
		     { WRITE, "optimizer.bin", TORCH },
		     { WRITE, "random_states_0.pkl", TORCH } },
	  .whole = 1, .name = "model.safetensors", .layout = "accelerate",
	  .series = "model.safetensors", .number = -1, .entries = 3 },
	{ .title = "DeepSpeed",
	  .steps = { { TEXT, "latest", "global_step400" },
		     { WRITE, "global_step500/mp_rank_00_model_states.pt",
		       TORCH },
		     { WRITE, "global_step500/"
			      "zero_pp_rank_0_mp_rank_00_optim_states.pt",
		       TORCH },
		     { PART, "global_step500/"
			      "zero_pp_rank_1_mp_rank_00_optim_states.pt",
		       TORCH },
		     { TEXT, "latest", "global_step500" },
		     { WRITE, "global_step500/"
			      "zero_pp_rank_1_mp_rank_00_optim_states.pt",
		       TORCH } },
	  .whole = 6, .name = "global_step500", .layout = "deepspeed",
	  .series = "global_step*", .number = 500, .pointed = true,
	  .entries = 4 },
	{ .title = "Megatron, torch_dist",
	  .steps = { { TEXT, "iter_0000100/__0_0.distcp", "data" },
		     { TEXT, "iter_0000100/.metadata", "m" },
		     { TEXT, "iter_0000100/metadata.json", "{}" },
		     { TEXT, "latest_checkpointed_iteration.txt", "100" } },
	  .whole = 3, .name = "iter_0000100", .layout = "megatron",
	  .series = "iter_*", .number = 100, .pointed = true, .entries = 4 },
	{ .title = "Megatron, old format",
	  .steps = { { TEXT, "latest_checkpointed_iteration.txt", "100" },
		     { WRITE, "iter_0000200/mp_rank_00/model_optim_rng.pt",
		       TORCH },
		     { TEXT, "latest_checkpointed_iteration.txt", "200" } },
	  .whole = 3, .name = "iter_0000200", .layout = "megatron",
	  .series = "iter_*", .number = 200, .pointed = true, .entries = 3 },
	{ .title = "torch DCP",
	  .steps = { { TEXT, "run/__0_0.distcp", "data" },
		     { TEXT, "run/__1_0.distcp", "data" },
		     { TEXT, "run/.metadata.tmp", "m" },
		     { RENAME, "run/.metadata.tmp", "run/.metadata" } },
	  .whole = 4, .name = "run", .layout = "torch-dcp", .series = "run",
	  .number = -1, .entries = 4 },
	{ .title = "torch DCP into a folder that was there",
	  .steps = { { TEXT, "run/.metadata", "m" },
		     { TEXT, "run/__0_0.distcp", "data" },
		     { TEXT, "run/.metadata.tmp", "m" },
		     { RENAME, "run/.metadata.tmp", "run/.metadata" } },
	  .whole = 4, .name = "run", .layout = "torch-dcp", .series = "run",
	  .number = -1, .entries = 3 },
	{ .title = "torch DCP with an empty shard",
	  .steps = { { TEXT, "run/__0_0.distcp", "" },
		     { TEXT, "run/.metadata", "m" },
		     { TEXT, "run/__0_0.distcp", "data" },
		     { TEXT, "run/.metadata", "m" } },
	  .whole = 4, .name = "run", .layout = "torch-dcp", .series = "run",
	  .number = -1, .entries = 3 },
	{ .title = "torch DCP into the directory itself",
	  .steps = { { TEXT, "__0_0.distcp", "data" },
		     { TEXT, ".metadata", "m" } },
	  .whole = 2, .name = ".metadata", .layout = "torch-dcp",
	  .series = ".metadata", .number = -1, .entries = 2 },
	{ .title = "torchtitan",
	  .steps = { { TEXT, "step-50/__0_0.distcp", "data" },
		     { TEXT, "step-50/.metadata", "m" } },
	  .whole = 2, .name = "step-50", .layout = "torchtitan",
	  .series = "step-*", .number = 50, .entries = 3 },
	{ .title = "Orbax",
	  .steps = { { TEXT, "ckpts/70.orbax-checkpoint-tmp/default/d/1", "x" },
		     { TEXT, "ckpts/70.orbax-checkpoint-tmp/"
			     "default/manifest.ocdbt", "x" },
		     { TEXT, "ckpts/70.orbax-checkpoint-tmp/"
			     "_CHECKPOINT_METADATA", "{}" },
		     { RENAME, "ckpts/70.orbax-checkpoint-tmp", "ckpts/70" } },
	  .whole = 4, .name = "ckpts/70", .layout = "orbax",
	  .series = "ckpts/*", .number = 70, .entries = 6 },
	{ .title = "Orbax in place",
	  .steps = { { TEXT, "80/default/manifest.ocdbt", "x" },
		     { FOLDER, "80/state.orbax-checkpoint-tmp-1", NULL },
		     { TEXT, "80/commit_success.txt", "x" },
		     { RENAME, "80/state.orbax-checkpoint-tmp-1", "80/state" } },
	  .whole = 4, .name = "80", .layout = "orbax", .series = "*",
	  .number = 80, .entries = 5 },
	{ .title = "Flax",
	  .steps = { { TEXT, "checkpoint_tmp", "msgpack" },
		     { TEXT, "checkpoint_90_gda/0", "x" },
		     { RENAME, "checkpoint_tmp", "checkpoint_90" } },
	  .whole = 3, .name = "checkpoint_90", .layout = "flax",
	  .series = "checkpoint_*", .number = 90, .unproven = true,
	  .entries = 3 },
	{ .title = "Keras",
	  .steps = { { PART, "best.weights.h5", "model-0.h5" },
		     { WRITE, "best.weights.h5", "model-0.h5" } },
	  .whole = 2, .name = "best.weights.h5", .layout = "keras",
	  .series = "best.weights.h5", .number = -1, .role = ROLE_BEST,
	  .entries = 1 },
	{ .title = "Keras, zip",
	  .steps = { { PART, "model-07.keras", "weights.npz" },
		     { WRITE, "model-07.keras", "weights.npz" } },
	  .whole = 2, .name = "model-07.keras", .layout = "keras",
	  .series = "model-*.keras", .number = 7, .entries = 1 },
	{ .title = "Keras BackupAndRestore",
	  .steps = { { WRITE, "backup/latest.weights.h5", "model-0.h5" },
		     { TEXT, "backup/training_metadata.json", "{}" },
		     { WRITE, "backup/latest.weights.h5", "model-3.h5" },
		     { TEXT, "backup/training_metadata.json", "{}" } },
	  .whole = 2, .name = "backup", .layout = "keras-backup",
	  .series = "backup", .number = -1, .entries = 3 },
	{ .title = "Keras BackupAndRestore into the directory itself",
	  .steps = { { WRITE, "latest.weights.h5", "model-0.h5" },
		     { TEXT, "training_metadata.json", "{}" } },
	  .whole = 1, .name = "latest.weights.h5", .layout = "keras-backup",
	  .series = "latest.weights.h5", .number = -1, .entries = 2 },
	{ .title = "TensorFlow",
	  .steps = { { TEXT, "ckpt-12.data-00001-of-00002", "x" },
		     { TEXT, "ckpt-12.index", "x" },
		     { TEXT, "ckpt-12.data-00000-of-00002", "x" },
		     { TEXT, "ckpt-12.index", "x" },
		     { TEXT, "checkpoint",
		       "model_checkpoint_path: \"ckpt-12\"\n"
		       "all_model_checkpoint_paths: \"ckpt-12\"\n" } },
	  .whole = 4, .name = "ckpt-12", .layout = "tensorflow",
	  .series = "ckpt-*", .number = 12, .pointed = true, .unproven = true,
	  .entries = 3 },
	{ .title = "YOLO",
	  .steps = { { TEXT, "results.csv", "epoch\n" },
		     { PART, "weights/last.pt", TORCH },
		     { WRITE, "weights/last.pt", TORCH },
		     { WRITE, "weights/best.pt", TORCH } },
	  .whole = 3, .name = "weights/last.pt", .layout = "yolo",
	  .series = "weights/last.pt", .number = -1, .entries = 1 },
	{ .title = "mmengine",
	  .steps = { { WRITE, "epoch_3.pth", TORCH },
		     { TEXT, "last_checkpoint",
		       "/another/machine/work_dir/epoch_3.pth" },
		     { WRITE, "best_acc_epoch_3.pth", TORCH },
		     { WRITE, "epoch_3.pth", TORCH } },
	  .whole = 1, .name = "epoch_3.pth", .layout = "mmengine",
	  .series = "epoch_*.pth", .number = 3, .pointed = true, .entries = 1 },
	{ .title = "timm",
	  .steps = { { WRITE, "tmp.pth.tar", TORCH },
		     { RENAME, "tmp.pth.tar", "last.pth.tar" },
		     { LINK, "checkpoint-3.pth.tar", "last.pth.tar" },
		     { LINK, "model_best.pth.tar", "last.pth.tar" } },
	  .whole = 3, .name = "checkpoint-3.pth.tar", .layout = "timm",
	  .series = "checkpoint-*.pth.tar", .number = 3, .entries = 1 },
	{ .title = "Composer",
	  .steps = { { WRITE, "ep1-ba10-rank0.pt", TORCH },
		     { PART, "ep1-ba10-rank1.pt", TORCH },
		     { WRITE, "ep1-ba10-rank1.pt", TORCH },
		     { SYMLINK, "latest-rank0.pt", "ep1-ba10-rank0.pt" } },
	  .whole = 1, .name = "ep1-ba10-rank0.pt", .layout = "composer",
	  .series = "ep*-ba*-rank0.pt", .number = 10, .pointed = true,
	  .entries = 2 },
	{ .title = "Composer, sharded",
	  .steps = { { TEXT, "ep1-ba10/__0_0.distcp", "data" },
		     { TEXT, "ep1-ba10/.metadata", "m" } },
	  .whole = 2, .name = "ep1-ba10", .layout = "composer",
	  .series = "ep*-ba*", .number = 10, .entries = 3 },
	{ .title = "NeMo, one file",
	  .steps = { { TEXT, "model-unfinished", "" },
		     { WRITE, "model.nemo", "model.nemo" },
		     { REMOVE, "model-unfinished", NULL } },
	  .whole = 3, .name = "model.nemo", .layout = "nemo",
	  .series = "model.nemo", .number = -1, .entries = 1 },
	{ .title = "NeMo, a folder",
	  .steps = { { TEXT, "m--step=9-unfinished", "" },
		     { TEXT, "m--step=9.ckpt/__0_0.distcp", "data" },
		     { TEXT, "m--step=9.ckpt/.metadata", "m" },
		     { TEXT, "m--step=9.ckpt/metadata.json", "{}" },
		     { REMOVE, "m--step=9-unfinished", NULL } },
	  .whole = 5, .name = "m--step=9.ckpt", .layout = "nemo",
	  .series = "m--step=*.ckpt", .number = 9, .entries = 4 },
	{ .title = "NeMo 2",
	  .steps = { { TEXT, "step=9-unfinished", "" },
		     { TEXT, "step=9/weights/__0_0.distcp", "data" },
		     { TEXT, "step=9/weights/.metadata", "m" },
		     { TEXT, "step=9/context/model.yaml", "a: 1" },
		     { REMOVE, "step=9-unfinished", NULL } },
	  .whole = 5, .name = "step=9", .layout = "nemo",
	  .series = "step=*", .number = 9, .entries = 6 },
	{ .title = "verl",
	  .steps = { { WRITE, "global_step_20/actor/"
			      "model_world_size_1_rank_0.pt", TORCH },
		     { WRITE, "global_step_20/actor/"
			      "optim_world_size_1_rank_0.pt", TORCH },
		     { WRITE, "global_step_20/data.pt", TORCH },
		     { TEXT, "latest_checkpointed_iteration.txt", "20" } },
	  .whole = 4, .name = "global_step_20", .layout = "verl",
	  .series = "global_step_*", .number = 20, .pointed = true,
	  .entries = 5 },
	{ .title = "final weights at the top",
	  .steps = { { TEXT, "config.json", "{}" },
		     { WRITE, "model-00001-of-00002.safetensors", TENSORS },
		     { WRITE, "model-00002-of-00002.safetensors", TENSORS },
		     { TEXT, "model.safetensors.index.json",
		       "{\"metadata\": {}, \"weight_map\": {"
		       "\"a\": \"model-00001-of-00002.safetensors\", "
		       "\"b\": \"model-00002-of-00002.safetensors\"}}" },
		     { TEXT, "all_results.json", "{}" } },
	  .whole = 4, .name = "model.safetensors.index.json",
	  .layout = "hf-model", .series = "model.safetensors.index.json",
	  .number = -1, .role = ROLE_FINAL, .entries = 4 },
	{ .title = "model and optimizer side by side",
	  .steps = { { WRITE, "model.pt", TORCH },
		     { PART, "optimizer.pt", TORCH },
		     { WRITE, "optimizer.pt", TORCH } },
	  .whole = 1, .name = "model.pt", .layout = "group",
	  .series = "model.pt", .number = -1, .entries = 2 },
	{ .title = "a folder of no known trainer",
	  .steps = { { PART, "step_100/model.pt", TORCH },
		     { WRITE, "step_100/model.pt", TORCH },
		     { WRITE, "step_100/optimizer.pt", TORCH } },
	  .whole = 2, .name = "step_100", .layout = "folder",
	  .series = "step_*", .number = 100, .entries = 3 },
	{ .title = "a folder whose files say that they belong together",
	  .steps = { { TEXT, "best_model/config.json", "{}" },
		     { PART, "best_model/model.safetensors", TENSORS },
		     { WRITE, "best_model/model.safetensors", TENSORS } },
	  .whole = 3, .name = "best_model", .layout = "folder",
	  .series = "best_model", .number = -1, .role = ROLE_BEST,
	  .entries = 3 },
	{ .title = "a file of no known structure",
	  .steps = { { TEXT, "policy.msgpack", "data" } },
	  .whole = 1, .name = "policy.msgpack", .layout = "file",
	  .series = "policy.msgpack", .number = -1, .unproven = true,
	  .entries = 1 },
	{ .title = "safetensors by way of a hidden name",
	  .steps = { { WRITE, ".tmpAbCdEf", TENSORS },
		     { RENAME, ".tmpAbCdEf", "adapter.safetensors" } },
	  .whole = 2, .name = "adapter.safetensors", .layout = "file",
	  .series = "adapter.safetensors", .number = -1, .entries = 1 }
};

/* Trainers take seconds from file to file, so the times are told apart. */
static void
set_time(const char *folder, const char *path, int64_t second)
{
	const struct timespec times[2] = {
		{ .tv_sec = 1700000000 + second },
		{ .tv_sec = 1700000000 + second }
	};
	struct scene_path full;

	assert_int_equal(utimensat(AT_FDCWD, scene_in(&full, folder, path),
	    times, AT_SYMLINK_NOFOLLOW), 0);
}

static void
do_step(const char *folder, const struct step *step, int64_t second)
{
	struct scene_path a, b;
	size_t length;
	char *data;

	scene_in(&a, folder, step->path);
	switch (step->what) {
	case WRITE:
		scene_write(folder, step->path, step->with);
		break;
	case PART:
		data = scene_bytes(step->with, &length);
		kit_write_file(a.text, data, length / 2);
		free(data);
		break;
	case TEXT:
		scene_text(folder, step->path, step->with);
		break;
	case FOLDER:
		assert_int_equal(mkdir(a.text, 0700), 0);
		break;
	case RENAME:
		scene_rename(folder, step->path, step->with);
		return;
	case LINK:
		assert_int_equal(link(scene_in(&b, folder, step->with),
		    a.text), 0);
		return;
	case SYMLINK:
		assert_int_equal(symlink(step->with, a.text), 0);
		break;
	case REMOVE:
		assert_int_equal(unlink(a.text), 0);
		return;
	}
	set_time(folder, step->path, second);
}

static void
check_end(const struct story *story, const struct view *view)
{
	const struct checkpoint *found = scene_find(view, story->name);
	const struct surroundings *around = view->surroundings;

	if (found == NULL)
		fail_msg("%s: %s is not seen", story->title, story->name);
	if (found->state != CHECKPOINT_COMPLETE)
		fail_msg("%s: not complete at the end: %s", story->title,
		    found->reason);
	assert_string_equal(found->layout, story->layout);
	assert_string_equal(found->series, story->series);
	assert_int_equal(found->has_step, story->number >= 0);
	if (found->has_step)
		assert_int_equal(found->step, story->number);
	assert_int_equal(found->role, story->role);
	if (found->proven != !story->unproven)
		fail_msg("%s: proven is %d: %s", story->title, found->proven,
		    found->reason);
	if (found->entry_count != story->entries)
		fail_msg("%s: %zu entries", story->title, found->entry_count);
	assert_true(scene_names(around->present, around->present_count,
	    story->name));
	if (scene_names(around->pointed, around->pointed_count,
	    story->name) != story->pointed)
		fail_msg("%s: pointed at: %d", story->title, !story->pointed);
}

static void
play(const struct story *story)
{
	char *folder = kit_scratch();
	struct view *view = NULL;

	for (size_t i = 0; i < 16 && story->steps[i].what != 0; i++) {
		const struct checkpoint *found;
		struct view *previous = view;

		do_step(folder, &story->steps[i], (int64_t)i);
		view = scene_look(folder, &scene_at_once, previous);
		view_free(previous);
		found = scene_find(view, story->name);
		if (i + 1 < story->whole && found != NULL &&
		    found->state == CHECKPOINT_COMPLETE)
			fail_msg("%s: complete after step %zu: %s",
			    story->title, i + 1, found->reason);
		if (i + 1 == story->whole && (found == NULL ||
		    found->state != CHECKPOINT_COMPLETE))
			fail_msg("%s: not complete after step %zu: %s",
			    story->title, i + 1,
			    found != NULL ? found->reason : "not seen");
	}
	check_end(story, view);
	view_free(view);

	/* Somebody who comes late sees the same. */
	view = scene_look(folder, &scene_at_once, NULL);
	check_end(story, view);
	view_free(view);
	scene_end(folder);
}

static void
each_layout_is_complete_when_its_last_file_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++)
		play(&stories[i]);
}

/* Names beside checkpoints that are none, and folders that just hold some. */
static void
what_is_no_checkpoint_is_a_companion(void **state)
{
	static const char *const companions[] = {
		"results.csv", "args.yaml", "logs/events.out.tfevents.1",
		"metrics.pkl", "train_data.npz", "runs/a/notes.txt",
		"out/all_results.json", "checkpoint.txt", "epochs/config.json"
	};
	static const char *const passing[] = {
		"last.pt.tmp", "wandb/run.log", ".git/HEAD", "tmpabcd1234",
		"__pycache__/a.pyc", ".last.pt", "a/b/wandb/x", "x.pt.part"
	};
	char *folder = kit_scratch();
	struct view *view;

	(void)state;
	for (size_t i = 0; i < sizeof(companions) / sizeof(*companions); i++)
		scene_text(folder, companions[i], "x");
	for (size_t i = 0; i < sizeof(passing) / sizeof(*passing); i++)
		scene_text(folder, passing[i], "x");
	scene_write(folder, "out/checkpoint-5/trainer_state.json", STATE);
	scene_text(folder, ".ckptsync-restore-1/last.pt", "x");
	/* Models of two epochs beside a configuration are not one model. */
	scene_text(folder, "epochs/config.json", "{}");
	scene_write(folder, "epochs/model_1.safetensors", TENSORS);
	scene_write(folder, "epochs/model_2.safetensors", TENSORS);
	scene_write(folder, "out/last.pt", TORCH);
	scene_write(folder, "out/optimizer.pt", TORCH);
	view = scene_look(folder, &scene_at_once, NULL);
	for (size_t i = 0; i < sizeof(companions) / sizeof(*companions); i++) {
		if (scene_entry(view->surroundings->companions,
		    view->surroundings->companion_count,
		    companions[i]) == NULL)
			fail_msg("%s is no companion", companions[i]);
	}
	assert_int_equal(view->surroundings->companion_count,
	    sizeof(companions) / sizeof(*companions));
	assert_int_equal(view->count, 5);
	assert_non_null(scene_find(view, "epochs/model_1.safetensors"));
	assert_non_null(scene_find(view, "epochs/model_2.safetensors"));
	assert_non_null(scene_find(view, "out/checkpoint-5"));
	assert_non_null(scene_find(view, "out/last.pt"));
	assert_non_null(scene_find(view, "out/optimizer.pt"));
	view_free(view);
	scene_end(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_layout_is_complete_when_its_last_file_is),
		cmocka_unit_test(what_is_no_checkpoint_is_a_companion)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
