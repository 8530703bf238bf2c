#include "scene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "base/clock.h"

#define TORCH "torch-2.8.pt"

static const struct checkpoint *
expect(const struct view *view, const char *name, enum checkpoint_state state)
{
	const struct checkpoint *found = scene_find(view, name);

	if (found == NULL)
		fail_msg("%s is not seen", name);
	if (found->state != state)
		fail_msg("%s: state %d: %s", name, found->state,
		    found->reason);
	return found;
}

static void
missing_folder_is_an_empty_view(void **state)
{
	char *folder = kit_scratch();
	struct scene_path path;
	struct view *view;

	(void)state;
	view = scene_look(scene_in(&path, folder, "a/b"), NULL, NULL);
	assert_int_equal(view->count, 0);
	assert_int_equal(view->folders, 0);
	assert_int_equal(view->surroundings->companion_count, 0);
	assert_true(view->check_again == CLOCK_NEVER);
	view_free(view);
	view_free(NULL);
	scene_end(folder);
}

static void
file_instead_of_folder_is_an_error(void **state)
{
	char *folder = kit_scratch();
	struct scene_path path;
	struct error error = ERROR_INIT;

	(void)state;
	scene_text(folder, "file", "x");
	assert_null(view_take(scene_in(&path, folder, "file"), NULL, NULL,
	    &error));
	assert_int_equal(error.class, ERROR_FAILED);
	assert_string_equal(error.object, path.text);
	scene_end(folder);
}

