#include "unit/move/scene.h"

#define MIB ((size_t)1 << 20)

/* Pointers and companions at a commit. */

static const struct manifest_entry *
find(const struct manifest_entry *entries, size_t count, const char *path)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (strcmp(entries[i].path, path) == 0)
			return &entries[i];
	return NULL;
}

static const struct manifest_entry *
companion(const struct scene *scene, const char *path)
{
	return find(scene->outcome.manifest->companions,
	    scene->outcome.manifest->companion_count, path);
}

static void
test_growing_log(void **state)
{
	struct scene *scene = scene_new();
	char *log = calloc(1, 2 * MIB);

	(void)state;
	assert_non_null(log);
	kit_random(log, 2 * MIB, 9);
	scene->companions[0] = "log";
	scene->upload.companion_limit = 4 * MIB;
	scene_fill(scene, "a.pt", 500, 1);
	scene_write(scene, "log", log, MIB);
	scene_push(scene, "a.pt");
	assert_int_equal(scene->outcome.new_bytes, 500 + MIB);
	assert_int_equal(companion(scene, "log")->size, MIB);
	/* Only what is new of it, to a multiple of 64 KiB, is sent again. */
	scene_fill(scene, "a.pt", 500, 2);
	scene_write(scene, "log", log, MIB + 100000);
	scene_push(scene, "a.pt");
	assert_int_equal(scene->outcome.new_bytes, 500 + 100000);
	scene_fill(scene, "a.pt", 500, 3);
	scene_write(scene, "log", log, MIB + 100100);
	scene_push(scene, "a.pt");
	assert_true(scene->outcome.new_bytes <= 500 + 65536);
	/* Nothing but the log changed: that is no commit. */
	scene_write(scene, "log", log, 2 * MIB);
	scene_push(scene, "a.pt");
	assert_true(scene->outcome.known);
	free(log);
	scene_free(scene);
}

static void
test_limit(void **state)
{
	struct scene *scene = scene_new();

	(void)state;
	scene->companions[0] = "small";
	scene->companions[1] = "large";
	scene_fill(scene, "small", 1000, 1);
	scene_fill(scene, "large", 1001, 2);
	scene_fill(scene, "a.pt", 500, 3);
	scene->upload.companion_limit = 1000;
	scene_push(scene, "a.pt");
	assert_non_null(companion(scene, "small"));
	assert_null(companion(scene, "large"));
	/* --companions none */
	scene->upload.companion_limit = 0;
	scene_fill(scene, "a.pt", 500, 4);
	scene_push(scene, "a.pt");
	assert_int_equal(scene->outcome.manifest->companion_count, 0);
	scene_free(scene);
}

/* What a hook does when the chunk with the companions is sent. */
static void
rewrite(void *context)
{
	struct scene *scene = context;

	scene_fill(scene, "results.csv", 30000, 77);
}

static void
shrink(void *context)
{
	struct scene *scene = context;
	char *path = scene_path(scene, NULL, "results.csv");

	assert_int_equal(truncate(path, 10), 0);
	free(path);
}

static void
grow(void *context)
{
	struct scene *scene = context;
	char *path = scene_path(scene, NULL, "results.csv");
	int fd = open(path, O_WRONLY | O_APPEND);

	assert_true(fd >= 0);
	assert_int_equal(path_write_all(fd, "more", 4), 0);
	close(fd);
	free(path);
}

/* A companion that changes under the upload costs nothing but itself. */
static void
test_changing(void **state)
{
	struct {
		void (*hook)(void *);
		bool stays;
	} cases[] = { { rewrite, false }, { shrink, false }, { grow, true } };
	struct scene *scene = scene_new();
	size_t i;

	(void)state;
	scene->companions[0] = "results.csv";
	scene->upload.companion_limit = MIB;
	scene->script->hook_context = scene;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		script_reset(scene->script);
		scene_fill(scene, "results.csv", 30000, 100 + i);
		scene_fill(scene, "a.pt", 500, i);
		scene->script->hook = cases[i].hook;
		scene->script->hook_put = 2;
		scene_push(scene, "a.pt");
		assert_int_equal(scene->outcome.manifest->attempt, i + 1);
		assert_int_equal(companion(scene, "results.csv") != NULL,
		    cases[i].stays);
	}
	assert_int_equal(companion(scene, "results.csv")->size, 30000);
	scene_free(scene);
}

