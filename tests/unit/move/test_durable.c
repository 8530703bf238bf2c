#include "unit/move/run.h"

#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

/*
 * How often a restore waits for the disk, and when.  The functions below are
 * taken instead of those of libc.  A restore waits in the thread that runs it;
 * the writer and the store have others.
 */

#define FILES 300

static _Thread_local struct scene *watched;
static _Thread_local unsigned fsyncs, flushes;
/* Something was in place before its data was durable. */
static _Thread_local bool early;

int
fsync(int fd)
{
	fsyncs++;
	return (int)syscall(SYS_fsync, fd);
}

int
syncfs(int fd)
{
	if (flushes++ == 0 && watched != NULL)
		early = scene_has(watched->target, "step-7") ||
		    scene_has(watched->target, "one.txt");
	return (int)syscall(SYS_syncfs, fd);
}

/* A checkpoint of many small files, with companions in two folders. */
static struct scene *
make_many(void)
{
	struct scene *scene = scene_new();
	char path[64];

	for (unsigned i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "step-7/part-%u.bin", i);
		scene_fill(scene, path, 100, i);
	}
	scene_fill(scene, "one.txt", 10, 1);
	scene_fill(scene, "logs/a/b.txt", 10, 2);
	scene_fill(scene, "logs/a/c.txt", 10, 3);
	scene->companions[0] = "one.txt";
	scene->companions[1] = "logs/a/b.txt";
	scene->companions[2] = "logs/a/c.txt";
	scene->upload.companion_limit = MIB;
	scene_push(scene, "step-7");
	return scene;
}

static void
restore_counting(struct scene *scene)
{
	struct restore restore = { .pointers = true, .companions = true };
	struct error error = ERROR_INIT;

	watched = scene;
	fsyncs = flushes = 0;
	assert_ok(scene_restore(scene, &restore, &error), error);
	watched = NULL;
}

static bool
can_flush(const struct scene *scene)
{
	struct statfs status;

	assert_int_equal(statfs(scene->root, &status), 0);
	return status.f_type == EXT4_SUPER_MAGIC ||
	    status.f_type == TMPFS_MAGIC ||
	    (unsigned long)status.f_type == XFS_SUPER_MAGIC ||
	    (unsigned long)status.f_type == BTRFS_SUPER_MAGIC;
}

static void
many_files_are_flushed_at_once(void **state)
{
	struct scene *scene = make_many();

	(void)state;
	if (!can_flush(scene))
		skip();
	restore_counting(scene);
	scene_same(scene, "step-7/part-299.bin");
	scene_same(scene, "logs/a/b.txt");
	assert_int_equal(flushes, 1);
	assert_false(early);
	/* Each folder that changed: "." in two phases, logs, logs/a. */
	assert_int_equal(fsyncs, 4);
	scene_free(scene);
}

/* Of few, only they are waited for, not all that others wrote. */
static void
few_files_are_synced_one_by_one(void **state)
{
	struct scene *scene = make_run();

	(void)state;
	restore_counting(scene);
	assert_int_equal(flushes, 0);
	/* Six files, their two folders, and "." in three phases, logs. */
	assert_int_equal(fsyncs, 6 + 2 + 3 + 1);
	scene_free(scene);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_files_are_flushed_at_once),
		cmocka_unit_test(few_files_are_synced_one_by_one)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
