#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/model.h"
#include "kit/kit.h"

static void
test_choose_file(void **state)
{
	static const char *const taken[] = {
		"config.json", "generation_config.json", "model.safetensors",
		"model-00001-of-00003.safetensors",
		"model.safetensors.index.json", "pytorch_model.bin",
		"pytorch_model-00001-of-00002.bin",
		"pytorch_model.bin.index.json", "adapter_model.safetensors",
		"adapter_config.json", "my_adapter/adapter_model.bin",
		"tokenizer.json", "tokenizer_config.json", "vocab.txt",
		"special_tokens_map.json", "merges.txt", "tokenizer.model",
		"added_tokens.json", "chat_template.jinja",
		"preprocessor_config.json", "modeling_custom.py",
		"pytorch_model_fsdp.bin", "pytorch_model_fsdp_0/.metadata",
		"pytorch_model_fsdp_0/__0_0.distcp", "model_1.safetensors",
		"mp_rank_00_model_states.pt", ".metadata", "__1_0.distcp",
		"weights/.metadata", "last.ckpt", "best.pt", "model.gguf",
		"model.weights.h5", "model.keras", "a.nemo",
		"params/d/0123456789abcdef", "params/manifest.ocdbt",
		"params/ocdbt.process_0/d/01",
	};
	static const char *const left[] = {
		"optimizer.pt", "optimizer.bin", "optimizer_1.bin",
		"scheduler.pt", "scheduler.bin", "scaler.pt",
		"rng_state.pth", "rng_state_3.pth", "trainer_state.json",
		"training_args.bin", "global_step100/x.pt", "zero_to_fp32.py",
		"optimizer_0/.metadata", "optimizer_0/__0_0.distcp",
		"runs/events.out.tfevents.1", "sampler.bin",
		"dl_state_dict_1.bin", "random_states_0.pkl",
		"custom_checkpoint_0.pkl", "latest",
		"zero_pp_rank_0_mp_rank_00_optim_states.pt",
		"bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
		"training_metadata.json", "meta.pt", "common.pt",
		"latest_checkpointed_iteration.txt", "opt_state/d/01",
		"optim_world_size_2_rank_0.pt", "default/d/01",
		"events.out.tfevents.2", "results.csv",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (!model_choose_file(taken[i]))
			fail_msg("%s should be taken", taken[i]);
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		if (model_choose_file(left[i]))
			fail_msg("%s should be left", left[i]);
}

/* A tensor "w" or so of two bytes. */
static const char *
safetensors(char name)
{
	static char text[8][80];
	static int turn;
	char *file = text[turn++ % 8];

	memset(file, 0, 80);
	file[0] = 56;
	snprintf(file + 8, 57, "{\"%c\":{\"dtype\":\"U8\",\"shape\":[2],"
	    "\"data_offsets\":[0,2]}}%-3s", name, "");
	memcpy(file + 64, "xy", 2);
	return file;
}

#define SAFETENSORS_SIZE 66
#define FILES_MAXIMUM 8

/* Read a directory of these files: names and contents in turn, NULL. */
struct directory {
	struct model_file files[FILES_MAXIMUM];
	struct source sources[FILES_MAXIMUM];
	struct source_memory memories[FILES_MAXIMUM];
	size_t count;
};

static void
add(struct directory *directory, const char *path, const char *content,
    size_t length)
{
	size_t at = directory->count++;

	directory->memories[at] = (struct source_memory){ content, length };
	directory->sources[at] = source_from_memory(
	    &directory->memories[at]);
	directory->files[at] = (struct model_file){ path,
		&directory->sources[at] };
}

static void
expect(const struct directory *directory, const char *names)
{
	struct model_options options = { .key = NULL };
	struct model model;
	struct error error = ERROR_INIT;
	char got[256] = "";

	assert_ok(model_read(directory->files, directory->count, &options,
	    &model, &error), error);
	for (size_t i = 0; i < model.count; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got),
		    "%s:%s ", directory->files[
		    model.tensors[i].pieces[0].file].path,
		    model.tensors[i].name);
	for (size_t i = 0; i < model.part_count; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ",
		    model.parts[i].path);
	assert_string_equal(got, names);
	model_free(&model);
}

