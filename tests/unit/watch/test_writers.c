#include "audience.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/path.h"

/*
 * The ways in which files come to be, beside a running watch: what is
 * provably torn is never told complete, and what is complete always is.
 */

#define TORCH "torch-2.8.pt"

/* A safetensors file of one tensor; byte ${version} fills it. */
#define TENSOR_SIZE ((size_t)256 << 10)

struct bytes {
	char *data;
	size_t length;
};

static struct bytes
make_tensors(int version)
{
	struct bytes made;
	char header[128];
	uint64_t length;

	memset(header, ' ', sizeof(header));
	snprintf(header, sizeof(header), "{\"a\":{\"dtype\":\"U8\","
	    "\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", TENSOR_SIZE,
	    TENSOR_SIZE);
	length = strlen(header);
	while (length % 8 != 0)
		header[length++] = ' ';
	made.length = 8 + length + TENSOR_SIZE;
	made.data = malloc(made.length);
	assert_non_null(made.data);
	for (int i = 0; i < 8; i++)
		made.data[i] = (char)(length >> (8 * i));
	memcpy(made.data + 8, header, length);
	memset(made.data + 8 + length, version, TENSOR_SIZE);
	return made;
}

static int
open_new(const char *folder, const char *name)
{
	struct scene_path path;
	int fd = open(scene_in(&path, folder, name),
	    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void
in_place(void **state)
{
	char *folder = kit_scratch();
	struct bytes whole = make_tensors(1);
	struct watch *watch = audience_start(folder, NULL);
	int fd;

	(void)state;
	for (int round = 0; round < 3; round++) {
		fd = open_new(folder, "last.safetensors");
		assert_int_equal(path_write_all(fd, whole.data,
		    whole.length / 2), 0);
		audience_waiting(watch, "last.safetensors",
		    "last.safetensors is being written", WATCH_COMPLETE);
		assert_int_equal(audience_scan(watch, WATCH_COMPLETE,
		    "last.safetensors"), 0);
		assert_int_equal(path_write_all(fd, whole.data +
		    whole.length / 2, whole.length - whole.length / 2), 0);
		assert_int_equal(audience_scan(watch, WATCH_COMPLETE,
		    "last.safetensors"), 0);
		close(fd);
		audience_hear(watch, WATCH_COMPLETE, "last.safetensors",
		    WATCH_TORN);
	}
	watch_free(watch);
	free(whole.data);
	scene_end(folder);
}

static void
temporary_name_and_rename(void **state)
{
	char *folder = kit_scratch();
	struct watch *watch = audience_start(folder, NULL);

	(void)state;
	for (int round = 0; round < 3; round++) {
		scene_write(folder, "last.pt.tmp", TORCH);
		assert_int_equal(audience_scan(watch, WATCH_COMPLETE, NULL), 0);
		scene_rename(folder, "last.pt.tmp", "last.pt");
		audience_hear(watch, WATCH_COMPLETE, "last.pt", WATCH_TORN);
	}
	watch_free(watch);
	scene_end(folder);
}

static void
renamed_or_linked_in_from_outside(void **state)
{
	char *folder = kit_scratch(), *outside = kit_scratch();
	struct watch *watch = audience_start(folder, NULL);
	struct scene_path a, b;

	(void)state;
	scene_write(outside, "tmp1", TORCH);
	assert_int_equal(rename(scene_in(&a, outside, "tmp1"),
	    scene_in(&b, folder, "step=1.ckpt")), 0);
	audience_hear(watch, WATCH_COMPLETE, "step=1.ckpt", WATCH_TORN);
	scene_write(outside, "x", TORCH);
	assert_int_equal(link(scene_in(&a, outside, "x"),
	    scene_in(&b, folder, "step=2.ckpt")), 0);
	audience_hear(watch, WATCH_COMPLETE, "step=2.ckpt", WATCH_TORN);
	assert_int_equal(link(scene_in(&a, folder, "step=2.ckpt"),
	    scene_in(&b, folder, "step=3.ckpt")), 0);
	audience_hear(watch, WATCH_COMPLETE, "step=3.ckpt", WATCH_TORN);
	watch_free(watch);
	scene_end(folder);
	scene_end(outside);
}

/* As shutil.move does it from another file system: with the old times. */
static void
copied_with_its_times(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1600000000 },
	    { .tv_sec = 1600000000 } };
	char *folder = kit_scratch();
	struct bytes whole = make_tensors(1);
	struct watch *watch = audience_start(folder, NULL);
	struct watch_event *event;
	struct identity now;
	struct scene_path path;
	struct stat status;
	int fd;

	(void)state;
	for (int round = 0; round < 2; round++) {
		fd = open_new(folder, "a.safetensors");
		for (size_t at = 0; at < whole.length; at += 65536)
			assert_int_equal(path_write_all(fd, whole.data + at,
			    whole.length - at < 65536 ? whole.length - at :
			    65536), 0);
		close(fd);
		scene_in(&path, folder, "a.safetensors");
		assert_int_equal(chmod(path.text, 0640), 0);
		assert_int_equal(utimensat(AT_FDCWD, path.text, old, 0), 0);
		assert_int_equal(stat(path.text, &status), 0);
		now = identity_of(&status);
		/* It may have been told before its times were set. */
		do {
			event = audience_await(watch, WATCH_COMPLETE,
			    "a.safetensors", WATCH_TORN);
			fd = identity_same(&event->checkpoint->entries[0].
			    identity, &now);
			watch_event_free(event);
		} while (!fd);
	}
	watch_free(watch);
	free(whole.data);
	scene_end(folder);
}

