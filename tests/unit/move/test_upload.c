#include "unit/move/scene.h"

#include <sys/resource.h>
#include <utime.h>

#include "unit/move/payload.h"

#define MIB ((size_t)1 << 20)

static void
test_file(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { .in_flight = 3 };
	struct error error = ERROR_INIT;

	(void)state;
	scene->upload.in_flight = 2;
	scene_fill(scene, "last.pt", 40 * MIB + 123, 1);
	scene_push(scene, "last.pt");
	assert_false(scene->outcome.known);
	assert_int_equal(scene->outcome.new_bytes, 40 * MIB + 123);
	assert_int_equal(scene->outcome.reused_bytes, 0);
	assert_string_equal(scene->outcome.snapshot, "");
	assert_string_equal(scene->outcome.manifest->name, "last.pt");
	assert_int_equal(scene->outcome.manifest->size, 40 * MIB + 123);
	assert_int_equal(scene->upload.progress.done, 40 * MIB + 123);
	assert_int_equal(scene->upload.progress.moved, 40 * MIB + 123);
	assert_int_equal(scene->upload.progress.total, 40 * MIB + 123);
	assert_true(scene->script->most_in_flight <= 2);
	assert_ok(scene_restore(scene, &restore, &error), error);
	assert_true(scene->script->most_in_flight <= 3);
	scene_same(scene, "last.pt");
	scene_free(scene);
}

/* A directory with everything that one can hold. */
static void
make_tree(struct scene *scene)
{
	char *at = scene_path(scene, NULL, "step-5"), *a, *b;

	scene_fill(scene, "step-5/model.bin", 3 * MIB, 11);
	scene_fill(scene, "step-5/optimizer.bin", 17 * MIB, 12);
	scene_fill(scene, "step-5/state.json", 700, 13);
	scene_fill(scene, "step-5/sub/rng.pth", 14000, 14);
	scene_fill(scene, "step-5/sub/empty", 0, 15);
	a = path_join(at, "nothing");
	assert_int_equal(mkdir(a, 0750), 0);
	free(a);
	a = path_join(at, "link");
	assert_int_equal(symlink("sub/rng.pth", a), 0);
	free(a);
	a = path_join(at, "model.bin");
	b = path_join(at, "twin.bin");
	assert_int_equal(link(a, b), 0);
	assert_int_equal(chmod(a, 0640), 0);
	free(a);
	free(b);
	free(at);
}

static void
test_tree(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;

	(void)state;
	make_tree(scene);
	scene_push(scene, "step-5");
	/* The small files share one chunk, the hard link costs nothing. */
	assert_int_equal(scene->outcome.new_bytes, 20 * MIB + 14700);
	assert_int_equal(scene->outcome.manifest->size, 20 * MIB + 14700);
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-5");
	assert_false(script_fetched_twice(scene->script));
	scene_free(scene);
}

static void
test_small_files_share(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;
	char name[64];
	int i;

	(void)state;
	for (i = 0; i < 200; i++) {
		sprintf(name, "step-1/part-%03d", i);
		scene_fill(scene, name, 1000 + (size_t)i, (uint64_t)i);
	}
	scene_push(scene, "step-1");
	assert_int_equal(scene->script->stored, 1);
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-1");
	assert_int_equal(scene->script->fetched, 1);
	/* One more file of the next checkpoint costs one small chunk. */
	assert_int_equal(renameat(scene->fd, "step-1", scene->fd, "step-2"),
	    0);
	scene_fill(scene, "step-2/part-200", 5000, 200);
	scene_push(scene, "step-2");
	assert_int_equal(scene->outcome.new_bytes, 5000);
	scene_free(scene);
}

static void
test_known(void **state)
{
	struct scene *scene = scene_new();
	const struct manifest *first;
	char *path = scene_path(scene, NULL, "last.pt");
	struct timespec times[2] = { { .tv_sec = 5 }, { .tv_sec = 6 } };

	(void)state;
	scene_fill(scene, "last.pt", 20 * MIB, 1);
	scene_push(scene, "last.pt");
	first = scene->outcome.manifest;
	script_reset(scene->script);
	/* Touched, and written again with the same bytes. */
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	scene_push(scene, "last.pt");
	assert_true(scene->outcome.known);
	assert_ptr_equal(scene->outcome.manifest, first);
	scene_fill(scene, "last.pt", 20 * MIB, 1);
	scene_push(scene, "last.pt");
	assert_true(scene->outcome.known);
	assert_int_equal(scene->outcome.reused_bytes, 20 * MIB);
	assert_int_equal(scene->script->put_bytes, 0);
	/* Empty ones are known too. */
	scene_fill(scene, "empty.pt", 0, 1);
	scene_push(scene, "empty.pt");
	assert_false(scene->outcome.known);
	scene_push(scene, "empty.pt");
	assert_true(scene->outcome.known);
	free(path);
	scene_free(scene);
}

