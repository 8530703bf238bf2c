#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/sha256.h"
#include "kit/kit.h"
#include "weigh.h"

#define OPTIONS_MAXIMUM 8

/* One `read` of the file `expected` (make_weights.py). */
struct reading {
	char name[64];
	struct model_options options;
	const char *include[OPTIONS_MAXIMUM];
	const char *exclude[OPTIONS_MAXIMUM];
	char line[512];
};

static void
parse_reading(const char *line, struct reading *reading)
{
	char *save, *word;

	memset(reading, 0, sizeof(*reading));
	reading->options.include = reading->include;
	reading->options.exclude = reading->exclude;
	snprintf(reading->line, sizeof(reading->line), "%s", line);
	word = strtok_r(reading->line, " ", &save);
	assert_string_equal(word, "read");
	snprintf(reading->name, sizeof(reading->name), "%s",
	    strtok_r(NULL, " ", &save));
	while ((word = strtok_r(NULL, " ", &save)) != NULL) {
		if (strcmp(word, "ema") == 0)
			reading->options.ema = true;
		else if (strcmp(word, "strip") == 0)
			reading->options.strip_prefix = true;
		else if (strncmp(word, "key=", 4) == 0)
			reading->options.key = word + 4;
		else if (strncmp(word, "include=", 8) == 0)
			reading->include[reading->options.include_count++] =
			    word + 8;
		else if (strncmp(word, "exclude=", 8) == 0)
			reading->exclude[reading->options.exclude_count++] =
			    word + 8;
		else
			fail_msg("unknown option %s", word);
	}
}

/* What `expected` would say of this tensor. */
static void
describe(const struct weigh_files *files, const struct tensor *tensor,
    struct buffer *text)
{
	uint8_t digest[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];
	char *bytes = weigh_gather(files, tensor);
	struct error error;

	sha256_of(bytes, (size_t)tensor->bytes, digest);
	sha256_hex(digest, hex);
	free(bytes);
	buffer_format(text, &error, "tensor %s %s ", tensor->name,
	    tensor_type_text(tensor->type));
	for (unsigned i = 0; i < tensor->dimensions; i++)
		buffer_format(text, &error, "%s%llu", i == 0 ? "" : ",",
		    (unsigned long long)tensor->shape[i]);
	buffer_format(text, &error, "%s %.32s\n",
	    tensor->dimensions == 0 ? "-" : "", hex);
}

static void
describe_model(const struct weigh_files *files, const struct model *model,
    struct buffer *text)
{
	struct error error;

	buffer_format(text, &error, "key%s%s\n", model->key[0] == '\0' ? "" :
	    " ", model->key);
	for (size_t i = 0; i < model->count; i++)
		describe(files, &model->tensors[i], text);
	for (size_t i = 0; i < model->refused_count; i++)
		buffer_format(text, &error, "refused %s\n",
		    model->refused[i]);
}

static const struct tensor *
find_tensor(const struct model *model, const char *name)
{
	for (size_t i = 0; i < model->count; i++)
		if (strcmp(model->tensors[i].name, name) == 0)
			return &model->tensors[i];
	return NULL;
}

/* Write the model as a file of this kind, and read that again. */
static void
check_output(const struct weigh_files *files, struct model *model,
    enum model_output output)
{
	struct model_options all = { .key = "." };
	struct weigh_files *written;
	struct model again;
	struct error error = ERROR_INIT;
	size_t length;
	char *file;

	assert_ok(model_fit(model, output, NULL, &error), error);
	file = weigh_write(files, model, output, NULL, &length);
	written = weigh_one("out", file, length);
	assert_ok(model_read(written->files, 1, &all, &again, &error), error);
	assert_int_equal(again.count, model->count);
	for (size_t i = 0; i < model->count; i++) {
		const struct tensor *tensor = &model->tensors[i];
		const struct tensor *found = find_tensor(&again, tensor->name);
		char *before = weigh_gather(files, tensor), *after;
		uint64_t place;

		assert_non_null(found);
		assert_int_equal(found->type, tensor->type);
		assert_int_equal(found->dimensions, tensor->dimensions);
		assert_memory_equal(found->shape, tensor->shape,
		    tensor->dimensions * sizeof(uint64_t));
		assert_true(tensor_is_run(found, &place));
		after = weigh_gather(written, found);
		assert_memory_equal(after, before, tensor->bytes);
		free(before);
		free(after);
	}
	model_free(&again);
	weigh_close(written);
	free(file);
}

/* ${wanted} is the section without its first line. */
static void
check_reading(const struct reading *reading, const char *wanted)
{
	struct weigh_files *files = weigh_open(reading->name);
	struct buffer text;
	struct model model;
	struct error error = ERROR_INIT;

	buffer_init(&text, 1 << 20);
	if (model_read(files->files, files->count, &reading->options, &model,
	    &error) != 0) {
		char full[ERROR_TEXT_SIZE];

		fail_msg("%s: %s", reading->name, error_text(&error, full));
	}
	describe_model(files, &model, &text);
	if (strcmp(buffer_text(&text), wanted) != 0)
		fail_msg("%s: got\n%s, not\n%s", reading->name,
		    buffer_text(&text), wanted);
	check_output(files, &model, MODEL_OUTPUT_TORCH);
	check_output(files, &model, MODEL_OUTPUT_SAFETENSORS);
	model_free(&model);
	buffer_free(&text);
	weigh_close(files);
}

