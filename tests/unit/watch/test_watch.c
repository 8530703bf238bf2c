#include "audience.h"

#include <dirent.h>

#include "base/source.h"

#define TORCH "torch-2.8.pt"
#define NOTHING (-1)

static void
first_scan_tells_in_the_order_of_completion(void **state)
{
	static const char *const names[] = { "b.pt", "c.pt", "a.pt" };
	char *folder = kit_scratch();
	struct scene_path path;
	struct watch *watch;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct timespec times[2] = { { .tv_sec = 1700000000 + i },
		    { .tv_sec = 1700000000 + i } };

		scene_write(folder, names[i], TORCH);
		assert_int_equal(utimensat(AT_FDCWD, scene_in(&path, folder,
		    names[i]), times, 0), 0);
	}
	watch = audience_start(folder, NULL);
	for (int i = 0; i < 3; i++) {
		struct watch_event *event = audience_await(watch,
		    WATCH_COMPLETE, NULL, NOTHING);

		assert_string_equal(event->checkpoint->name, names[i]);
		assert_int_equal(event->checkpoint->order, i + 1);
		watch_event_free(event);
	}
	watch_free(watch);
	watch_free(NULL);
	scene_end(folder);
}

static void
scan_tells_all_that_was_complete(void **state)
{
	char *folder = kit_scratch(), name[32];
	struct watch *watch = audience_start(folder, NULL);

	(void)state;
	audience_scan(watch, WATCH_NOTE, NULL);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "epoch_%d.pth", i);
		scene_write(folder, name, TORCH);
		assert_int_equal(audience_scan(watch, WATCH_COMPLETE, name), 1);
		assert_int_equal(audience_scan(watch, WATCH_COMPLETE, name), 0);
	}
	watch_free(watch);
	scene_end(folder);
}

static void
directory_may_come_later(void **state)
{
	char *folder = kit_scratch();
	struct scene_path path;
	struct watch *watch = audience_start(
	    scene_in(&path, folder, "a/b/checkpoints"), NULL);
	struct watch_event *event;

	(void)state;
	event = audience_await(watch, WATCH_NOTE, NULL, WATCH_COMPLETE);
	assert_int_equal(event->note.class, ERROR_NONE);
	assert_string_equal(event->note.object, path.text);
	assert_non_null(strstr(event->note.message, "not there yet"));
	watch_event_free(event);
	scene_write(folder, "a/b/checkpoints/last.pt", TORCH);
	audience_hear(watch, WATCH_COMPLETE, "last.pt", WATCH_TORN);

	/* It goes, and comes again. */
	scene_rename(folder, "a/b/checkpoints", "a/b/old");
	audience_hear(watch, WATCH_NOTE, NULL, WATCH_COMPLETE);
	scene_write(folder, "a/b/checkpoints/last.pt", TORCH);
	audience_hear(watch, WATCH_COMPLETE, "last.pt", WATCH_TORN);
	watch_free(watch);
	scene_end(folder);
}

static void
folder_that_is_renamed_is_followed(void **state)
{
	char *folder = kit_scratch();
	struct watch *watch = audience_start(folder, NULL);

	(void)state;
	scene_write(folder, "run1/checkpoints/last.pt", TORCH);
	audience_hear(watch, WATCH_COMPLETE, "run1/checkpoints/last.pt",
	    WATCH_TORN);
	scene_rename(folder, "run1", "run2");
	audience_hear(watch, WATCH_COMPLETE, "run2/checkpoints/last.pt",
	    WATCH_TORN);
	scene_write(folder, "run2/checkpoints/best.pt", TORCH);
	audience_hear(watch, WATCH_COMPLETE, "run2/checkpoints/best.pt",
	    WATCH_TORN);
	watch_free(watch);
	scene_end(folder);
}

/* A new folder is full before its watch can be there. */
static void
files_that_are_faster_than_the_watch_are_seen(void **state)
{
	char *folder = kit_scratch(), name[64];
	struct watch *watch = audience_start(folder, NULL);

	(void)state;
	for (int round = 0; round < 50; round++) {
		size_t told = 0;

		for (int i = 0; i < 6; i++) {
			snprintf(name, sizeof(name), "run%d/deep/epoch_%d.pth",
			    round, i);
			scene_write(folder, name, TORCH);
		}
		while (told < 6) {
			struct watch_event *event = audience_next(watch, name);

			told += event->kind == WATCH_COMPLETE;
			watch_event_free(event);
		}
	}
	watch_free(watch);
	scene_end(folder);
}

