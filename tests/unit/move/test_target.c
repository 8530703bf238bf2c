#include "unit/move/run.h"

#include <sys/mount.h>

static void
test_exists(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { .force = true };
	struct error error = ERROR_INIT;
	char *path;

	(void)state;
	scene_fill(scene, "last.bin", 100000, 1);
	scene_push(scene, "last.bin");
	script_reset(scene->script);
	/* Complete as far as can be told, and unknown. */
	put_target(scene, "last.bin", "something precious", 18);
	expect_exists(scene, "last.bin");
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "last.bin");
	/* Empty. */
	put_target(scene, "last.bin", "", 0);
	restore.force = false;
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "last.bin");
	/* Known: an older version. */
	scene_fill(scene, "last.bin", 100000, 2);
	scene_push(scene, "last.bin");
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "last.bin");
	/* A directory in its place. */
	script_reset(scene->script);
	path = target_path(scene, "last.bin");
	assert_int_equal(unlink(path), 0);
	put_target(scene, "last.bin/inside", "x", 1);
	expect_exists(scene, "last.bin");
	restore.force = true;
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "last.bin");
	check_clean(scene);
	free(path);
	scene_free(scene);
}

/* A torn file of a known format may go. */
static void
test_torn_is_replaced(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;

	(void)state;
	scene_fill(scene, "m.safetensors", 100000, 1);
	scene_push(scene, "m.safetensors");
	put_target(scene, "m.safetensors", "\xff\0\0\0\0\0\0\0{", 9);
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "m.safetensors");
	scene_free(scene);
}

/* A directory becomes exactly what the manifest says. */
static void
test_exchange(void **state)
{
	struct scene *scene = make_run();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;
	char *path;

	(void)state;
	assert_ok(scene_restore(scene, &restore, &error), error);
	script_reset(scene->script);
	/* A torn leftover, a missing file, and an empty folder more. */
	put_target(scene, "step-5/extra.safetensors", "\xff", 1);
	path = target_path(scene, "step-5/state.json");
	assert_int_equal(unlink(path), 0);
	free(path);
	path = target_path(scene, "step-5/more");
	assert_int_equal(mkdir(path, 0700), 0);
	free(path);
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-5");
	check_clean(scene);
	/* Only the small chunk of the missing file came over the wire. */
	assert_true(scene->script->get_bytes <= MIB);
	assert_int_equal(scene->script->gets, 1);
	/* Something unknown and complete in it is not thrown away. */
	script_reset(scene->script);
	put_target(scene, "step-5/notes.txt", "mine", 4);
	expect_exists(scene, "step-5/notes.txt");
	restore.force = true;
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-5");
	scene_free(scene);
}

static void
test_links(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;
	char *outside = path_join(scene->root, "outside"), *path, *data;
	size_t length;

	(void)state;
	assert_int_equal(mkdir(outside, 0700), 0);
	assert_int_equal(mkdir(scene->target, 0700), 0);
	scene_fill(scene, "runs/a/last.bin", 100000, 1);
	scene_push(scene, "runs/a/last.bin");
	/* A link on the way would lead out. */
	path = target_path(scene, "runs");
	assert_int_equal(symlink(outside, path), 0);
	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	assert_int_equal(error.cause, CAUSE_EXISTS);
	assert_string_equal(error.object, "runs/a/last.bin");
	assert_non_null(strstr(error.message, "link"));
	restore.force = true;
	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	assert_false(scene_has(outside, "a"));
	assert_int_equal(unlink(path), 0);
	free(path);
	/* A link in its place is replaced, not followed. */
	restore.force = false;
	path = target_path(scene, "runs/a");
	assert_int_equal(path_make_folders(path, 0700, &error), 0);
	free(path);
	path = path_join(outside, "victim");
	kit_write_file(path, "safe", 4);
	free(path);
	path = target_path(scene, "runs/a/last.bin");
	assert_int_equal(symlink("../../../outside/victim", path), 0);
	free(path);
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "runs/a/last.bin");
	path = path_join(outside, "victim");
	data = kit_read_file(path, &length);
	assert_string_equal(data, "safe");
	free(data);
	free(path);
	free(outside);
	scene_free(scene);
}

/* A file where a directory belongs. */
static void
test_file_on_the_way(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;

	(void)state;
	scene_fill(scene, "runs/last.bin", 1000, 1);
	scene_push(scene, "runs/last.bin");
	put_target(scene, "runs", "a file", 6);
	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	assert_int_equal(error.cause, CAUSE_EXISTS);
	assert_string_equal(error.object, "runs/last.bin");
	scene_free(scene);
}