/* All that the file ${path} says; how many readings that were. */
static size_t
check_all_of(const char *path)
{
	size_t length, count = 0;
	char *text = kit_read_file(path, &length);

	for (char *at = text; at != NULL && *at != '\0';) {
		struct reading reading;
		char *end = strchr(at, '\n'), *next = strstr(end, "\nread ");
		char *wanted = strndup(end + 1, next == NULL ?
		    strlen(end + 1) : (size_t)(next - end));

		*end = '\0';
		parse_reading(at, &reading);
		check_reading(&reading, wanted);
		free(wanted);
		count++;
		at = next == NULL ? NULL : next + 1;
	}
	free(text);
	return count;
}

/* Every fixture gives what torch itself loads: 1.13, and 2.15. */
static void
test_fixtures(void **state)
{
	(void)state;
	assert_int_equal(check_all_of(TEST_DATA
	    "/format/weights/expected"), 36);
	assert_int_equal(check_all_of(TEST_DATA
	    "/format/current/expected"), 5);
}

static void
expect_refusal(const char *name, const struct model_options *options,
    enum error_class class, const char *message)
{
	struct weigh_files *files = weigh_open(name);
	struct model model;
	struct error error = ERROR_INIT;

	assert_int_equal(model_read(files->files, files->count, options,
	    &model, &error), -1);
	model_free(&model);
	weigh_close(files);
	if (error.class != class || strstr(error.message, message) == NULL)
		fail_msg("%s: class %d: %s; expected %d: %s", name,
		    error.class, error.message, class, message);
}

static void
test_refusals(void **state)
{
	static const char *const nothing[] = { "nothing*" };
	struct model_options missing = { .key = "state_dict.absent" };
	struct model_options ema = { .ema = true };
	struct model_options none = { .include = nothing, .include_count = 1 };

	(void)state;
	expect_refusal("lightning.ckpt", &missing, ERROR_USAGE,
	    "no tensors lie under the key state_dict.absent");
	expect_refusal("lightning.ckpt", &ema, ERROR_USAGE,
	    "there are no averaged weights: state_dict (");
	expect_refusal("hf", &ema, ERROR_USAGE, "no averaged weights");
	expect_refusal("state.pt", &none, ERROR_USAGE, "no tensor is left");
}

/* What was not taken is counted. */
static void
test_what_is_left_out(void **state)
{
	struct weigh_files *files = weigh_open("timm.pth.tar");
	struct model_options options = { .key = NULL };
	struct model model;
	struct error error = ERROR_INIT;

	(void)state;
	assert_ok(model_read(files->files, 1, &options, &model, &error),
	    error);
	/* As many of the average, three of the optimizer, one scale. */
	assert_int_equal(model.count, 8);
	assert_int_equal(model.left_out, 8 + 3 + 1);
	assert_int_equal(model.layout, MODEL_TORCH);
	assert_int_equal(model.part_count, 0);
	model_free(&model);
	weigh_close(files);
}

static void
expect_tree(const char *name, const char *wanted)
{
	struct weigh_files *files = weigh_open(name);
	struct buffer text;
	struct error error = ERROR_INIT;

	buffer_init(&text, 1 << 20);
	assert_ok(model_tree(files->files, files->count, &text, &error),
	    error);
	assert_string_equal(buffer_text(&text), wanted);
	buffer_free(&text);
	weigh_close(files);
}

static void
test_trees(void **state)
{
	(void)state;
	expect_tree("composer.pt",
	    "state: 11 tensors, 332 bytes\n"
	    "  model: 8 tensors, 208 bytes\n"
	    "  optimizers: 3 tensors, 124 bytes\n"
	    "    AdamW: 3 tensors, 124 bytes, an optimizer's state\n"
	    "rng: 1 tensor, 16 bytes\n"
	    "  0: 1 tensor, 16 bytes\n");
	expect_tree("fsdp",
	    "model: 4 tensors, 132 bytes\n"
	    "optimizer: 1 tensor, 20 bytes\n");
	expect_tree("lone.pt", "tensor: 1 tensor, 24 bytes\n");
}

/* Whole files and members, and whether an optimizer is inside. */
static void
test_whole_files(void **state)
{
	static const struct {
		const char *name, *path, *note;
	} cases[] = {
		{ "plain.weights.h5", "plain.weights.h5", "" },
		{ "trained.weights.h5", "trained.weights.h5",
		    "the state of the optimizer is inside as well" },
		{ "new.weights.h5", "new.weights.h5",
		    "the state of the optimizer is inside as well" },
		{ "model.keras", "model.weights.h5",
		    "the state of the optimizer is inside as well" },
	};
	struct model_options options = { .key = NULL };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weigh_files *files = weigh_open(cases[i].name);
		struct model model;
		struct error error = ERROR_INIT;
		uint8_t start[8];

		assert_ok(model_read(files->files, 1, &options, &model,
		    &error), error);
		assert_int_equal(model.layout, MODEL_FILES);
		assert_int_equal(model.count, 0);
		assert_int_equal(model.part_count, 1);
		assert_string_equal(model.parts[0].path, cases[i].path);
		assert_string_equal(model.note, cases[i].note);
		assert_ok(source_read(&files->sources[0],
		    model.parts[0].offset, start, 8, &error), error);
		assert_memory_equal(start, "\x89HDF\r\n\x1a\n", 8);
		assert_true(model.parts[0].offset + model.parts[0].length <=
		    files->sources[0].size);
		model_free(&model);
		weigh_close(files);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixtures),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_what_is_left_out),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_whole_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