/* A writer that is still there, however whole the file looks. */
static void
open_for_writing_waits(void **state)
{
	char *folder = kit_scratch();
	struct scene_path path;
	struct view *view;
	const struct checkpoint *found;
	int fd;

	(void)state;
	scene_write(folder, "last.pt", TORCH);
	fd = open(scene_in(&path, folder, "last.pt"), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	view = scene_look(folder, NULL, NULL);
	assert_true(view->leases);
	found = expect(view, "last.pt", CHECKPOINT_WAITING);
	assert_string_equal(found->reason, "last.pt is being written");
	assert_true(view->check_again != CLOCK_NEVER);
	view_free(view);

	close(fd);
	view = scene_look(folder, NULL, NULL);
	found = expect(view, "last.pt", CHECKPOINT_COMPLETE);
	assert_true(found->proven);
	assert_true(view->check_again == CLOCK_NEVER);
	view_free(view);
	scene_end(folder);
}

/* No descriptor is left, but a mapping that can be written through. */
static void
mapped_for_writing_waits(void **state)
{
	char *folder = kit_scratch();
	struct scene_path path;
	struct statfs place;
	struct view *view;
	void *map;
	int fd;

	(void)state;
	/* overlayfs does not show these writers (OVERLAYFS_SUPER_MAGIC). */
	if (statfs(folder, &place) == 0 && place.f_type == 0x794c7630) {
		scene_end(folder);
		skip();
	}
	scene_write(folder, "last.pt", TORCH);
	fd = open(scene_in(&path, folder, "last.pt"), O_RDWR | O_CLOEXEC);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	view = scene_look(folder, NULL, NULL);
	expect(view, "last.pt", CHECKPOINT_WAITING);
	view_free(view);
	munmap(map, 4096);
	view = scene_look(folder, NULL, NULL);
	expect(view, "last.pt", CHECKPOINT_COMPLETE);
	view_free(view);
	scene_end(folder);
}

static void
failed_structure_is_torn_and_names_the_cause(void **state)
{
	char *folder = kit_scratch();
	struct view *view;
	const struct checkpoint *found;

	(void)state;
	scene_write(folder, "best.pt", "torch-failed.pt");
	scene_text(folder, "empty.pt", "");
	scene_write(folder, "last.pt", TORCH);
	view = scene_look(folder, NULL, NULL);
	assert_int_equal(view->count, 3);
	assert_string_equal(view->checkpoints[0]->name, "last.pt");
	found = expect(view, "best.pt", CHECKPOINT_TORN);
	assert_non_null(strstr(found->reason, "best.pt: "));
	assert_non_null(strstr(found->reason, "data.pkl"));
	expect(view, "empty.pt", CHECKPOINT_TORN);
	expect(view, "last.pt", CHECKPOINT_COMPLETE);
	view_free(view);
	scene_end(folder);
}

/* A folder with its marker is torn when a file of it is. */
static void
folder_without_marker_waits_and_with_it_is_torn(void **state)
{
	char *folder = kit_scratch();
	struct view *view;
	const struct checkpoint *found;

	(void)state;
	scene_write(folder, "checkpoint-5/model.safetensors",
	    "model.safetensors");
	scene_write(folder, "checkpoint-5/optimizer.pt", "torch-failed.pt");
	scene_write(folder, "checkpoint-5/rng_state.pth", TORCH);
	view = scene_look(folder, &scene_at_once, NULL);
	found = expect(view, "checkpoint-5", CHECKPOINT_WAITING);
	assert_string_equal(found->reason, "trainer_state.json is missing");
	view_free(view);

	scene_write(folder, "checkpoint-5/trainer_state.json",
	    "trainer_state.json");
	view = scene_look(folder, &scene_at_once, NULL);
	found = expect(view, "checkpoint-5", CHECKPOINT_TORN);
	assert_non_null(strstr(found->reason, "checkpoint-5/optimizer.pt: "));
	view_free(view);
	scene_end(folder);
}

/* What nothing proves must be quiet; the clock is turned by hand. */
static void
unknown_structure_settles(void **state)
{
	char *folder = kit_scratch();
	struct view *view, *later;

	(void)state;
	scene_text(folder, "policy.msgpack", "data");
	scene_write(folder, "step_7/model.pt", TORCH);
	clock_test_start(clock_wall());
	view = scene_look(folder, NULL, NULL);
	expect(view, "policy.msgpack", CHECKPOINT_WAITING);
	expect(view, "step_7", CHECKPOINT_WAITING);
	assert_true(view->check_again > clock_monotonic());
	assert_true(view->check_again <= clock_monotonic() + 2 * CLOCK_SECOND);

	clock_test_turn(3 * CLOCK_SECOND);
	later = scene_look(folder, NULL, view);
	view_free(view);
	expect(later, "policy.msgpack", CHECKPOINT_COMPLETE);
	assert_false(scene_find(later, "policy.msgpack")->proven);
	/* A folder of which nothing tells the end takes longer. */
	expect(later, "step_7", CHECKPOINT_WAITING);

	clock_test_turn(8 * CLOCK_SECOND);
	view = scene_look(folder, NULL, later);
	view_free(later);
	assert_true(expect(view, "step_7", CHECKPOINT_COMPLETE)->proven);
	assert_true(view->check_again == CLOCK_NEVER);
	view_free(view);
	clock_test_stop();
	scene_end(folder);
}

/* One file is as it was: nobody opens it again. */
static void
what_did_not_change_is_not_opened_again(void **state)
{
	char *folder = kit_scratch(), data[4096];
	struct scene_path path;
	struct view *view, *later;
	int hints = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	(void)state;
	scene_write(folder, "last.pt", TORCH);
	scene_write(folder, "best.pt", "torch-failed.pt");
	scene_write(folder, "checkpoint-5/model.safetensors",
	    "model.safetensors");
	view = scene_look(folder, NULL, NULL);
	expect(view, "checkpoint-5", CHECKPOINT_WAITING);
	assert_true(inotify_add_watch(hints, folder, IN_OPEN) >= 0);
	assert_true(inotify_add_watch(hints, scene_in(&path, folder,
	    "last.pt"), IN_OPEN) >= 0);
	assert_true(inotify_add_watch(hints, scene_in(&path, folder,
	    "best.pt"), IN_OPEN) >= 0);
	assert_true(inotify_add_watch(hints, scene_in(&path, folder,
	    "checkpoint-5/model.safetensors"), IN_OPEN) >= 0);
	later = scene_look(folder, NULL, view);
	view_free(view);
	for (ssize_t length; (length = read(hints, data, sizeof(data))) > 0;) {
		for (char *at = data; at < data + length;) {
			struct inotify_event event;

			memcpy(&event, at, sizeof(event));
			at += sizeof(event) + event.len;
			/* The folders themselves are read, of course. */
			if (!(event.mask & IN_ISDIR))
				fail_msg("a file was opened again");
		}
	}
	expect(later, "last.pt", CHECKPOINT_COMPLETE);
	expect(later, "best.pt", CHECKPOINT_TORN);
	view_free(later);
	close(hints);
	scene_end(folder);
}

/* The pointer has moved on, but what was complete has not changed. */
static void
complete_stays_complete(void **state)
{
	char *folder = kit_scratch();
	struct view *view, *later;

	(void)state;
	scene_write(folder, "global_step1/mp_rank_00_model_states.pt", TORCH);
	scene_text(folder, "latest", "global_step1\n");
	view = scene_look(folder, &scene_at_once, NULL);
	expect(view, "global_step1", CHECKPOINT_COMPLETE);
	scene_text(folder, "latest", "global_step2");
	later = scene_look(folder, &scene_at_once, view);
	view_free(view);
	expect(later, "global_step1", CHECKPOINT_COMPLETE);
	assert_int_equal(later->surroundings->pointer_count, 1);
	assert_int_equal(later->surroundings->pointed_count, 0);

	/* Written again it has to be named again. */
	scene_write(folder, "global_step1/mp_rank_00_model_states.pt", TORCH);
	view = scene_look(folder, &scene_at_once, later);
	view_free(later);
	assert_string_equal(expect(view, "global_step1",
	    CHECKPOINT_WAITING)->reason, "latest does not name it");
	view_free(view);
	scene_text(folder, "latest", "global_step1");
	view = scene_look(folder, &scene_at_once, NULL);
	expect(view, "global_step1", CHECKPOINT_COMPLETE);
	view_free(view);
	scene_end(folder);
}

/* What a trainer would pick although it is not whole, and what not. */
static void
leftovers_mislead_when_they_are_the_newest(void **state)
{
	char *folder = kit_scratch();
	struct view *view;

	(void)state;
	for (int i = 1; i <= 3; i++) {
		char path[64];

		snprintf(path, sizeof(path),
		    "global_step%d/mp_rank_00_model_states.pt", i);
		scene_write(folder, path, TORCH);
	}
	scene_text(folder, "latest", "global_step2");
	scene_write(folder, "best.pt", "torch-failed.pt");
	view = scene_look(folder, &scene_at_once, NULL);
	assert_false(view_may_mislead(view, expect(view, "global_step1",
	    CHECKPOINT_WAITING)));
	assert_false(view_may_mislead(view, expect(view, "global_step2",
	    CHECKPOINT_COMPLETE)));
	assert_true(view_may_mislead(view, expect(view, "global_step3",
	    CHECKPOINT_WAITING)));
	assert_true(view_may_mislead(view, expect(view, "best.pt",
	    CHECKPOINT_TORN)));
	view_free(view);
	scene_end(folder);
}

static void
links_are_kept_by_where_they_lead(void **state)
{
	char *folder = kit_scratch(), *outside = kit_scratch();
	struct scene_path path, target;
	const struct checkpoint *found;
	const struct checkpoint_entry *entry;
	struct view *view;
	size_t notes = 0;

	(void)state;
	scene_write(folder, "step=1.ckpt", TORCH);
	scene_write(folder, "checkpoint-5/model.safetensors",
	    "model.safetensors");
	scene_write(folder, "checkpoint-5/trainer_state.json",
	    "trainer_state.json");
	scene_write(outside, "real.pt", TORCH);
	scene_write(outside, "more/x.pt", TORCH);
#define MAKE(to, name) assert_int_equal(symlink(to, \
    scene_in(&path, folder, name)), 0)
	MAKE("step=1.ckpt", "last.ckpt");
	MAKE(scene_in(&target, folder, "step=1.ckpt"), "absolute.ckpt");
	MAKE(scene_in(&target, outside, "real.pt"), "outside.pt");
	MAKE(scene_in(&target, outside, "more"), "data");
	MAKE("self.ckpt", "self.ckpt");
	MAKE("nowhere", "dangling.pt");
	MAKE("../step=1.ckpt", "checkpoint-5/up");
