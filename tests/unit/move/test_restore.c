#include "unit/move/run.h"

#include <sys/wait.h>

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
		cmocka_unit_test(test_two_restores),
		cmocka_unit_test(test_leftovers),
		cmocka_unit_test(test_stale_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