static void
overflow_is_noted_and_nothing_is_missed(void **state)
{
	char *folder = kit_scratch();
	struct watch *watch = audience_start(folder, NULL);
	struct scene_path a, b;
	uint64_t end = clock_monotonic() + AUDIENCE_PATIENCE;
	bool noted = false;

	(void)state;
	scene_text(folder, "a", "x");
	scene_text(folder, "b", "x");
	scene_in(&a, folder, "a");
	scene_in(&b, folder, "b");
	/* Hints of two files in turn do not merge; go on until the thread has
	 * once been too slow. */
	while (!noted) {
		struct watch_event *event;

		for (int i = 0; i < 1000; i++) {
			utimensat(AT_FDCWD, a.text, NULL, 0);
			utimensat(AT_FDCWD, b.text, NULL, 0);
		}
		while ((event = watch_next(watch)) != NULL) {
			noted |= event->kind == WATCH_NOTE &&
			    strstr(event->note.message, "inotify") != NULL;
			watch_event_free(event);
		}
		if (clock_monotonic() > end)
			break;	/* a larger queue than we can fill */
	}
	scene_write(folder, "last.pt", TORCH);
	audience_hear(watch, WATCH_COMPLETE, "last.pt", WATCH_TORN);
	watch_free(watch);
	scene_end(folder);
	if (!noted)
		skip();
}

static void
polling_sees_what_changes(void **state)
{
	struct view_options options = { .poll = true };
	char *folder = kit_scratch();
	struct watch *watch = audience_start(folder, &options);
	struct watch_event *event;

	(void)state;
	event = audience_await(watch, WATCH_NOTE, NULL, NOTHING);
	assert_int_equal(event->note.class, ERROR_NONE);
	assert_non_null(strstr(event->note.message, "every 2 s"));
	watch_event_free(event);
	audience_scan(watch, WATCH_NOTE, NULL);
	scene_write(folder, "run/last.pt", TORCH);
	audience_hear(watch, WATCH_COMPLETE, "run/last.pt", WATCH_TORN);
	watch_free(watch);
	scene_end(folder);
}

/* What is unlike a hint: the quiet time of a file that nothing proves. */
static void
quiet_time_ends_without_a_hint(void **state)
{
	struct view_options options = {
		.settle_unknown = 300 * CLOCK_MILLISECOND
	};
	char *folder = kit_scratch();
	struct watch *watch = audience_start(folder, &options);
	struct watch_event *event;

	(void)state;
	scene_text(folder, "policy.msgpack", "data");
	audience_waiting(watch, "policy.msgpack", "quiet", WATCH_COMPLETE);
	event = audience_await(watch, WATCH_COMPLETE, "policy.msgpack",
	    WATCH_TORN);
	assert_false(event->checkpoint->proven);
	watch_event_free(event);
	watch_free(watch);
	scene_end(folder);
}

/* The options are the watch's own once it has started. */
static void
options_are_copied(void **state)
{
	char pattern[] = "old*", *patterns[] = { pattern };
	struct view_options options = {
		.exclude = (const char *const *)patterns, .exclude_count = 1
	};
	char *folder = kit_scratch();
	struct watch *watch = audience_start(folder, &options);

	(void)state;
	memset(pattern, 'x', 4);
	patterns[0] = NULL;
	memset(&options, 0xff, sizeof(options));
	scene_write(folder, "old.pt", TORCH);
	scene_write(folder, "new.pt", TORCH);
	audience_hear(watch, WATCH_COMPLETE, "new.pt", WATCH_TORN);
	assert_int_equal(audience_scan(watch, WATCH_COMPLETE, NULL), 0);
	watch_free(watch);
	scene_end(folder);
}