#undef MAKE
	view = scene_look(folder, &scene_at_once, NULL);

	entry = scene_entry(view->surroundings->pointers,
	    view->surroundings->pointer_count, "last.ckpt");
	assert_non_null(entry);
	assert_int_equal(entry->kind, ENTRY_LINK);
	assert_string_equal(entry->target, "step=1.ckpt");
	entry = scene_entry(view->surroundings->pointers,
	    view->surroundings->pointer_count, "absolute.ckpt");
	assert_non_null(entry);
	assert_string_equal(entry->target, "step=1.ckpt");
	assert_int_equal(view->surroundings->pointed_count, 1);
	assert_string_equal(view->surroundings->pointed[0], "step=1.ckpt");

	found = expect(view, "outside.pt", CHECKPOINT_COMPLETE);
	assert_int_equal(found->entries[0].kind, ENTRY_FILE);
	assert_true(found->entries[0].follow);
	found = expect(view, "checkpoint-5", CHECKPOINT_COMPLETE);
	entry = scene_entry(found->entries, found->entry_count,
	    "checkpoint-5/up");
	assert_non_null(entry);
	assert_string_equal(entry->target, "../step=1.ckpt");

	assert_null(scene_find(view, "self.ckpt"));
	assert_null(scene_find(view, "dangling.pt"));
	assert_null(scene_find(view, "data/x.pt"));
	for (size_t i = 0; i < view->note_count; i++) {
		const char *object = view->notes[i].object;

		notes += strcmp(object, "outside.pt") == 0 ||
		    strcmp(object, "data") == 0 ||
		    strcmp(object, "self.ckpt") == 0 ||
		    strcmp(object, "dangling.pt") == 0;
	}
	assert_int_equal(notes, 4);
	assert_int_equal(view->note_count, 4);
	view_free(view);
	scene_end(folder);
	scene_end(outside);
}

