#include "unit/move/payload.h"

#include <dirent.h>

#include "base/log.h"
#include "base/path.h"
#include "format/model.h"
#include "move/remote_file.h"
#include "move/weights.h"

#define MIB ((size_t)1 << 20)

/*
 * A safetensors file whose tensors are seen as they lie, turned round, in
 * parts or as another type: the model is made by hand.
 */
struct stage {
	struct scene *scene;
	struct truth *truth;
	struct manifest *manifest;
	char *data;
	size_t length;
	size_t entry;
	struct source_memory memory;
	struct source source;
	struct model_file file;
	struct remote_file_set *set;
	struct weights weights;
	_Atomic uint64_t looked;
	struct model model;
	char *out;
};

static struct stage *
stage_new(size_t count, size_t size)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	struct payload payload = { .count = count, .size = size };
	struct error error = ERROR_INIT;
	size_t i;
	char *path;

	assert_non_null(stage);
	for (i = 0; i < count; i++)
		payload.seeds[i] = i + 1;
	stage->scene = scene_new();
	payload_safetensors(stage->scene, "m.safetensors", &payload);
	path = scene_path(stage->scene, NULL, "m.safetensors");
	stage->data = kit_read_file(path, &stage->length);
	free(path);
	scene_push(stage->scene, "m.safetensors");
	stage->truth = scene_truth(stage->scene);
	stage->manifest = stage->truth->valid[0];
	stage->set = remote_file_set_new(&stage->scene->script->backend,
	    stage->manifest, &stage->weights.cancel, &stage->looked, &error);
	assert_non_null(stage->set);
	stage->memory = (struct source_memory){ stage->data, stage->length };
	stage->source = source_from_memory(&stage->memory);
	stage->file.path = "m.safetensors";
	stage->weights.files = &stage->file;
	stage->weights.count = 1;
	stage->weights.entries = &stage->entry;
	stage->out = path_join(stage->scene->root, "out.bin");
	script_reset(stage->scene->script);
	return stage;
}

static void
go_far(struct stage *stage)
{
	stage->file.source = remote_file_source(stage->set, stage->entry);
	stage->weights.backend = &stage->scene->script->backend;
	stage->weights.manifest = stage->manifest;
	stage->weights.set = stage->set;
}

static void
go_near(struct stage *stage)
{
	stage->file.source = &stage->source;
	stage->weights.backend = NULL;
	stage->weights.set = NULL;
}

static void
stage_free(struct stage *stage)
{
	model_free(&stage->model);
	remote_file_set_free(stage->set);
	truth_free(stage->truth);
	scene_free(stage->scene);
	free(stage->data);
	free(stage->out);
	free(stage);
}

static void
read_model(struct stage *stage)
{
	const struct model_options options = { .key = NULL };
	struct error error = ERROR_INIT;

	assert_ok(model_read(&stage->file, 1, &options, &stage->model,
	    &error), error);
}

/* Make OUT; the plan's bytes in *${bytes}. */
static int
make(struct stage *stage, enum model_output output,
    const enum tensor_type *type, bool replace, uint64_t *bytes,
    struct error *error)
{
	struct weights_plan plan;
	int result;

	error_clear(error);
	result = weights_plan_model(&stage->weights, &stage->model, output,
	    type, &plan, error);
	*bytes = plan.fetch_bytes;
	if (result == 0)
		result = weights_run(&stage->weights, &plan, stage->out,
		    replace, error);
	weights_plan_free(&plan);
	return result;
}

/* How many GETs it takes. */
static unsigned
count_gets(struct stage *stage)
{
	struct error error = ERROR_INIT;
	struct weights_plan plan;
	unsigned count;

	assert_ok(weights_plan_model(&stage->weights, &stage->model,
	    MODEL_OUTPUT_TORCH, NULL, &plan, &error), error);
	count = (unsigned)plan.ranges.count;
	weights_plan_free(&plan);
	return count;
}

/* Only what is in the scene's folder, nothing beside OUT. */
static void
check_clean(const struct stage *stage, bool there)
{
	DIR *folder = opendir(stage->scene->root);
	struct dirent *entry;
	bool found = false;

	assert_non_null(folder);
	while ((entry = readdir(folder)) != NULL) {
		assert_null(strstr(entry->d_name, "ckptsync"));
		found |= strcmp(entry->d_name, "out.bin") == 0;
	}
	closedir(folder);
	assert_int_equal(found, there);
}

