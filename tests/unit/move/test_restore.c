#include "unit/move/scene.h"

#include <ftw.h>
#include <sys/mount.h>
#include <sys/wait.h>

#define MIB ((size_t)1 << 20)

/* A directory checkpoint, a pointer to it and a log. */
static struct scene *
make_run(void)
{
	struct scene *scene = scene_new();
	char *path;

	scene_fill(scene, "step-5/model.bin", 30 * MIB + 17, 1);
	scene_fill(scene, "step-5/optimizer.bin", 20 * MIB, 2);
	scene_fill(scene, "step-5/state.json", 700, 3);
	scene_fill(scene, "step-5/sub/rng.pth", 14000, 4);
	path = scene_path(scene, NULL, "step-5/model.bin");
	assert_int_equal(chmod(path, 0600), 0);
	free(path);
	path = scene_path(scene, NULL, "last");
	assert_int_equal(symlink("step-5", path), 0);
	free(path);
	scene_write(scene, "latest", "step-5", 6);
	scene_fill(scene, "logs/events.0", 150000, 5);
	scene->pointers[0] = "last";
	scene->pointers[1] = "latest";
	scene->companions[0] = "logs/events.0";
	scene->upload.companion_limit = MIB;
	scene_push(scene, "step-5");
	script_reset(scene->script);
	return scene;
}

/* Nothing of ours is left in the target. */
static void
check_clean(const struct scene *scene)
{
	DIR *folder = opendir(scene->target);
	struct dirent *entry;

	assert_non_null(folder);
	while ((entry = readdir(folder)) != NULL)
		assert_null(strstr(entry->d_name, "ckptsync"));
	closedir(folder);
}

static void
put_target(const struct scene *scene, const char *path, const void *data,
    size_t length)
{
	char *whole = path_join(scene->target, path);

	kit_write_file(whole, data, length);
	free(whole);
}

static char *
target_path(const struct scene *scene, const char *path)
{
	char *whole = path_join(scene->target, path);

	assert_non_null(whole);
	return whole;
}

static void
test_whole(void **state)
{
	struct scene *scene = make_run();
	struct restore restore = { .pointers = true, .companions = true };
	struct error error = ERROR_INIT;

	(void)state;
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-5");
	scene_same(scene, "last");
	scene_same(scene, "latest");
	scene_same(scene, "logs/events.0");
	assert_false(script_fetched_twice(scene->script));
	assert_int_equal(restore.progress.done, restore.progress.total);
	check_clean(scene);
	/* Again: nothing to do. */
	script_reset(scene->script);
	assert_ok(scene_restore(scene, &restore, &error), error);
	assert_int_equal(scene->script->gets, 0);
	assert_int_equal(restore.progress.reused, restore.progress.total);
	scene_free(scene);
}

static void
test_plan(void **state)
{
	struct scene *scene = make_run();
	struct truth *truth = scene_truth(scene);
	const struct manifest *wanted = truth->valid[0];
	struct restore restore = {
		.backend = &scene->script->backend,
		.truth = truth,
		.folder = scene->target,
		.wanted = &wanted,
		.wanted_count = 1,
		.pointers = true,
		.companions = true
	};
	struct restore_plan plan;
	struct error error = ERROR_INIT;

	(void)state;
	assert_ok(restore_plan_make(&restore, &plan, &error), error);
	assert_int_equal(plan.count, 4);
	assert_string_equal(plan.steps[0].path, "step-5");
	assert_int_equal(plan.steps[0].action, RESTORE_NEW);
	assert_int_equal(plan.steps[0].size, 50 * MIB + 17 + 14700);
	assert_int_equal(plan.total_bytes, 50 * MIB + 17 + 14700 + 6 + 150000);
	assert_int_equal(plan.fetch_bytes, plan.total_bytes);
	assert_int_equal(plan.present_bytes, 0);
	restore_plan_free(&plan);
	/* A plan changes nothing. */
	assert_false(scene_has(scene->root, "target"));
	assert_int_equal(scene->script->gets, 0);
	truth_free(truth);
	scene_free(scene);
}