static void
hard_links_are_counted_once(void **state)
{
	char *folder = kit_scratch();
	struct scene_path a, b;
	const struct checkpoint *found;
	struct view *view;

	(void)state;
	scene_write(folder, "step_5/model.pt", TORCH);
	assert_int_equal(link(scene_in(&a, folder, "step_5/model.pt"),
	    scene_in(&b, folder, "step_5/z.pt")), 0);
	scene_write(folder, "step_5/optimizer.pt", "torch-legacy.pt");
	view = scene_look(folder, &scene_at_once, NULL);
	found = expect(view, "step_5", CHECKPOINT_COMPLETE);
	assert_int_equal(found->entry_count, 4);
	assert_string_equal(found->entries[0].path, "step_5");
	assert_int_equal(found->entries[0].kind, ENTRY_FOLDER);
	assert_string_equal(found->entries[1].path, "step_5/model.pt");
	assert_string_equal(found->entries[3].path, "step_5/z.pt");
	assert_int_equal(found->entries[3].same_as, 1);
	assert_int_equal(found->entries[2].same_as, 2);
	assert_int_equal(found->size, found->entries[1].identity.size +
	    found->entries[2].identity.size);
	view_free(view);
	scene_end(folder);
}

static void
include_and_exclude_say_what_counts(void **state)
{
	const char *const include[] = { "*.pt", "wandb/" };
	const char *const exclude[] = { "old/", "scratch*" };
	struct view_options options = scene_at_once;
	char *folder = kit_scratch();
	struct view *view;

	(void)state;
	scene_write(folder, "last.pt", TORCH);
	scene_write(folder, "old/last.pt", TORCH);
	scene_write(folder, "scratch.pt", TORCH);
	scene_text(folder, "log.txt", "x");
	scene_text(folder, "wandb/run.txt", "x");
	options.include = include;
	options.include_count = 2;
	options.exclude = exclude;
	options.exclude_count = 2;
	view = scene_look(folder, &options, NULL);
	assert_int_equal(view->count, 1);
	expect(view, "last.pt", CHECKPOINT_COMPLETE);
	assert_int_equal(view->surroundings->companion_count, 1);
	assert_string_equal(view->surroundings->companions[0].path,
	    "wandb/run.txt");
	view_free(view);
	scene_end(folder);
}

static void
order_is_that_of_completion(void **state)
{
	static const char *const names[] = { "checkpoint-1.pt",
	    "checkpoint-3.pt", "checkpoint-2.pt" };
	char *folder = kit_scratch();
	struct scene_path path;
	struct view *view;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct timespec times[2] = { { .tv_sec = 1700000000 + i },
		    { .tv_sec = 1700000000 + i } };

		scene_write(folder, names[i], TORCH);
		assert_int_equal(utimensat(AT_FDCWD, scene_in(&path, folder,
		    names[i]), times, 0), 0);
	}
	view = scene_look(folder, NULL, NULL);
	assert_int_equal(view->count, 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(view->checkpoints[i]->name, names[i]);
		assert_int_equal(view->checkpoints[i]->completed.tv_sec,
		    1700000000 + i);
	}
	view_free(view);
	scene_end(folder);
}

static void
surroundings_stand_alone(void **state)
{
	struct error error = ERROR_INIT;
	char *folder = kit_scratch();
	struct surroundings *around;

	(void)state;
	scene_write(folder, "epoch_1.pth", TORCH);
	scene_text(folder, "last_checkpoint", "epoch_1.pth");
	scene_text(folder, "logs/log.csv", "x");
	around = view_surroundings(folder, NULL, &error);
	assert_non_null(around);
	assert_int_equal(around->companion_count, 1);
	assert_string_equal(around->companions[0].path, "logs/log.csv");
	assert_int_equal(around->pointer_count, 1);
	assert_string_equal(around->pointers[0].path, "last_checkpoint");
	assert_int_equal(around->pointed_count, 1);
	assert_string_equal(around->pointed[0], "epoch_1.pth");
	assert_int_equal(around->present_count, 1);
	surroundings_free(around);
	scene_end(folder);
}