static void
take_all(struct stage *stage, enum model_output output, size_t size)
{
	struct error error = ERROR_INIT;
	size_t i, length, far_length;
	char *out, *far_out;
	uint64_t bytes;

	go_far(stage);
	read_model(stage);
	assert_ok(make(stage, output, NULL, false, &bytes, &error), error);
	far_out = kit_read_file(stage->out, &far_length);
	assert_int_equal(stage->weights.progress.done,
	    stage->weights.progress.total);
	assert_int_equal(stage->weights.progress.moved, bytes);
	assert_int_equal(stage->scene->script->get_bytes,
	    bytes + stage->looked);
	go_near(stage);
	assert_ok(make(stage, output, NULL, true, &bytes, &error), error);
	out = kit_read_file(stage->out, &length);
	assert_int_equal(length, far_length);
	assert_memory_equal(out, far_out, length);
	for (i = 0; output == MODEL_OUTPUT_SAFETENSORS &&
	    i < stage->model.count; i++)
		assert_non_null(memmem(out, length, stage->data +
		    stage->model.tensors[i].pieces[0].offset, size));
	free(out);
	free(far_out);
	check_clean(stage, true);
}

static void
test_far_and_near(void **state)
{
	static const size_t sizes[] = { 100, 20000, 300001, 9 * MIB + 5 };
	static const size_t counts[] = { 60, 60, 20, 3 };
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		struct stage *stage = stage_new(counts[i], sizes[i]);

		take_all(stage, MODEL_OUTPUT_SAFETENSORS, sizes[i]);
		stage_free(stage);
		stage = stage_new(counts[i], sizes[i]);
		take_all(stage, MODEL_OUTPUT_TORCH, sizes[i]);
		stage_free(stage);
	}
}

/*
 * Every tensor of 4 * width * width bytes as a square of numbers, seen turned
 * round, in rows that lie in two of them, in columns, all from one file.
 */
static void
see_turned(struct stage *stage, uint64_t width)
{
	struct tensor *tensor;
	struct tensor_piece *piece;
	size_t i;

	for (i = 0; i < stage->model.count; i++) {
		tensor = &stage->model.tensors[i];
		piece = &tensor->pieces[0];
		tensor->type = TENSOR_F32;
		tensor->dimensions = 2;
		/* The three of a piece lie in one block (tensor_make.c). */
		free(tensor->shape);
		free(piece->start);
		tensor->shape = calloc(2, sizeof(uint64_t));
		piece->start = calloc(6, sizeof(uint64_t));
		assert_true(tensor->shape != NULL && piece->start != NULL);
		piece->size = piece->start + 2;
		piece->stride = piece->start + 4;
		tensor->shape[0] = tensor->shape[1] = width;
		piece->size[0] = piece->size[1] = width;
		piece->stride[0] = i % 2 == 0 ? 1 : width;
		piece->stride[1] = i % 2 == 0 ? width : 1;
		tensor->bytes = 4 * width * width;
	}
}

static void
check_turned(const struct stage *stage, const char *out, uint64_t first,
    uint64_t width, size_t index)
{
	const char *from = stage->data +
	    stage->model.tensors[index].pieces[0].offset;
	uint64_t i, j;

	for (i = 0; i < width; i++)
		for (j = 0; j < width; j++)
			assert_memory_equal(out + first + 4 * (i * width + j),
			    from + 4 * (index % 2 == 0 ? j * width + i :
			    i * width + j), 4);
}

static void
test_turned(void **state)
{
	const uint64_t width = 900;
	struct stage *stage = stage_new(4, 4 * width * width);
	struct error error = ERROR_INIT;
	struct weights_plan plan;
	char *out, *other;
	size_t i, length;
	uint64_t bytes;

	(void)state;
	go_far(stage);
	read_model(stage);
	see_turned(stage, width);
	/* Two want the same bytes, one of them as they are. */
	stage->model.tensors[3].pieces[0].offset =
	    stage->model.tensors[2].pieces[0].offset;
	assert_ok(weights_plan_model(&stage->weights, &stage->model,
	    MODEL_OUTPUT_SAFETENSORS, NULL, &plan, &error), error);
	assert_true(plan.fetch_bytes < 3 * 4 * width * width + 65536);
	assert_ok(weights_run(&stage->weights, &plan, stage->out, false,
	    &error), error);
	out = kit_read_file(stage->out, &length);
	for (i = 0; i < 4; i++)
		check_turned(stage, out, plan.outline->places[i], width, i);
	weights_plan_free(&plan);
	go_near(stage);
	assert_ok(make(stage, MODEL_OUTPUT_SAFETENSORS, NULL, true, &bytes,
	    &error), error);
	assert_int_equal(bytes, 0);
	other = kit_read_file(stage->out, &length);
	assert_memory_equal(out, other, length);
	check_clean(stage, true);
	free(out);
	free(other);
	stage_free(stage);
}