static void
test_equal_twin(void **state)
{
	struct scene *scene = scene_new();
	struct truth *truth;

	(void)state;
	scene_fill(scene, "last.pt", 20 * MIB + 5, 1);
	scene_fill(scene, "best.pt", 20 * MIB + 5, 1);
	scene_push(scene, "last.pt");
	script_reset(scene->script);
	scene_push(scene, "best.pt");
	assert_false(scene->outcome.known);
	assert_int_equal(scene->outcome.new_bytes, 0);
	assert_int_equal(scene->script->puts, 0);
	truth = scene_truth(scene);
	assert_int_equal(truth->count, 2);
	truth_free(truth);
	scene_free(scene);
}

/* The same bytes twice within one checkpoint, the first still on its way. */
static void
test_twice_in_one(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;

	(void)state;
	scene_fill(scene, "step-1/a", 20 * MIB, 1);
	scene_fill(scene, "step-1/b", 20 * MIB, 1);
	scene_fill(scene, "step-1/c", 900, 2);
	scene_fill(scene, "step-1/d", 900, 2);
	scene_push(scene, "step-1");
	assert_int_equal(scene->outcome.new_bytes, 20 * MIB + 900);
	assert_int_equal(scene->outcome.reused_bytes, 20 * MIB + 900);
	assert_int_equal(scene->upload.progress.done, 40 * MIB + 1800);
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-1");
	assert_false(script_fetched_twice(scene->script));
	scene_free(scene);
}

static void
check_sent(struct scene *scene, uint64_t changed)
{
	assert_true(scene->script->put_bytes <=
	    changed + changed / 50 + 65536);
	script_reset(scene->script);
}

static void
check_tensors(void (*make)(const struct scene *, const char *,
    const struct payload *), const char *name)
{
	struct payload payload = { .count = 24, .size = 3 * MIB + 400 };
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;
	char *path = scene_path(scene, NULL, name);
	size_t i;

	for (i = 0; i < payload.count; i++)
		payload.seeds[i] = i + 1;
	make(scene, name, &payload);
	scene_push(scene, name);
	assert_true(scene->outcome.manifest->record_count >= payload.count);
	script_reset(scene->script);

	/* Frozen layers. */
	for (i = 20; i < payload.count; i++)
		payload.seeds[i] = i + 100;
	make(scene, name, &payload);
	scene_push(scene, name);
	check_sent(scene, 4 * payload.size);

	/* Nothing but a longer header. */
	payload.padding = 7001;
	make(scene, name, &payload);
	scene_push(scene, name);
	check_sent(scene, 0);

	/* One tensor in the middle, a shorter header, and another name. */
	payload.padding = 100;
	payload.seeds[7] = 1000;
	make(scene, name, &payload);
	scene_push(scene, name);
	check_sent(scene, payload.size);

	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, name);
	free(path);
	scene_free(scene);
}

static void
test_tensors(void **state)
{
	(void)state;
	check_tensors(payload_safetensors, "model.safetensors");
	check_tensors(payload_torch, "last.pt");
}

/* Small tensors, some changed. */
static void
test_small_tensors(void **state)
{
	struct payload payload = { .count = 64, .size = 40000 };
	struct scene *scene = scene_new();
	size_t i;

	(void)state;
	for (i = 0; i < payload.count; i++)
		payload.seeds[i] = i + 1;
	payload_safetensors(scene, "m.safetensors", &payload);
	scene_push(scene, "m.safetensors");
	assert_int_equal(scene->script->stored, 1);
	script_reset(scene->script);
	payload.padding = 4096;
	payload.seeds[0] = payload.seeds[33] = 1000;
	payload_safetensors(scene, "m.safetensors", &payload);
	scene_push(scene, "m.safetensors");
	assert_true(scene->outcome.new_bytes < 40000 + 16384);
	check_sent(scene, 40000);
	scene_free(scene);
}