/* How often the watching thread has waited for something. */
static unsigned long
count_waits(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned long waits = 0, number;
	struct dirent *task;
	char path[320], line[128];

	assert_non_null(tasks);
	while ((task = readdir(tasks)) != NULL) {
		bool ours = false;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
		    task->d_name);
		file = fopen(path, "re");
		while (file != NULL && fgets(line, sizeof(line), file)) {
			ours |= strcmp(line, "Name:\tckptsync-watch\n") == 0;
			if (ours && sscanf(line, "voluntary_ctxt_switches: %lu",
			    &number) == 1)
				waits += number;
		}
		if (file != NULL)
			fclose(file);
	}
	closedir(tasks);
	return waits;
}

static void
idle_watch_does_nothing(void **state)
{
	char *folder = kit_scratch();
	struct watch *watch = audience_start(folder, NULL);
	struct pollfd ready = { .fd = watch_fd(watch), .events = POLLIN };
	uint64_t end = clock_monotonic() + AUDIENCE_PATIENCE;
	unsigned long before, after;

	(void)state;
	scene_write(folder, "last.pt", TORCH);
	scene_write(folder, "best.pt", "torch-failed.pt");
	audience_hear(watch, WATCH_TORN, "best.pt", NOTHING);
	audience_scan(watch, WATCH_NOTE, NULL);
	/* Until nothing has run for half a second; a watch that looks again
	 * and again never gets there. */
	do {
		before = count_waits();
		assert_int_equal(poll(&ready, 1, 500), 0);
		after = count_waits();
	} while (before != after && clock_monotonic() < end);
	assert_int_equal(before, after);
	assert_true(after > 0);
	watch_free(watch);
	scene_end(folder);
}

/* Bytes amid a file that nobody wrote are taken, and warned of before. */
static void
hole_is_warned_of(void **state)
{
	static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":"
	    "[300000],\"data_offsets\":[0,300000]}}";
	char *folder = kit_scratch(), start[8] = { (char)strlen(header) };
	struct watch_event *event;
	struct scene_path path;
	struct source_file file = { .name = "m" };
	struct watch *watch;
	struct source source;
	uint64_t hole, end;
	bool warned = false;

	(void)state;
	file.fd = open(scene_in(&path, folder, "m.tmp"), O_RDWR | O_CREAT,
	    0600);
	assert_true(file.fd >= 0);
	assert_int_equal(write(file.fd, start, 8), 8);
	assert_int_equal(write(file.fd, header, strlen(header)),
	    strlen(header));
	assert_int_equal(pwrite(file.fd, "end", 3,
	    (off_t)(8 + strlen(header) + 300000 - 3)), 3);
	source = source_from_file(&file, 300000);
	if (source.find_hole(source.context, 0, &hole, &end) != 0)
		skip();
	close(file.fd);
	scene_rename(folder, "m.tmp", "model.safetensors");
	watch = audience_start(folder, &scene_at_once);
	for (;;) {
		event = audience_next(watch, "model.safetensors");
		if (audience_is(event, WATCH_COMPLETE, "model.safetensors"))
			break;
		if (event->kind == WATCH_NOTE &&
		    strcmp(event->note.object, "model.safetensors") == 0) {
			assert_int_equal(event->note.class, ERROR_DAMAGED);
			assert_non_null(strstr(event->note.message,
			    "were never written"));
			warned = true;
		}
		watch_event_free(event);
	}
	assert_true(warned);
	assert_false(event->checkpoint->proven);
	assert_non_null(strstr(event->checkpoint->reason,
	    "bytes 4096 to "));
	watch_event_free(event);
	watch_free(watch);
	scene_end(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_scan_tells_in_the_order_of_completion),
		cmocka_unit_test(scan_tells_all_that_was_complete),
		cmocka_unit_test(directory_may_come_later),
		cmocka_unit_test(folder_that_is_renamed_is_followed),
		cmocka_unit_test(files_that_are_faster_than_the_watch_are_seen),
		cmocka_unit_test(overflow_is_noted_and_nothing_is_missed),
		cmocka_unit_test(polling_sees_what_changes),
		cmocka_unit_test(quiet_time_ends_without_a_hint),
		cmocka_unit_test(options_are_copied),
		cmocka_unit_test(idle_watch_does_nothing),
		cmocka_unit_test(hole_is_warned_of)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