static void
test_exists(void **state)
{
	struct stage *stage = stage_new(3, 300000);
	struct error error = ERROR_INIT;
	uint64_t bytes;
	size_t length;
	char *out;

	(void)state;
	go_far(stage);
	read_model(stage);
	kit_write_file(stage->out, "mine", 4);
	assert_int_equal(make(stage, MODEL_OUTPUT_SAFETENSORS, NULL, false,
	    &bytes, &error), -1);
	assert_int_equal(error.cause, CAUSE_EXISTS);
	assert_non_null(strstr(error.cure, "--force"));
	out = kit_read_file(stage->out, &length);
	assert_string_equal(out, "mine");
	free(out);
	assert_ok(make(stage, MODEL_OUTPUT_SAFETENSORS, NULL, true, &bytes,
	    &error), error);
	check_clean(stage, true);
	stage_free(stage);
}

/* Whatever fails, nothing is there that was not. */
static void
test_failures(void **state)
{
	struct stage *stage = stage_new(6, 3 * MIB);
	struct script *script = stage->scene->script;
	struct error error = ERROR_INIT;
	uint64_t bytes;
	unsigned i;

	(void)state;
	go_far(stage);
	read_model(stage);
	assert_true(count_gets(stage) >= 5);
	for (i = 1; i <= count_gets(stage); i++) {
		script_reset(script);
		script->fail_get = i;
		assert_int_equal(make(stage, MODEL_OUTPUT_SAFETENSORS, NULL,
		    false, &bytes, &error), -1);
		assert_int_equal(error.cause, CAUSE_UNREACHABLE);
		check_clean(stage, false);
	}
	script_reset(script);
	script->fail_get = 3;
	script->cause = CAUSE_NOT_FOUND;
	assert_int_equal(make(stage, MODEL_OUTPUT_SAFETENSORS, NULL, false,
	    &bytes, &error), -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
	script_reset(script);
	stage->weights.cancel = true;
	assert_int_equal(make(stage, MODEL_OUTPUT_SAFETENSORS, NULL, false,
	    &bytes, &error), -1);
	assert_int_equal(error.cause, CAUSE_CANCELLED);
	go_near(stage);
	assert_int_equal(make(stage, MODEL_OUTPUT_SAFETENSORS, NULL, false,
	    &bytes, &error), -1);
	assert_int_equal(error.cause, CAUSE_CANCELLED);
	stage->weights.cancel = false;
	free(stage->out);
	stage->out = path_join(stage->scene->root, "not/there/out.bin");
	assert_int_equal(make(stage, MODEL_OUTPUT_SAFETENSORS, NULL, false,
	    &bytes, &error), -1);
	assert_int_equal(error.cause, CAUSE_NOT_FOUND);
	check_clean(stage, false);
	stage_free(stage);
}

static int
refuse(const void *context, struct error *error)
{
	(void)context;
	return error_set(error, ERROR_FAILED, CAUSE_CHANGED, "m", "changed");
}

/* A local file that changed meanwhile becomes no OUT. */
static void
test_check(void **state)
{
	struct stage *stage = stage_new(3, 1000);
	struct error error = ERROR_INIT;
	uint64_t bytes;

	(void)state;
	go_near(stage);
	read_model(stage);
	stage->weights.check = refuse;
	assert_int_equal(make(stage, MODEL_OUTPUT_TORCH, NULL, false, &bytes,
	    &error), -1);
	assert_int_equal(error.cause, CAUSE_CHANGED);
	check_clean(stage, false);
	stage_free(stage);
}

static void
flip_chunk(void *context)
{
	struct stage *stage = context;
	const struct manifest_chunk *chunk =
	    &stage->manifest->chunks[stage->manifest->chunk_count - 1];
	const char *name = strrchr(chunk->key, '/') + 1;
	char path[4096], *data;
	size_t length;

	snprintf(path, sizeof(path), "%s/%.*s%.2s/%s", stage->scene->store,
	    (int)(name - chunk->key), chunk->key, name, name);
	data = kit_read_file(path, &length);
	data[length / 2] ^= 1;
	kit_write_file(path, data, length);
	free(data);
}

/* Damage that passes is fetched again, damage that stays is said. */
static void
test_damage(void **state)
{
	struct stage *stage = stage_new(6, 3 * MIB);
	struct script *script = stage->scene->script;
	struct error error = ERROR_INIT;
	uint64_t bytes;
	unsigned gets;

	(void)state;
	go_far(stage);
	read_model(stage);
	gets = count_gets(stage);
	flip_chunk(stage);
	script_reset(script);
	assert_int_equal(make(stage, MODEL_OUTPUT_TORCH, NULL, false, &bytes,
	    &error), -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
	check_clean(stage, false);
	/* One GET more, the second of the damaged chunk. */
	script_reset(script);
	script->hook_get = gets + 1;
	script->hook = flip_chunk;
	script->hook_context = stage;
	assert_ok(make(stage, MODEL_OUTPUT_TORCH, NULL, false, &bytes,
	    &error), error);
	assert_int_equal(script->gets, gets + 1);
	check_clean(stage, true);
	stage_free(stage);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_far_and_near),
		cmocka_unit_test(test_turned),
		cmocka_unit_test(test_exists),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_damage),
	};

	log_setup(LOG_TEXT, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