/* What a hook does to a file while it is uploaded. */
struct harm {
	const char *path;
	enum { HARM_BYTE, HARM_FIRST_BYTE, HARM_SHORTER, HARM_LONGER,
	    HARM_UNLINK, HARM_REPLACE, HARM_LINK } kind;
};

static void
do_harm(void *context)
{
	const struct harm *harm = context;
	int fd = open(harm->path, O_RDWR);
	struct stat status;
	char byte, *other = NULL;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	switch (harm->kind) {
	case HARM_BYTE:
	case HARM_FIRST_BYTE:
		if (harm->kind == HARM_FIRST_BYTE)
			status.st_size = 1;
		assert_int_equal(pread(fd, &byte, 1, status.st_size - 1), 1);
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, status.st_size - 1), 1);
		break;
	case HARM_SHORTER:
		assert_int_equal(ftruncate(fd, status.st_size / 2), 0);
		break;
	case HARM_LONGER:
		assert_int_equal(ftruncate(fd, status.st_size + 1), 0);
		break;
	case HARM_UNLINK:
		assert_int_equal(unlink(harm->path), 0);
		break;
	case HARM_REPLACE:
	case HARM_LINK:
		assert_true(asprintf(&other, "%s.new", harm->path) > 0);
		if (harm->kind == HARM_REPLACE)
			kit_write_file(other, "other", 5);
		else
			assert_int_equal(symlink("/etc/passwd", other), 0);
		assert_int_equal(rename(other, harm->path), 0);
		free(other);
		break;
	}
	close(fd);
}

/* Nothing that changed is committed, whenever it changes. */
static void
test_changed(void **state)
{
	static const int kinds[] = { HARM_BYTE, HARM_FIRST_BYTE, HARM_SHORTER,
		HARM_LONGER };
	struct scene *scene = scene_new();
	struct harm harm;
	struct checkpoint *checkpoint;
	struct error error = ERROR_INIT;
	struct truth *truth;
	unsigned at;
	size_t i;

	(void)state;
	scene_fill(scene, "first.pt", 100, 1);
	scene_push(scene, "first.pt");
	harm.path = scene_path(scene, NULL, "last.pt");
	scene->upload.in_flight = 2;
	for (at = 1; at <= 4; at++)
		for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
			script_reset(scene->script);
			scene_fill(scene, "last.pt", 24 * MIB,
			    at * 10 + i + 50);
			checkpoint = scene_checkpoint(scene, "last.pt");
			harm.kind = kinds[i];
			scene->script->hook = do_harm;
			scene->script->hook_context = &harm;
			scene->script->hook_put = at;
			assert_int_equal(scene_upload(scene, checkpoint,
			    &error), -1);
			assert_int_equal(error.cause, CAUSE_CHANGED);
			assert_int_equal(error.class, ERROR_FAILED);
			checkpoint_free(checkpoint);
		}
	truth = scene_truth(scene);
	assert_int_equal(truth->count, 1);
	assert_string_equal(truth->valid[0]->name, "first.pt");
	truth_free(truth);
	free((char *)harm.path);
	scene_free(scene);
}

/* A change before the upload begins, also by another kind of file. */
static void
test_changed_before(void **state)
{
	static const int kinds[] = { HARM_BYTE, HARM_SHORTER, HARM_LONGER,
		HARM_UNLINK, HARM_REPLACE, HARM_LINK };
	struct scene *scene = scene_new();
	struct harm harm;
	struct checkpoint *checkpoint;
	struct error error = ERROR_INIT;
	size_t i;

	(void)state;
	harm.path = scene_path(scene, NULL, "last.pt");
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		unlink(harm.path);
		scene_fill(scene, "last.pt", 24 * MIB, i);
		checkpoint = scene_checkpoint(scene, "last.pt");
		harm.kind = kinds[i];
		do_harm(&harm);
		assert_int_equal(scene_upload(scene, checkpoint, &error), -1);
		assert_int_equal(error.cause, CAUSE_CHANGED);
		assert_string_equal(error.object, "last.pt");
		checkpoint_free(checkpoint);
	}
	assert_int_equal(scene->script->stored, 0);
	free((char *)harm.path);
	scene_free(scene);
}

