#include "unit/move/scene.h"

#include "move/match.h"

#define MIB ((size_t)1 << 20)

static size_t
match(struct scene *scene, const struct truth *truth, const char *name)
{
	struct checkpoint *checkpoint = scene_checkpoint(scene, name);
	struct error error = ERROR_INIT;
	size_t which;

	assert_ok(match_checkpoint(scene->fd, checkpoint, truth->valid,
	    truth->count, &which, &error), error);
	checkpoint_free(checkpoint);
	return which;
}

static void
test_checkpoint(void **state)
{
	struct scene *scene = scene_new();
	struct truth *truth;
	char *path;

	(void)state;
	scene_fill(scene, "step-1/a", 10 * MIB, 1);
	scene_fill(scene, "step-1/b", 3000, 2);
	scene_fill(scene, "step-1/empty", 0, 2);
	scene_push(scene, "step-1");
	scene_fill(scene, "step-1/b", 3000, 3);
	scene_push(scene, "step-1");
	scene_fill(scene, "other", 3000, 3);
	scene_push(scene, "other");
	truth = scene_truth(scene);
	assert_int_equal(truth->count, 3);
	assert_int_equal(match(scene, truth, "other"), 0);
	assert_int_equal(match(scene, truth, "step-1"), 1);
	scene_fill(scene, "step-1/b", 3000, 2);
	assert_int_equal(match(scene, truth, "step-1"), 2);
	/* Other bytes, another size, another name, one file more. */
	scene_fill(scene, "step-1/b", 3000, 4);
	assert_true(match(scene, truth, "step-1") == SIZE_MAX);
	scene_fill(scene, "step-1/b", 3001, 2);
	assert_true(match(scene, truth, "step-1") == SIZE_MAX);
	scene_fill(scene, "step-1/b", 3000, 2);
	scene_fill(scene, "step-1/c", 0, 2);
	assert_true(match(scene, truth, "step-1") == SIZE_MAX);
	path = scene_path(scene, NULL, "step-1/c");
	assert_int_equal(unlink(path), 0);
	free(path);
	assert_int_equal(match(scene, truth, "step-1"), 2);
	assert_int_equal(renameat(scene->fd, "step-1", scene->fd, "step-2"),
	    0);
	assert_true(match(scene, truth, "step-2") == SIZE_MAX);
	truth_free(truth);
	scene_free(scene);
}

static void
test_file(void **state)
{
	struct scene *scene = scene_new();
	const struct manifest *manifest;
	struct error error = ERROR_INIT;
	char *path = scene_path(scene, NULL, "a");
	int fd;

	(void)state;
	scene_fill(scene, "a", 20 * MIB + 1, 1);
	scene_push(scene, "a");
	manifest = scene->outcome.manifest;
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(match_file(fd, manifest, &manifest->entries[0],
	    &error), 1);
	/* The last byte counts. */
	assert_int_equal(pwrite(fd, "", 1, 20 * MIB), 1);
	assert_int_equal(match_file(fd, manifest, &manifest->entries[0],
	    &error), 0);
	assert_int_equal(ftruncate(fd, 20 * MIB), 0);
	assert_int_equal(match_file(fd, manifest, &manifest->entries[0],
	    &error), 0);
	close(fd);
	/* Not a file that can be read. */
	fd = open(scene->folder, O_RDONLY | O_DIRECTORY);
	assert_int_equal(match_file(fd, manifest, &manifest->entries[0],
	    &error), 0);
	close(fd);
	assert_int_equal(match_file(-1, manifest, &manifest->entries[0],
	    &error), -1);
	free(path);
	scene_free(scene);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checkpoint),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