static void
expect_error(const struct directory *directory, enum error_class class,
    enum error_cause cause, const char *message, const char *cure)
{
	struct model_options options = { .key = NULL };
	struct model model;
	struct error error = ERROR_INIT;

	assert_int_equal(model_read(directory->files, directory->count,
	    &options, &model, &error), -1);
	model_free(&model);
	if (error.class != class || error.cause != cause ||
	    strstr(error.message, message) == NULL ||
	    strstr(error.cure, cure) == NULL)
		fail_msg("%d/%d: %s (%s)", error.class, error.cause,
		    error.message, error.cure);
}

static void
test_hugging_face(void **state)
{
	static const char index[] = "{\"weight_map\":{\"a\":\"one.safetensors\","
	    "\"b\":\"two.safetensors\"}}";
	struct directory directory = { .count = 0 };

	(void)state;
	add(&directory, "config.json", "{}", 2);
	add(&directory, "one.safetensors", safetensors('a'),
	    SAFETENSORS_SIZE);
	add(&directory, "optimizer.safetensors", safetensors('b'),
	    SAFETENSORS_SIZE);
	add(&directory, "trainer_state.json", "{}", 2);
	expect(&directory, "one.safetensors:a ");
	/* An index says which, and that one is missing. */
	add(&directory, "model.safetensors.index.json", index,
	    sizeof(index) - 1);
	expect_error(&directory, ERROR_DAMAGED, CAUSE_NOT_FOUND,
	    "it names the shard two.safetensors, which is not there", "");
	add(&directory, "two.safetensors", safetensors('b'),
	    SAFETENSORS_SIZE);
	add(&directory, "stale.safetensors", safetensors('c'),
	    SAFETENSORS_SIZE);
	expect(&directory, "one.safetensors:a two.safetensors:b ");
}

/* One of several files need not have the key. */
static void
test_key_in_one_file(void **state)
{
	struct directory directory = { .count = 0 };
	struct model_options options = { .key = "b" };
	struct model model;
	struct error error = ERROR_INIT;

	(void)state;
	add(&directory, "one.safetensors", safetensors('a'),
	    SAFETENSORS_SIZE);
	add(&directory, "two.safetensors", safetensors('b'),
	    SAFETENSORS_SIZE);
	assert_ok(model_read(directory.files, 2, &options, &model, &error),
	    error);
	assert_int_equal(model.count, 1);
	assert_string_equal(model.tensors[0].name, "b");
	assert_string_equal(model.key, "b");
	model_free(&model);
	options.key = "c";
	assert_int_equal(model_read(directory.files, 2, &options, &model,
	    &error), -1);
	assert_int_equal(error.class, ERROR_USAGE);
	assert_string_equal(error.message, "no tensors lie under the key c");
	model_free(&model);
}

static void
test_twins_in_two_files(void **state)
{
	struct directory directory = { .count = 0 };

	(void)state;
	add(&directory, "model.safetensors", safetensors('a'),
	    SAFETENSORS_SIZE);
	add(&directory, "model_1.safetensors", safetensors('a'),
	    SAFETENSORS_SIZE);
	expect_error(&directory, ERROR_DAMAGED, CAUSE_OTHER,
	    "two of its tensors are named a", "give the one that is meant");
}