/* The trainer deletes or replaces the file meanwhile: what was there when it
 * was complete is still in our hands. */
static void
test_unlinked(void **state)
{
	static const int kinds[] = { HARM_UNLINK, HARM_REPLACE };
	struct scene *scene = scene_new();
	struct harm harm;
	struct checkpoint *checkpoint;
	struct error error = ERROR_INIT;
	size_t i;

	(void)state;
	harm.path = scene_path(scene, NULL, "step-1/b");
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		script_reset(scene->script);
		scene_fill(scene, "step-1/a", 20 * MIB, i + 1);
		scene_fill(scene, "step-1/b", 20 * MIB, i + 11);
		checkpoint = scene_checkpoint(scene, "step-1");
		harm.kind = kinds[i];
		scene->script->hook = do_harm;
		scene->script->hook_context = &harm;
		scene->script->hook_put = 2;
		assert_ok(scene_upload(scene, checkpoint, &error), error);
		assert_int_equal(scene->outcome.new_bytes, 40 * MIB);
		checkpoint_free(checkpoint);
	}
	free((char *)harm.path);
	scene_free(scene);
}

static void
test_snapshot(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct harm harm = { .kind = HARM_BYTE };
	struct checkpoint *checkpoint;
	struct error error = ERROR_INIT;
	char *copy, *path = scene_path(scene, NULL, "step-1/model.pt");
	char *restored;
	size_t length, other_length;
	char *data, *other;
	int i;

	(void)state;
	harm.path = path;
	copy = path_join(scene->root, "spool");
	assert_int_equal(mkdir(copy, 0700), 0);
	scene->upload.snapshot = UPLOAD_SNAPSHOT;
	for (i = 0; i < 2; i++) {
		script_reset(scene->script);
		scene_fill(scene, "step-1/model.pt", 24 * MIB + 77,
		    (uint64_t)i);
		scene_fill(scene, "step-1/small", 5001, 5);
		scene->upload.spool = i == 1 ? copy : NULL;
		data = kit_read_file(path, &length);
		checkpoint = scene_checkpoint(scene, "step-1");
		scene->script->hook = do_harm;
		scene->script->hook_context = &harm;
		scene->script->hook_put = 1;
		assert_ok(scene_upload(scene, checkpoint, &error), error);
		if (strcmp(scene->outcome.snapshot, "reflink") != 0)
			assert_string_equal(scene->outcome.snapshot,
			    i == 1 ? "copy in spool" : "copy");
		restore.force = true;
		assert_ok(scene_restore(scene, &restore, &error), error);
		restored = path_join(scene->target, "step-1/model.pt");
		other = kit_read_file(restored, &other_length);
		assert_int_equal(length, other_length);
		assert_memory_equal(data, other, length);
		free(other);
		free(data);
		free(restored);
		checkpoint_free(checkpoint);
	}
	free(copy);
	free(path);
	scene_free(scene);
}

/* Where no snapshot can be made it is read in place. */
static void
test_no_snapshot(void **state)
{
	struct scene *scene = scene_new();

	(void)state;
	scene->upload.snapshot = UPLOAD_SNAPSHOT;
	scene->upload.spool = "/nonexistent/spool";
	scene_fill(scene, "last.pt", 1000, 1);
	scene_push(scene, "last.pt");
	if (strcmp(scene->outcome.snapshot, "reflink") != 0)
		assert_string_equal(scene->outcome.snapshot, "");
	scene_free(scene);
}