static void
test_pointers(void **state)
{
	struct scene *scene = make_run();
	struct restore restore = { .pointers = true, .keep_pointers = true };
	struct error error = ERROR_INIT;
	char *path, *data;
	size_t length;

	(void)state;
	put_target(scene, "latest", "step-4", 6);
	assert_ok(scene_restore(scene, &restore, &error), error);
	path = target_path(scene, "latest");
	data = kit_read_file(path, &length);
	assert_string_equal(data, "step-4");
	free(data);
	scene_same(scene, "last");
	/* One that is there is replaced otherwise, though nobody knows it. */
	restore.keep_pointers = false;
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "latest");
	/* But not something large under its name. */
	data = calloc(1, MIB);
	put_target(scene, "latest", data, MIB);
	expect_exists(scene, "latest");
	free(data);
	free(path);
	scene_free(scene);
}

static void
test_companions(void **state)
{
	struct scene *scene = make_run();
	struct restore restore = { .companions = true };
	struct error error = ERROR_INIT;
	char *path = target_path(scene, "logs/events.0"), *data;
	size_t length;

	(void)state;
	/* A longer one stays. */
	data = calloc(1, 200000);
	put_target(scene, "logs/events.0", data, 200000);
	assert_ok(scene_restore(scene, &restore, &error), error);
	free(data);
	data = kit_read_file(path, &length);
	assert_int_equal(length, 200000);
	free(data);
	/* One of the same length too. */
	data = calloc(1, 150000);
	put_target(scene, "logs/events.0", data, 150000);
	assert_ok(scene_restore(scene, &restore, &error), error);
	free(data);
	data = kit_read_file(path, &length);
	assert_int_equal(data[1000], 0);
	assert_int_equal(data[2000], 0);
	free(data);
	/* A shorter one is replaced. */
	put_target(scene, "logs/events.0", "short", 5);
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "logs/events.0");
	free(path);
	scene_free(scene);
}

static void
test_globs(void **state)
{
	const char *include[] = { "*.json", "rng.pth" };
	const char *exclude[] = { "step-5/sub/" };
	struct scene *scene = make_run();
	struct restore restore = { .pointers = true, .companions = true,
		.include = include, .include_count = 2 };
	struct error error = ERROR_INIT;

	(void)state;
	put_target(scene, "step-5/other", "stays", 5);
	assert_ok(scene_restore(scene, &restore, &error), error);
	assert_true(scene_has(scene->target, "step-5/state.json"));
	assert_true(scene_has(scene->target, "step-5/sub/rng.pth"));
	assert_true(scene_has(scene->target, "step-5/other"));
	assert_false(scene_has(scene->target, "step-5/model.bin"));
	assert_false(scene_has(scene->target, "latest"));
	assert_true(scene->script->get_bytes <= MIB);
	assert_int_equal(scene->script->gets, 1);
	restore.include_count = 1;
	restore.exclude = exclude;
	restore.exclude_count = 1;
	kit_scratch_remove(scene->target);
	assert_ok(scene_restore(scene, &restore, &error), error);
	assert_true(scene_has(scene->target, "step-5/state.json"));
	assert_false(scene_has(scene->target, "step-5/sub"));
	check_clean(scene);
	scene_free(scene);
}

/* Little of a large shared chunk: only that is fetched. */
static void
test_ranges(void **state)
{
	const char *include[] = { "part-010", "part-011", "part-090" };
	struct scene *scene = scene_new();
	struct restore restore = { .include = include, .include_count = 3 };
	struct error error = ERROR_INIT;
	char name[64];
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		sprintf(name, "step-1/part-%03d", i);
		scene_fill(scene, name, 20000, (uint64_t)i);
	}
	scene_push(scene, "step-1");
	script_reset(scene->script);
	assert_ok(scene_restore(scene, &restore, &error), error);
	assert_int_equal(scene->script->gets, 2);
	assert_int_equal(scene->script->get_bytes, 60000);
	scene_same(scene, "step-1/part-010");
	scene_same(scene, "step-1/part-090");
	/* Damage in such a range is found too. */
	find_chunk(scene);
	chmod(found_chunk, 0600);
	i = open(found_chunk, O_RDWR);
	assert_true(i >= 0);
	assert_int_equal(pwrite(i, "damaged", 7, 20000 * 11 + 5), 7);
	close(i);
	kit_scratch_remove(scene->target);
	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	assert_int_equal(error.class, ERROR_DAMAGED);
	free(found_chunk);
	found_chunk = NULL;
	scene_free(scene);
}