static void
test_pointers(void **state)
{
	struct scene *scene = scene_new();
	const struct manifest *manifest;
	const struct manifest_entry *entry;
	char *path = scene_path(scene, NULL, "last");

	(void)state;
	scene_fill(scene, "a.pt", 500, 1);
	assert_int_equal(symlink("a.pt", path), 0);
	scene_write(scene, "latest", "a.pt", 4);
	scene_fill(scene, "huge", 2 * MIB, 1);
	scene->pointers[0] = "huge";
	scene->pointers[1] = "last";
	scene->pointers[2] = "latest";
	scene_push(scene, "a.pt");
	manifest = scene->outcome.manifest;
	/* The small one shares the chunk of the checkpoint. */
	assert_int_equal(scene->script->stored, 1);
	assert_int_equal(manifest->pointer_count, 2);
	entry = find(manifest->pointers, manifest->pointer_count, "last");
	assert_int_equal(entry->kind, MANIFEST_LINK);
	assert_string_equal(entry->target, "a.pt");
	entry = find(manifest->pointers, manifest->pointer_count, "latest");
	assert_int_equal(entry->size, 4);
	assert_int_equal(scene->upload.progress.done, 500);
	free(path);
	scene_free(scene);
}

static void
point_on(void *context)
{
	struct scene *scene = context;
	char *path = scene_path(scene, NULL, "last");

	scene_write(scene, "latest", "step-2\n", 7);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("step-2", path), 0);
	scene_write(scene, "other", "new", 3);
	free(path);
}

/* The trainer is one checkpoint further when this one is committed: the
 * pointer that names this one belongs to it. */
static void
test_early_pointers(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { .pointers = true };
	struct error error = ERROR_INIT;
	char *path = scene_path(scene, NULL, "last"), *data;
	const struct manifest *manifest;
	size_t length;

	(void)state;
	scene_fill(scene, "step-1/a", 20 * MIB, 1);
	assert_int_equal(symlink("step-1", path), 0);
	free(path);
	scene_write(scene, "latest", "step-1\n", 7);
	scene_write(scene, "other", "old", 3);
	scene->pointers[0] = "last";
	scene->pointers[1] = "latest";
	scene->pointers[2] = "other";
	scene->script->hook = point_on;
	scene->script->hook_context = scene;
	scene->script->hook_put = 1;
	scene_push(scene, "step-1");
	manifest = scene->outcome.manifest;
	assert_string_equal(find(manifest->pointers, manifest->pointer_count,
	    "last")->target, "step-1");
	assert_ok(scene_restore(scene, &restore, &error), error);
	path = path_join(scene->target, "latest");
	data = kit_read_file(path, &length);
	assert_string_equal(data, "step-1\n");
	free(path);
	free(data);
	path = path_join(scene->target, "other");
	data = kit_read_file(path, &length);
	assert_string_equal(data, "new");
	free(path);
	free(data);
	scene_free(scene);
}

/* A companion in the place of something else, and links that lead out. */
static void
test_strange(void **state)
{
	struct scene *scene = scene_new();
	char *path = scene_path(scene, NULL, "last");

	(void)state;
	scene_fill(scene, "step-1/a", 500, 1);
	scene_fill(scene, "fine", 500, 2);
	scene->companions[0] = "step-1/a";
	scene->companions[1] = "step-1";
	scene->companions[2] = "fine";
	scene->upload.companion_limit = MIB;
	scene_push(scene, "step-1");
	assert_int_equal(scene->outcome.manifest->companion_count, 1);
	assert_int_equal(symlink("../outside", path), 0);
	scene->pointers[0] = "last";
	scene_fill(scene, "step-1/a", 500, 3);
	scene_push(scene, "step-1");
	assert_int_equal(scene->outcome.manifest->pointer_count, 0);
	free(path);
	scene_free(scene);
}

static struct surroundings *
fail_to_look(void *context, struct error *error)
{
	(void)context;
	error_set(error, ERROR_FAILED, CAUSE_OTHER, "dir", "cannot look");
	return NULL;
}

/* Without a look nothing that is valid is dropped. */
static void
test_blind(void **state)
{
	struct scene *scene = scene_new();
	struct checkpoint *checkpoint;
	struct error error = ERROR_INIT;
	struct truth *truth;
	char name[32];
	int i;

	(void)state;
	writer_free(scene->writer);
	scene->writer = scene_take_over(scene, 1);
	for (i = 0; i < 5; i++) {
		sprintf(name, "%d.pt", i);
		scene_fill(scene, name, 500, (uint64_t)i);
		checkpoint = scene_checkpoint(scene, name);
		scene->upload.look = fail_to_look;
		scene->upload.backend = &scene->script->backend;
		scene->upload.writer = scene->writer;
		scene->upload.folder = scene->fd;
		scene->upload.checkpoint = checkpoint;
		assert_ok(upload_run(&scene->upload, &scene->outcome, &error),
		    error);
		checkpoint_free(checkpoint);
	}
	truth = scene_truth(scene);
	assert_int_equal(truth->count, 5);
	truth_free(truth);
	scene_free(scene);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growing_log),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_changing),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_early_pointers),
		cmocka_unit_test(test_strange),
		cmocka_unit_test(test_blind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