/* Cut at every chunk; what was stored is not sent again. */
static void
test_cut_and_continued(void **state)
{
	struct checkpoint *checkpoint;
	struct error error = ERROR_INIT;
	struct scene *scene;
	unsigned all, at, stored;

	(void)state;
	for (at = 1, all = 2; at <= all; at++) {
		scene = scene_new();
		scene->upload.in_flight = 3;
		scene_fill(scene, "step-1/a", 60 * MIB, 1);
		scene_fill(scene, "step-1/b", 3000, 2);
		checkpoint = scene_checkpoint(scene, "step-1");
		scene->script->fail_put = at;
		assert_int_equal(scene_upload(scene, checkpoint, &error), -1);
		assert_int_equal(error.cause, CAUSE_UNREACHABLE);
		stored = scene->script->stored;
		scene->script->fail_put = 0;
		scene->script->puts = scene->script->stored = 0;
		assert_ok(scene_upload(scene, checkpoint, &error), error);
		assert_int_equal(scene->script->puts, scene->script->stored);
		assert_int_equal(scene->outcome.new_bytes +
		    scene->outcome.reused_bytes, 60 * MIB + 3000);
		if (at == 1)
			all = scene->script->stored;
		assert_int_equal(stored, at - 1);
		assert_int_equal(stored + scene->script->stored, all);
		checkpoint_free(checkpoint);
		scene_free(scene);
	}
	assert_true(all > 6);
}

static void *
cancel_soon(void *context)
{
	struct scene *scene = context;
	unsigned held = 0;

	while (held < 2) {
		pthread_mutex_lock(&scene->script->mutex);
		held = scene->script->in_flight;
		pthread_mutex_unlock(&scene->script->mutex);
	}
	scene->upload.cancel = true;
	return NULL;
}

/* A store that does not answer keeps neither a cancel nor a deadline. */
static void
test_cancel(void **state)
{
	struct scene *scene = scene_new();
	struct checkpoint *checkpoint;
	struct error error = ERROR_INIT;
	pthread_t thread;
	uint64_t before;

	(void)state;
	scene_fill(scene, "last.pt", 40 * MIB, 1);
	checkpoint = scene_checkpoint(scene, "last.pt");
	scene->upload.in_flight = 2;
	scene->script->hold = true;
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, scene), 0);
	assert_int_equal(scene_upload(scene, checkpoint, &error), -1);
	assert_int_equal(error.cause, CAUSE_CANCELLED);
	pthread_join(thread, NULL);
	assert_int_equal(scene->script->in_flight, 0);

	scene->upload.cancel = false;
	before = clock_monotonic();
	scene->upload.deadline = before + 300 * CLOCK_MILLISECOND;
	assert_int_equal(scene_upload(scene, checkpoint, &error), -1);
	assert_int_equal(error.class, ERROR_NOT_DURABLE);
	assert_int_equal(scene->script->in_flight, 0);
	assert_true(clock_monotonic() >= before + 300 * CLOCK_MILLISECOND);

	scene->upload.deadline = 0;
	scene->script->hold = false;
	assert_ok(scene_upload(scene, checkpoint, &error), error);
	checkpoint_free(checkpoint);
	scene_free(scene);
}

static void
test_denied(void **state)
{
	struct scene *scene = scene_new();
	struct checkpoint *checkpoint;
	struct error error = ERROR_INIT;

	(void)state;
	scene_fill(scene, "last.pt", 40 * MIB, 1);
	checkpoint = scene_checkpoint(scene, "last.pt");
	scene->script->cause = CAUSE_DENIED;
	scene->script->fail_put = 2;
	assert_int_equal(scene_upload(scene, checkpoint, &error), -1);
	assert_int_equal(error.cause, CAUSE_DENIED);
	/* A store that refuses bytes says that they changed. */
	script_reset(scene->script);
	scene->script->cause = CAUSE_REFUSED;
	scene->script->fail_put = 1;
	assert_int_equal(scene_upload(scene, checkpoint, &error), -1);
	assert_int_equal(error.cause, CAUSE_CHANGED);
	checkpoint_free(checkpoint);
	scene_free(scene);
}

/* More files than may be open. */
static void
test_many_files(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { 0 };
	struct error error = ERROR_INIT;
	struct rlimit limit, low;
	char name[64];
	int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		sprintf(name, "step-1/part-%03d", i);
		scene_fill(scene, name, i % 50 == 0 ? 9 * MIB : 300,
		    (uint64_t)i);
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = 150;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	scene_push(scene, "step-1");
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "step-1");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	scene_free(scene);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_small_files_share),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_equal_twin),
		cmocka_unit_test(test_twice_in_one),
		cmocka_unit_test(test_tensors),
		cmocka_unit_test(test_small_tensors),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_changed_before),
		cmocka_unit_test(test_unlinked),
		cmocka_unit_test(test_snapshot),
		cmocka_unit_test(test_no_snapshot),
		cmocka_unit_test(test_cut_and_continued),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_many_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