static void
test_what_cannot_be_chosen(void **state)
{
	struct directory zero = { .count = 0 }, orbax = { .count = 0 },
	    table = { .count = 0 }, none = { .count = 0 };

	(void)state;
	add(&zero, "zero_pp_rank_0_mp_rank_00_model_states.pt", "x", 1);
	add(&zero, "zero_pp_rank_0_mp_rank_00_optim_states.pt", "x", 1);
	expect_error(&zero, ERROR_DAMAGED, CAUSE_UNSUPPORTED,
	    "ZeRO-3 keeps the weights inside the optimizer's files",
	    "zero_to_fp32.py");
	/* Gathered weights beside them are what is wanted. */
	add(&zero, "model.safetensors", safetensors('a'), SAFETENSORS_SIZE);
	expect(&zero, "model.safetensors:a ");

	add(&orbax, "_CHECKPOINT_METADATA", "{}", 2);
	add(&orbax, "default/manifest.ocdbt", "x", 1);
	add(&orbax, "default/d/0123", "x", 1);
	expect_error(&orbax, ERROR_DAMAGED, CAUSE_UNSUPPORTED,
	    "Orbax keeps the model and the optimizer in the same files",
	    "let Orbax read only the parameters");
	/* Saved as an item of their own. */
	add(&orbax, "params/manifest.ocdbt", "x", 1);
	add(&orbax, "params/d/0123", "x", 1);
	expect(&orbax, "params/manifest.ocdbt params/d/0123 ");

	add(&table, "checkpoint", "x", 1);
	add(&table, "ckpt-1.index", "x", 1);
	add(&table, "ckpt-1.data-00000-of-00001", "x", 1);
	expect_error(&table, ERROR_DAMAGED, CAUSE_UNSUPPORTED,
	    "in the same table", "export the model with TensorFlow");

	add(&none, "config.json", "{}", 2);
	add(&none, "optimizer.pt", "PK\3\4", 4);
	expect_error(&none, ERROR_NOTHING, CAUSE_NOT_FOUND,
	    "no file of it holds weights", "");
	none.count = 0;
	expect_error(&none, ERROR_NOTHING, CAUSE_NOT_FOUND,
	    "there are no files", "");
}

static void
test_ranks(void **state)
{
	struct directory ranks = { .count = 0 }, two = { .count = 0 };

	(void)state;
	add(&ranks, "mp_rank_00/model_optim_rng.pt", "PK\3\4", 4);
	add(&ranks, "mp_rank_01/model_optim_rng.pt", "PK\3\4", 4);
	expect_error(&ranks, ERROR_DAMAGED, CAUSE_UNSUPPORTED,
	    "its tensors are cut into the parts of several ranks",
	    "merge them with the framework");
	add(&two, "a/.metadata", "x", 1);
	add(&two, "b/.metadata", "x", 1);
	expect_error(&two, ERROR_USAGE, CAUSE_OTHER,
	    "two distributed checkpoints", "");
}

static void
test_single_files(void **state)
{
	static const struct {
		const char *name, *content;
		size_t length;
		enum error_cause cause;
		const char *message;
	} cases[] = {
		{ "x.pt", "", 0, CAUSE_UNSUPPORTED, "no format of weights" },
		{ "x.pt", "hello", 5, CAUSE_UNSUPPORTED,
		    "no format of weights" },
		{ "x.nemo", "\x1f\x8b\x08", 3, CAUSE_UNSUPPORTED,
		    "compressed by gzip" },
		{ "x.pt", "PK\3\4", 4, CAUSE_OTHER, "no zip end record" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct directory directory = { .count = 0 };

		add(&directory, cases[i].name, cases[i].content,
		    cases[i].length);
		expect_error(&directory, ERROR_DAMAGED, cases[i].cause,
		    cases[i].message, "");
	}
}

static void
test_gguf(void **state)
{
	struct directory directory = { .count = 0 };

	(void)state;
	add(&directory, "model.gguf", "GGUF\3\0\0\0", 8);
	expect(&directory, "model.gguf ");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choose_file),
		cmocka_unit_test(test_hugging_face),
		cmocka_unit_test(test_key_in_one_file),
		cmocka_unit_test(test_twins_in_two_files),
		cmocka_unit_test(test_what_cannot_be_chosen),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_single_files),
		cmocka_unit_test(test_gguf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
