#include "scene.h"

#include <poll.h>

#include "watch/notify.h"
#include "watch/tree.h"

static struct notify *
start(void)
{
	struct error error = ERROR_INIT;
	struct notify *notify = notify_new(&error);

	assert_non_null(notify);
	return notify;
}

/* Walk ${folder} as a scan does. */
static void
walk(struct notify *notify, const char *folder)
{
	struct view_guide guide = { .enter = notify_enter, .context = notify };
	static const struct view_options options;
	struct error error = ERROR_INIT;
	struct tree *tree;

	notify_begin(notify);
	tree = tree_scan(folder, &options, &guide, &error);
	assert_non_null(tree);
	tree_free(tree);
	assert_int_equal(notify_end(notify), 0);
}

static bool
is_ready(struct notify *notify)
{
	struct pollfd ready = { .fd = notify_fd(notify), .events = POLLIN };

	return poll(&ready, 1, 0) == 1;
}

static void
hints_tell_writing_from_closing(void **state)
{
	struct notify *notify = start();
	char *folder = kit_scratch();
	struct scene_path path;
	int fd;

	(void)state;
	walk(notify, folder);
	assert_false(is_ready(notify));
	fd = open(scene_in(&path, folder, "a"), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(notify_read(notify), NOTIFY_CHANGED);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(notify_read(notify), NOTIFY_MODIFIED);
	close(fd);
	assert_int_equal(notify_read(notify), NOTIFY_CHANGED);
	fd = open(path.text, O_RDONLY);
	close(fd);
	assert_int_equal(notify_read(notify), 0);
	notify_free(notify);
	scene_end(folder);
}

static void
watch_follows_a_folder_that_moves(void **state)
{
	struct notify *notify = start();
	char *folder = kit_scratch(), *elsewhere = kit_scratch();
	struct scene_path a, b;

	(void)state;
	scene_folder(folder, "run1");
	walk(notify, folder);
	scene_rename(folder, "run1", "run2");
	assert_int_equal(notify_read(notify), NOTIFY_CHANGED);
	walk(notify, folder);
	notify_read(notify);
	scene_text(folder, "run2/x", "x");
	assert_true(notify_read(notify) & NOTIFY_CHANGED);

	/* Out of the directory it is no concern of ours. */
	assert_int_equal(rename(scene_in(&a, folder, "run2"),
	    scene_in(&b, elsewhere, "run2")), 0);
	assert_true(notify_read(notify) & NOTIFY_CHANGED);
	walk(notify, folder);
	notify_read(notify);
	scene_text(elsewhere, "run2/y", "y");
	assert_int_equal(notify_read(notify), 0);
	notify_free(notify);
	scene_end(folder);
	scene_end(elsewhere);
}

static void
folder_that_is_made_anew_is_watched_anew(void **state)
{
	struct notify *notify = start();
	char *folder = kit_scratch();
	struct scene_path path;

	(void)state;
	for (int i = 0; i < 20; i++) {
		scene_folder(folder, "run");
		walk(notify, folder);
		notify_read(notify);
		scene_text(folder, "run/x", "x");
		assert_true(notify_read(notify) & NOTIFY_CHANGED);
		assert_int_equal(unlink(scene_in(&path, folder, "run/x")), 0);
		assert_int_equal(rmdir(scene_in(&path, folder, "run")), 0);
		assert_true(notify_read(notify) & NOTIFY_CHANGED);
	}
	notify_free(notify);
	scene_end(folder);
}

static void
missing_folder_is_awaited_part_by_part(void **state)
{
	struct notify *notify = start();
	char *folder = kit_scratch();
	struct scene_path path;

	(void)state;
	scene_in(&path, folder, "a/b/c");
	assert_true(notify_await(notify, path.text));
	assert_false(notify_await(notify, path.text));
	scene_folder(folder, "a");
	assert_int_equal(notify_read(notify), NOTIFY_CHANGED);
	assert_true(notify_await(notify, path.text));
	scene_folder(folder, "other");
	assert_int_equal(notify_read(notify), 0);
	scene_folder(folder, "a/b");
	assert_int_equal(notify_read(notify), NOTIFY_CHANGED);
	assert_true(notify_await(notify, path.text));
	scene_folder(folder, "a/b/c");
	assert_int_equal(notify_read(notify), NOTIFY_CHANGED);
	walk(notify, path.text);
	notify_read(notify);
	scene_text(folder, "a/b/x", "x");
	assert_int_equal(notify_read(notify), 0);
	scene_text(folder, "a/b/c/x", "x");
	assert_true(notify_read(notify) & NOTIFY_CHANGED);
	notify_free(notify);
	scene_end(folder);
}

/* Change the times of two files in turn: such hints do not merge. */
static void
flood(const char *folder, int count)
{
	struct scene_path a, b;

	scene_in(&a, folder, "a");
	scene_in(&b, folder, "b");
	for (int i = 0; i < count; i++) {
		assert_int_equal(utimensat(AT_FDCWD, a.text, NULL, 0), 0);
		assert_int_equal(utimensat(AT_FDCWD, b.text, NULL, 0), 0);
	}
}

static int
queue_limit(void)
{
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	int limit = 0;

	if (file != NULL) {
		if (fscanf(file, "%d", &limit) != 1)
			limit = 0;
		fclose(file);
	}
	return limit;
}

static void
overflow_is_told(void **state)
{
	struct notify *notify = start();
	char *folder = kit_scratch();
	int limit = queue_limit();

	(void)state;
	if (limit <= 0 || limit > 200000) {
		notify_free(notify);
		scene_end(folder);
		skip();
	}
	scene_text(folder, "a", "x");
	scene_text(folder, "b", "x");
	walk(notify, folder);
	flood(folder, limit);
	assert_true(notify_drain(notify) & NOTIFY_OVERFLOW);
	notify_read(notify);
	walk(notify, folder);
	scene_text(folder, "c", "x");
	assert_int_equal(notify_drain(notify) & (NOTIFY_CHANGED |
	    NOTIFY_OVERFLOW), NOTIFY_CHANGED);
	notify_free(notify);
	scene_end(folder);
}

/* Draining takes what was there, and leaves nothing in the directory. */
static void
drain_takes_all_and_writes_nothing_there(void **state)
{
	struct notify *notify = start();
	char *folder = kit_scratch();
	struct stat before, after;

	(void)state;
	scene_text(folder, "a", "x");
	scene_text(folder, "b", "x");
	walk(notify, folder);
	flood(folder, 2000);
	assert_int_equal(stat(folder, &before), 0);
	assert_int_equal(notify_drain(notify), NOTIFY_CHANGED);
	assert_false(is_ready(notify));
	assert_int_equal(notify_drain(notify), 0);
	assert_int_equal(stat(folder, &after), 0);
	assert_memory_equal(&before.st_ctim, &after.st_ctim,
	    sizeof(before.st_ctim));
	notify_free(notify);
	notify_free(NULL);
	scene_end(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hints_tell_writing_from_closing),
		cmocka_unit_test(watch_follows_a_folder_that_moves),
		cmocka_unit_test(folder_that_is_made_anew_is_watched_anew),
		cmocka_unit_test(missing_folder_is_awaited_part_by_part),
		cmocka_unit_test(overflow_is_told),
		cmocka_unit_test(drain_takes_all_and_writes_nothing_there)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