/* Cut at every chunk and started again: nothing is fetched twice. */
static void
test_cut_and_continued(void **state)
{
	struct scene *scene = make_run();
	struct restore restore = { .pointers = true, .companions = true,
		.in_flight = 2 };
	struct error error = ERROR_INIT;
	unsigned at, all = 2, rounds = 0;

	(void)state;
	for (at = 1; at <= all; at++) {
		kit_scratch_remove(scene->target);
		script_reset(scene->script);
		scene->script->fail_get = at;
		assert_int_equal(scene_restore(scene, &restore, &error), -1);
		assert_int_equal(error.cause, CAUSE_UNREACHABLE);
		assert_false(scene_has(scene->target, "step-5"));
		assert_false(scene_has(scene->target, "latest"));
		assert_int_equal(scene->script->fetched, at - 1);
		scene->script->fail_get = 0;
		assert_ok(scene_restore(scene, &restore, &error), error);
		assert_false(script_fetched_twice(scene->script));
		all = scene->script->fetched;
		scene_same(scene, "step-5");
		scene_same(scene, "latest");
		check_clean(scene);
		rounds++;
	}
	assert_true(rounds > 8);
	scene_free(scene);
}

/* ThreadSanitizer cannot follow threads that a child starts. */
#ifndef __SANITIZE_THREAD__
/* Every restart gets a little further, in a process that is killed. */
static void
test_killed(void **state)
{
	struct scene *scene = make_run();
	struct restore restore = { .pointers = true, .in_flight = 1 };
	struct error error = ERROR_INIT;
	unsigned at;
	int status;
	pid_t child;

	(void)state;
	for (at = 0; at < 3; at++) {
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			/* Threads of the store do not live in a child. */
			struct backend *file = backend_file_open(scene->store,
			    false, &error);
			struct script *script = script_new(file);

			scene->script = script;
			script->hook = (void (*)(void *))(uintptr_t)_exit;
			script->hook_context = NULL;
			script->hook_get = 3;
			(void)scene_restore(scene, &restore, &error);
			_exit(1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		assert_false(scene_has(scene->target, "step-5"));
	}
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-5");
	scene_free(scene);
}

#endif

/* A journal that claims too much, or is torn, costs fetching, not truth. */
static void
test_lying_journal(void **state)
{
	struct scene *scene = make_run();
	struct restore restore = { .in_flight = 1 };
	struct error error = ERROR_INIT;
	struct dirent *entry;
	char *journal = NULL, *model = NULL;
	DIR *folder;
	int fd;

	(void)state;
	scene->script->fail_get = 6;
	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	folder = opendir(scene->target);
	assert_non_null(folder);
	while ((entry = readdir(folder)) != NULL)
		if (strstr(entry->d_name, "ckptsync") != NULL) {
			assert_true(asprintf(&journal, "%s/%s/journal",
			    scene->target, entry->d_name) > 0);
			assert_true(asprintf(&model, "%s/%s/new/step-5/"
			    "model.bin", scene->target, entry->d_name) > 0);
		}
	closedir(folder);
	assert_non_null(journal);
	/* Everything written is zeroed behind the journal's back. */
	fd = open(model, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	fd = open(journal, O_WRONLY | O_APPEND);
	assert_true(fd >= 0);
	assert_int_equal(path_write_all(fd, "nonsense\n0123 4\nabc", 19), 0);
	close(fd);
	scene->script->fail_get = 0;
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-5");
	free(journal);
	free(model);
	scene_free(scene);
}

/* The store's files of chunks, largest first is not needed: any will do. */
static char *found_chunk;
static off_t found_size;

static int
visit_chunk(const char *path, const struct stat *status, int type,
    struct FTW *ftw)
{
	(void)ftw;
	if (type == FTW_F && strstr(path, "/chunks/") != NULL &&
	    status->st_size > found_size) {
		free(found_chunk);
		found_chunk = strdup(path);
		found_size = status->st_size;
	}
	return 0;
}

static void
find_chunk(const struct scene *scene)
{
	found_size = 0;
	assert_int_equal(nftw(scene->store, visit_chunk, 16, FTW_PHYS), 0);
	assert_non_null(found_chunk);
}

static void
test_damage(void **state)
{
	enum { FLIP, SHORT, LONG, GONE, EMPTY, COUNT } kind;
	struct scene *scene = make_run();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;
	char *data, byte;
	size_t length;
	int fd;

	(void)state;
	find_chunk(scene);
	data = kit_read_file(found_chunk, &length);
	for (kind = FLIP; kind < COUNT; kind++) {
		chmod(found_chunk, 0600);
		fd = open(found_chunk, O_RDWR);
		assert_true(fd >= 0);
		byte = (char)(data[length / 2] ^ 1);
		if (kind == FLIP)
			assert_int_equal(pwrite(fd, &byte, 1,
			    (off_t)length / 2), 1);
		else if (kind == SHORT)
			assert_int_equal(ftruncate(fd, (off_t)length - 1), 0);
		else if (kind == LONG)
			assert_int_equal(ftruncate(fd, (off_t)length + 1), 0);
		else if (kind == EMPTY)
			assert_int_equal(ftruncate(fd, 0), 0);
		else
			assert_int_equal(unlink(found_chunk), 0);
		close(fd);
		assert_int_equal(scene_restore(scene, &restore, &error), -1);
		assert_int_equal(error.class, ERROR_DAMAGED);
		assert_non_null(strstr(error.message, "step-5"));
		assert_non_null(strstr(error.object,
		    strrchr(found_chunk, '/') + 1));
		assert_non_null(strstr(error.cure, "--fallback"));
		assert_false(scene_has(scene->target, "step-5"));
		kit_write_file(found_chunk, data, length);
	}
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-5");
	free(data);
	free(found_chunk);
	found_chunk = NULL;
	scene_free(scene);
}

/* A passing fault on the way: the chunk is asked for once more. */
static void
heal(void *context)
{
	struct scene *scene = context;
	char byte;
	int fd = open(found_chunk, O_RDWR);

	(void)scene;
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, 100), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, 100), 1);
	close(fd);
}