struct storm {
	const char *folder;
	atomic_bool stop;
};

/* Files that come, go, and change places as fast as they can. */
static void *
make_storm(void *context)
{
	struct storm *storm = context;
	struct scene_path a, b, sub;

	scene_in(&a, storm->folder, "a.pt");
	scene_in(&b, storm->folder, "b.pt");
	scene_in(&sub, storm->folder, "checkpoint-1");
	while (!atomic_load(&storm->stop)) {
		int fd = open(a.text, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		if (fd >= 0) {
			(void)!write(fd, "half", 4);
			close(fd);
		}
		rename(a.text, b.text);
		unlink(b.text);
		mkdir(sub.text, 0700);
		rmdir(sub.text);
	}
	return NULL;
}

static void
what_vanishes_under_the_look_does_no_harm(void **state)
{
	char *folder = kit_scratch();
	struct storm storm = { .folder = folder };
	struct view *view = NULL;
	pthread_t thread;

	(void)state;
	scene_write(folder, "last.pt", TORCH);
	assert_int_equal(pthread_create(&thread, NULL, make_storm, &storm), 0);
	for (int i = 0; i < 500; i++) {
		struct view *next = scene_look(folder, NULL, view);

		view_free(view);
		view = next;
		expect(view, "last.pt", CHECKPOINT_COMPLETE);
		for (size_t k = 0; k < view->count; k++) {
			if (view->checkpoints[k]->state == CHECKPOINT_COMPLETE)
				assert_string_equal(view->checkpoints[k]->name,
				    "last.pt");
		}
	}
	atomic_store(&storm.stop, true);
	pthread_join(thread, NULL);
	view_free(view);
	scene_end(folder);
}

/* Names that mean something to a shell, a log or a parser. */
static void
strange_names_are_names(void **state)
{
	static const char *const names[] = {
		"a\nb.pt", "\xff\xfe.pt", "%s%n.pt", "-rf.pt", " .pt",
		"checkpoint-99999999999999999999999/x.pt",
		"model-00001-of-99999999999.safetensors", "-of-.pt",
		"ep1-ba1-rank0.pt", ".data-1-of-1"
	};
	char *folder = kit_scratch(), deep[PATH_MAX] = "d";
	struct view *view;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		scene_write(folder, names[i], TORCH);
	scene_text(folder, "latest", "../../../../etc/passwd");
	scene_text(folder, "checkpoint", "model_checkpoint_path: \"");
	scene_text(folder, "latest_checkpointed_iteration.txt",
	    "99999999999999999999999999999");
	scene_text(folder, "checkpoint-1/latest", "../../etc");
	for (int i = 0; i < 80; i++)
		strcat(deep, "/d");
	strcat(deep, "/x.pt");
	scene_write(folder, deep, TORCH);
	view = scene_look(folder, &scene_at_once, NULL);
	for (size_t i = 0; i < 5; i++)
		expect(view, names[i], CHECKPOINT_COMPLETE);
	assert_int_equal(view->note_count, 1);
	assert_non_null(strstr(view->notes[0].message, "nested"));
	assert_int_equal(view->surroundings->pointed_count, 0);
	view_free(view);
	scene_end(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_folder_is_an_empty_view),
		cmocka_unit_test(file_instead_of_folder_is_an_error),
		cmocka_unit_test(open_for_writing_waits),
		cmocka_unit_test(mapped_for_writing_waits),
		cmocka_unit_test(failed_structure_is_torn_and_names_the_cause),
		cmocka_unit_test(
		    folder_without_marker_waits_and_with_it_is_torn),
		cmocka_unit_test(unknown_structure_settles),
		cmocka_unit_test(what_did_not_change_is_not_opened_again),
		cmocka_unit_test(complete_stays_complete),
		cmocka_unit_test(leftovers_mislead_when_they_are_the_newest),
		cmocka_unit_test(links_are_kept_by_where_they_lead),
		cmocka_unit_test(hard_links_are_counted_once),
		cmocka_unit_test(include_and_exclude_say_what_counts),
		cmocka_unit_test(order_is_that_of_completion),
		cmocka_unit_test(surroundings_stand_alone),
		cmocka_unit_test(what_vanishes_under_the_look_does_no_harm),
		cmocka_unit_test(strange_names_are_names)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