/* The size is final from the beginning (safetensors 0.8.0-rc). */
static void
sized_before_it_is_written(void **state)
{
	char *folder = kit_scratch();
	struct bytes whole = make_tensors(1);
	struct watch *watch = audience_start(folder, NULL);
	int fd;

	(void)state;
	fd = open_new(folder, "model-1.safetensors");
	assert_int_equal(ftruncate(fd, (off_t)whole.length), 0);
	assert_int_equal(path_write_all(fd, whole.data, whole.length / 2), 0);
	assert_int_equal(audience_scan(watch, WATCH_COMPLETE,
	    "model-1.safetensors"), 0);
	assert_int_equal(path_write_all(fd, whole.data + whole.length / 2,
	    whole.length - whole.length / 2), 0);
	close(fd);
	audience_hear(watch, WATCH_COMPLETE, "model-1.safetensors",
	    WATCH_TORN);
	watch_free(watch);
	free(whole.data);
	scene_end(folder);
}

/*
 * A child that writes half of the file (sized before, when ${sized}) and is
 * then killed.
 */
static void
kill_writer(const char *folder, const char *name, const struct bytes *whole,
    bool sized)
{
	struct scene_path path;
	int ready[2], status;
	char byte;
	pid_t child;

	scene_in(&path, folder, name);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int fd = open(path.text, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		if (fd < 0 || (sized && ftruncate(fd,
		    (off_t)whole->length) != 0) || path_write_all(fd,
		    whole->data, whole->length / 2) != 0 ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

static void
writer_that_is_killed(void **state)
{
	char *folder = kit_scratch();
	struct bytes whole = make_tensors(1);
	struct watch *watch = audience_start(folder, NULL);
	struct watch_event *event;
	struct scene_path path;

	(void)state;
	kit_write_file(scene_in(&path, folder, "last.safetensors"), whole.data,
	    whole.length);
	audience_hear(watch, WATCH_COMPLETE, "last.safetensors", WATCH_TORN);
	kill_writer(folder, "last.safetensors", &whole, false);
	event = audience_await(watch, WATCH_TORN, "last.safetensors",
	    WATCH_COMPLETE);
	assert_non_null(strstr(event->checkpoint->reason,
	    "last.safetensors: "));
	watch_event_free(event);
	kit_write_file(path.text, whole.data, whole.length);
	audience_hear(watch, WATCH_COMPLETE, "last.safetensors", WATCH_TORN);
	watch_free(watch);
	free(whole.data);
	scene_end(folder);
}

/* Where holes tell what was never written (base/source.h). */
static bool
knows_holes(const char *folder)
{
	static const unsigned long types[] = { 0xef53, 0x58465342, 0x9123683e,
	    0xf2f52010, 0x01021994 };
	struct statfs status;

	if (statfs(folder, &status) != 0)
		return false;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if ((unsigned long)status.f_type == types[i])
			return true;
	}
	return false;
}

static void
writer_that_is_killed_after_it_set_the_size(void **state)
{
	char *folder = kit_scratch();
	struct bytes whole = make_tensors(1);
	struct watch *watch;

	(void)state;
	if (!knows_holes(folder)) {
		free(whole.data);
		scene_end(folder);
		skip();
	}
	watch = audience_start(folder, NULL);
	kill_writer(folder, "a.safetensors", &whole, true);
	audience_hear(watch, WATCH_TORN, "a.safetensors", WATCH_COMPLETE);
	assert_int_equal(audience_scan(watch, WATCH_COMPLETE,
	    "a.safetensors"), 0);
	watch_free(watch);
	free(whole.data);
	scene_end(folder);
}

/* Data loaders and asynchronous savers keep the descriptor open. */
static void
descriptor_that_a_child_has_inherited(void **state)
{
	char *folder = kit_scratch();
	struct bytes whole = make_tensors(1);
	struct watch *watch = audience_start(folder, NULL);
	int fd = open_new(folder, "last.safetensors"), status;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		for (;;)
			pause();
	}
	assert_int_equal(path_write_all(fd, whole.data, whole.length), 0);
	close(fd);
	assert_int_equal(audience_scan(watch, WATCH_COMPLETE,
	    "last.safetensors"), 0);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	audience_hear(watch, WATCH_COMPLETE, "last.safetensors", WATCH_TORN);
	watch_free(watch);
	free(whole.data);
	scene_end(folder);
}

static void
disk_that_is_full(void **state)
{
	char *folder = kit_scratch();
	struct bytes whole = make_tensors(1);
	struct watch *watch;
	int fd;

	(void)state;
	if (mount("none", folder, "tmpfs", 0, "size=128k") != 0) {
		free(whole.data);
		scene_end(folder);
		skip();
	}
	watch = audience_start(folder, NULL);
	fd = open_new(folder, "last.safetensors");
	assert_int_equal(path_write_all(fd, whole.data, whole.length), -1);
	assert_int_equal(errno, ENOSPC);
	close(fd);
	audience_hear(watch, WATCH_TORN, "last.safetensors", WATCH_COMPLETE);
	watch_free(watch);
	assert_int_equal(umount(folder), 0);
	free(whole.data);
	scene_end(folder);
}

static void
save_that_failed(void **state)
{
	char *folder = kit_scratch();
	struct watch *watch = audience_start(folder, NULL);

	(void)state;
	scene_write(folder, "last.pt", TORCH);
	audience_hear(watch, WATCH_COMPLETE, "last.pt", WATCH_TORN);
	scene_write(folder, "last.pt", "torch-failed.pt");
	audience_hear(watch, WATCH_TORN, "last.pt", WATCH_COMPLETE);
	scene_write(folder, "last.pt", TORCH);
	audience_hear(watch, WATCH_COMPLETE, "last.pt", WATCH_TORN);
	watch_free(watch);
	scene_end(folder);
}

/* A folder whose marker comes last, written beside a watch. */
static void
folder_with_a_marker(void **state)
{
	static const char *const files[][2] = {
		{ "model.safetensors", "model.safetensors" },
		{ "optimizer.pt", TORCH }, { "scheduler.pt", "torch-2.4.pt" },
		{ "rng_state.pth", "torch-legacy.pt" }
	};
	char *folder = kit_scratch(), name[64], path[128];
	struct watch *watch = audience_start(folder, NULL);

	(void)state;
	for (int step = 1; step <= 5; step++) {
		snprintf(name, sizeof(name), "checkpoint-%d", step);
		for (size_t i = 0; i < 4; i++) {
			snprintf(path, sizeof(path), "%s/%s", name,
			    files[i][0]);
			scene_write(folder, path, files[i][1]);
			assert_int_equal(audience_scan(watch, WATCH_COMPLETE,
			    name), 0);
		}
		snprintf(path, sizeof(path), "%s/trainer_state.json", name);
		scene_write(folder, path, "trainer_state.json");
		audience_hear(watch, WATCH_COMPLETE, name, WATCH_TORN);
	}
	watch_free(watch);
	scene_end(folder);
}

/* last.pt and best.pt, rewritten in place as fast as it goes. */
#define ROUNDS 60

struct trainer {
	const char *folder;
	struct bytes versions[ROUNDS];
};

static void *
train(void *context)
{
	const struct trainer *trainer = context;
	static const char *const names[] = { "last.safetensors",
	    "best.safetensors" };

	for (int round = 0; round < ROUNDS; round++) {
		const struct bytes *bytes = &trainer->versions[round];

		for (int i = 0; i < (round % 3 == 2 ? 2 : 1); i++) {
			struct scene_path path;
			int fd = open(scene_in(&path, trainer->folder,
			    names[i]), O_WRONLY | O_CREAT | O_TRUNC, 0600);

			for (size_t at = 0; at < bytes->length; at += 4096)
				(void)!write(fd, bytes->data + at,
				    bytes->length - at < 4096 ?
				    bytes->length - at : 4096);
			close(fd);
		}
		clock_sleep(20 * CLOCK_MILLISECOND);
	}
	return NULL;
}

/*
 * Whether what was told is what lies there now.  If it does, it must be one
 * version from the first byte to the last.
 */
static bool
check_told(const struct trainer *trainer, const struct checkpoint *told)
{
	const struct bytes *first = &trainer->versions[0];
	struct identity now;
	struct scene_path path;
	struct stat status;
	char *data = malloc(first->length);
	int fd = open(scene_in(&path, trainer->folder, told->name), O_RDONLY);
	ssize_t length;
	bool same;

	assert_non_null(data);
	assert_true(fd >= 0);
	length = read(fd, data, first->length);
	assert_int_equal(fstat(fd, &status), 0);
	now = identity_of(&status);
	same = identity_same(&now, &told->entries[0].identity);
	if (same) {
		int version = data[first->length - 1];

		assert_in_range(version, 1, ROUNDS);
		assert_int_equal(length, first->length);
		assert_int_equal(status.st_size, first->length);
		assert_memory_equal(data, trainer->versions[version - 1].data,
		    first->length);
	}
	close(fd);
	free(data);
	return same;
}

static void
two_series_side_by_side(void **state)
{
	static const char *const names[] = { "last.safetensors",
	    "best.safetensors" };
	char *folder = kit_scratch();
	struct trainer trainer = { .folder = folder };
	bool over[2] = { false, false };
	struct watch *watch;
	pthread_t thread;

	(void)state;
	for (int i = 0; i < ROUNDS; i++)
		trainer.versions[i] = make_tensors(i + 1);
	watch = audience_start(folder, NULL);
	assert_int_equal(pthread_create(&thread, NULL, train, &trainer), 0);
	while (!over[0] || !over[1]) {
		struct watch_event *event = audience_next(watch, "the end");
		const struct checkpoint *told = event->checkpoint;

		/* Only the last version lies there for good. */
		if (event->kind == WATCH_COMPLETE &&
		    check_told(&trainer, told)) {
			struct scene_path path;
			size_t length;
			char *data = kit_read_file(scene_in(&path, folder,
			    told->name), &length);

			if (length == trainer.versions[0].length &&
			    data[length - 1] == ROUNDS)
				over[strcmp(told->name, names[1]) == 0] = true;
			free(data);
		}
		if (event->kind == WATCH_TORN)
			fail_msg("%s: %s", told->name, told->reason);
		watch_event_free(event);
	}
	pthread_join(thread, NULL);
	watch_free(watch);
	for (int i = 0; i < ROUNDS; i++)
		free(trainer.versions[i].data);
	scene_end(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_place),
		cmocka_unit_test(temporary_name_and_rename),
		cmocka_unit_test(renamed_or_linked_in_from_outside),
		cmocka_unit_test(copied_with_its_times),
		cmocka_unit_test(sized_before_it_is_written),
		cmocka_unit_test(writer_that_is_killed),
		cmocka_unit_test(writer_that_is_killed_after_it_set_the_size),
		cmocka_unit_test(descriptor_that_a_child_has_inherited),
		cmocka_unit_test(disk_that_is_full),
		cmocka_unit_test(save_that_failed),
		cmocka_unit_test(folder_with_a_marker),
		cmocka_unit_test(two_series_side_by_side)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