static void
test_healed(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;

	(void)state;
	scene_fill(scene, "last.pt", 500000, 1);
	scene_push(scene, "last.pt");
	find_chunk(scene);
	chmod(found_chunk, 0600);
	heal(NULL);
	scene->script->hook = heal;
	scene->script->hook_get = 2;
	assert_ok(scene_restore(scene, &restore, &error), error);
	assert_int_equal(scene->script->gets, 2);
	scene_same(scene, "last.pt");
	free(found_chunk);
	found_chunk = NULL;
	scene_free(scene);
}

static void *
cancel_soon(void *context)
{
	struct scene *scene = ((void **)context)[0];
	struct restore *restore = ((void **)context)[1];
	unsigned held = 0;

	while (held < 2) {
		pthread_mutex_lock(&scene->script->mutex);
		held = scene->script->in_flight;
		pthread_mutex_unlock(&scene->script->mutex);
	}
	restore->cancel = true;
	return NULL;
}

static void
test_cancel(void **state)
{
	struct scene *scene = make_run();
	struct restore restore = { .in_flight = 2 };
	struct error error = ERROR_INIT;
	void *both[] = { scene, &restore };
	pthread_t thread;

	(void)state;
	scene->script->hold = true;
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, both), 0);
	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	pthread_join(thread, NULL);
	assert_int_equal(error.cause, CAUSE_CANCELLED);
	assert_int_equal(scene->script->in_flight, 0);
	scene->script->hold = false;
	restore.cancel = false;
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-5");
	scene_free(scene);
}