static void
test_versions(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;
	const struct manifest *wanted[3];
	struct truth *truth;

	(void)state;
	scene_fill(scene, "last.bin", 1000, 1);
	scene_push(scene, "last.bin");
	scene_fill(scene, "last.bin", 1000, 2);
	scene_push(scene, "last.bin");
	scene_fill(scene, "other.bin", 1000, 3);
	scene_push(scene, "other.bin");
	truth = scene_truth(scene);
	assert_int_equal(truth->count, 3);
	/* Both versions of a name: the newer gets it. */
	wanted[0] = truth->valid[1];
	wanted[1] = truth->valid[2];
	wanted[2] = truth->valid[0];
	restore.wanted = wanted;
	restore.wanted_count = 3;
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "last.bin");
	scene_same(scene, "other.bin");
	truth_free(truth);
	scene_free(scene);
}

static void
test_disk_full(void **state)
{
	struct scene *scene = make_run();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;

	(void)state;
	assert_int_equal(mkdir(scene->target, 0700), 0);
	if (mount("none", scene->target, "tmpfs", 0, "size=40m") == -1) {
		print_message("no mounting here\n");
		scene_free(scene);
		skip();
	}
	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	assert_int_equal(error.cause, CAUSE_NO_SPACE);
	assert_non_null(strstr(error.message, "free"));
	assert_int_equal(scene->script->gets, 0);
	assert_int_equal(umount(scene->target), 0);
	/* A target that is a mount point of its own is fine otherwise. */
	assert_int_equal(mount("none", scene->target, "tmpfs", 0,
	    "size=80m"), 0);
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-5");
	assert_int_equal(umount(scene->target), 0);
	/* A mount point inside it cannot be exchanged. */
	put_target(scene, "step-5/x", "", 0);
	{
		char *inner = target_path(scene, "step-5");

		assert_int_equal(mount("none", inner, "tmpfs", 0, "size=80m"),
		    0);
		restore.force = true;
		assert_int_equal(scene_restore(scene, &restore, &error), -1);
		assert_int_equal(error.cause, CAUSE_UNSUPPORTED);
		assert_string_equal(error.object, "step-5");
		assert_non_null(strstr(error.message, "mount point"));
		assert_int_equal(umount(inner), 0);
		free(inner);
	}
	/* Read-only. */
	assert_int_equal(mount("none", scene->target, "tmpfs", MS_RDONLY,
	    "size=80m"), 0);
	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	assert_int_equal(error.cause, CAUSE_DENIED);
	assert_string_equal(error.object, scene->target);
	assert_int_equal(umount(scene->target), 0);
	scene_free(scene);
}

/* Modes that forbid their owner to write. */
static void
test_read_only_modes(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { .in_flight = 1 };
	struct error error = ERROR_INIT;
	static const char *const names[] = {
		"step-1/sub/a", "step-1/b", "step-1/sub", "step-1" };
	char *path;
	size_t i;

	(void)state;
	scene_fill(scene, "step-1/sub/a", 10 * MIB, 1);
	scene_fill(scene, "step-1/b", 10 * MIB, 2);
	for (i = 0; i < 4; i++) {
		path = scene_path(scene, NULL, names[i]);
		assert_int_equal(chmod(path, i < 2 ? 0444 : 0555), 0);
		free(path);
	}
	scene_push(scene, "step-1");
	script_reset(scene->script);
	scene->script->fail_get = 3;
	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	scene->script->fail_get = 0;
	assert_ok(scene_restore(scene, &restore, &error), error);
	assert_false(script_fetched_twice(scene->script));
	scene_same(scene, "step-1");
	for (i = 4; i-- > 2; ) {
		path = scene_path(scene, NULL, names[i]);
		assert_int_equal(chmod(path, 0700), 0);
		free(path);
		path = target_path(scene, names[i]);
		assert_int_equal(chmod(path, 0700), 0);
		free(path);
	}
	scene_free(scene);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exists),
		cmocka_unit_test(test_torn_is_replaced),
		cmocka_unit_test(test_exchange),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_file_on_the_way),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_companions),
		cmocka_unit_test(test_globs),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_read_only_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