/* Of the wanted files only the missing bytes are fetched. */
static void
test_local_bytes(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;
	char *data = malloc(40 * MIB), *path;

	(void)state;
	assert_non_null(data);
	kit_random(data, 40 * MIB, 1);
	scene_write(scene, "last.bin", data, 40 * MIB);
	scene_push(scene, "last.bin");
	assert_ok(scene_restore(scene, &restore, &error), error);
	/* The next version differs at its end and is longer. */
	kit_random(data + 30 * MIB, 10 * MIB, 2);
	scene_write(scene, "last.bin", data, 40 * MIB);
	scene_push(scene, "last.bin");
	script_reset(scene->script);
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "last.bin");
	assert_true(scene->script->get_bytes < 20 * MIB);
	assert_true(restore.progress.reused > 20 * MIB);
	/* Another checkpoint with the same bytes is copied from it. */
	scene_write(scene, "best.bin", data, 40 * MIB);
	scene_push(scene, "best.bin");
	script_reset(scene->script);
	{
		struct truth *truth = scene_truth(scene);
		const struct manifest *wanted[2] = {
			truth->valid[1], truth->valid[0]
		};

		restore.wanted = wanted;
		restore.wanted_count = 2;
		assert_ok(scene_restore(scene, &restore, &error), error);
		truth_free(truth);
	}
	assert_int_equal(scene->script->gets, 0);
	scene_same(scene, "best.bin");
	path = target_path(scene, "best.bin");
	free(path);
	free(data);
	scene_free(scene);
}

static void
expect_exists(struct scene *scene, const char *object)
{
	struct restore restore = { .pointers = true };
	struct error error = ERROR_INIT;
	unsigned before = scene->script->gets;

	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	assert_int_equal(error.cause, CAUSE_EXISTS);
	assert_string_equal(error.object, object);
	assert_non_null(strstr(error.cure, "--force"));
	assert_int_equal(scene->script->gets, before);
}

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

/* Two at a time in one directory. */
static void
lock_out(void *context)
{
	struct scene *scene = context;
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;

	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	assert_int_equal(error.cause, CAUSE_EXISTS);
	assert_non_null(strstr(error.message, "another restore"));
}

static void
test_two_restores(void **state)
{
	struct scene *scene = make_run();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;

	(void)state;
	scene->script->hook = lock_out;
	scene->script->hook_context = scene;
	scene->script->hook_get = 1;
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-5");
	scene_free(scene);
}

/* What cut restores of other checkpoints left behind is removed. */
static void
test_leftovers(void **state)
{
	struct scene *scene = make_run();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;

	(void)state;
	scene->script->fail_get = 3;
	assert_int_equal(scene_restore(scene, &restore, &error), -1);
	scene->script->fail_get = 0;
	scene_fill(scene, "last.bin", 1000, 2);
	scene_push(scene, "last.bin");
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "last.bin");
	check_clean(scene);
	scene_free(scene);
}

/* Between plan and run the staging goes away, or changes. */
static void
test_stale_plan(void **state)
{
	struct scene *scene = make_run();
	struct truth *truth = scene_truth(scene);
	const struct manifest *wanted = truth->valid[0];
	struct restore restore = {
		.backend = &scene->script->backend,
		.truth = truth,
		.folder = scene->target,
		.wanted = &wanted,
		.wanted_count = 1,
		.in_flight = 1
	};
	struct restore_plan plan;
	struct error error = ERROR_INIT;

	(void)state;
	scene->script->fail_get = 6;
	assert_ok(restore_plan_make(&restore, &plan, &error), error);
	assert_int_equal(restore_run(&restore, &plan, &error), -1);
	restore_plan_free(&plan);
	scene->script->fail_get = 0;
	assert_ok(restore_plan_make(&restore, &plan, &error), error);
	assert_true(plan.present_bytes > 5 * MIB);
	assert_true(plan.fetch_bytes < plan.total_bytes);
	kit_scratch_remove(scene->target);
	assert_ok(restore_run(&restore, &plan, &error), error);
	scene_same(scene, "step-5");
	/* The same plan once more: all is in place. */
	script_reset(scene->script);
	assert_ok(restore_run(&restore, &plan, &error), error);
	assert_int_equal(scene->script->gets, 0);
	scene_same(scene, "step-5");
	restore_plan_free(&plan);
	truth_free(truth);
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
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_cut_and_continued),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test(test_killed),
#endif
		cmocka_unit_test(test_lying_journal),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_healed),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_local_bytes),
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
		cmocka_unit_test(test_two_restores),
		cmocka_unit_test(test_leftovers),
		cmocka_unit_test(test_stale_plan),
		cmocka_unit_test(test_read_only_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
