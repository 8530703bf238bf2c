#ifndef UNIT_MOVE_SCENE_H
#define UNIT_MOVE_SCENE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "format/checkpoint.h"
#include "move/restore.h"
#include "move/upload.h"
#include "store/backend_file.h"
#include "store/truth.h"
#include "store/writer.h"
#include "unit/move/script.h"

/*
 * A directory with checkpoints, a store behind a script, and a writer.
 */
struct scene {
	char *root;
	char *folder;		/* the watched directory */
	char *store;
	char *target;		/* where restores go */
	int fd;			/* of folder */
	struct script *script;
	struct writer *writer;
	struct upload upload;
	struct upload_outcome outcome;

	/* What `look` finds. */
	const char *companions[8];
	const char *pointers[8];
};

static inline char *
scene_path(const struct scene *scene, const char *folder, const char *path)
{
	char *whole = path_join(folder != NULL ? folder : scene->folder, path);

	assert_non_null(whole);
	return whole;
}

static inline void
scene_write(const struct scene *scene, const char *path, const void *data,
    size_t length)
{
	char *whole = scene_path(scene, NULL, path);

	kit_write_file(whole, data, length);
	free(whole);
}

/* A file of random bytes. */
static inline void
scene_fill(const struct scene *scene, const char *path, size_t length,
    uint64_t seed)
{
	char *data = malloc(length + 1);

	assert_non_null(data);
	kit_random(data, length, seed);
	scene_write(scene, path, data, length);
	free(data);
}

static inline struct writer *
scene_take_over(struct scene *scene, uint64_t keep)
{
	struct writer_options options = {
		.nodes = 1,
		.rules = { .keep = keep },
		.delete_delay = 15 * 60 * CLOCK_SECOND,
		.identity = json_pack("{s:s}", "host", "test")
	};
	struct error error = ERROR_INIT;
	struct writer *writer;

	writer = writer_take_over(&scene->script->backend, &options,
	    CLOCK_NEVER, &error);
	if (writer == NULL)
		fail_msg("%s", error.message);
	json_decref(options.identity);
	return writer;
}

static inline void
scene_add(const struct scene *scene, struct checkpoint_entry **entries,
    size_t *count, const char *path)
{
	struct checkpoint_entry *entry, *all;
	char *whole = scene_path(scene, NULL, path), target[4096];
	struct stat status;
	ssize_t length;
	size_t i;

	all = realloc(*entries, (*count + 1) * sizeof(*all));
	assert_non_null(all);
	*entries = all;
	entry = &all[*count];
	memset(entry, 0, sizeof(*entry));
	assert_int_equal(lstat(whole, &status), 0);
	entry->path = strdup(path);
	entry->mode = status.st_mode & 07777;
	entry->kind = S_ISDIR(status.st_mode) ? ENTRY_FOLDER :
	    S_ISLNK(status.st_mode) ? ENTRY_LINK : ENTRY_FILE;
	entry->identity = identity_of(&status);
	entry->same_as = *count;
	if (entry->kind == ENTRY_LINK) {
		length = readlink(whole, target, sizeof(target) - 1);
		assert_true(length > 0);
		target[length] = '\0';
		entry->target = strdup(target);
	}
	for (i = 0; i < *count && entry->kind == ENTRY_FILE; i++)
		if (all[i].kind == ENTRY_FILE &&
		    all[i].identity.inode == entry->identity.inode) {
			entry->same_as = i;
			break;
		}
	(*count)++;
	free(whole);
}

static inline void
scene_scan(const struct scene *scene, struct checkpoint *checkpoint,
    const char *path)
{
	char *whole = scene_path(scene, NULL, path), *below;
	struct dirent **names;
	int i, count;

	scene_add(scene, &checkpoint->entries, &checkpoint->entry_count, path);
	if (checkpoint->entries[checkpoint->entry_count - 1].kind ==
	    ENTRY_FOLDER) {
		count = scandir(whole, &names, NULL, alphasort);
		assert_true(count >= 0);
		for (i = 0; i < count; i++) {
			below = path_join(path, names[i]->d_name);
			if (names[i]->d_name[0] != '.')
				scene_scan(scene, checkpoint, below);
			free(below);
			free(names[i]);
		}
		free(names);
	}
	free(whole);
}

/* What the watcher would say about ${name} now. */
static inline struct checkpoint *
scene_checkpoint(const struct scene *scene, const char *name)
{
	struct checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
	struct checkpoint_entry *entry;
	size_t i;

	assert_non_null(checkpoint);
	checkpoint->name = strdup(name);
	checkpoint->series = strdup(name);
	strcpy(checkpoint->layout, "file");
	strcpy(checkpoint->reason, "a test says so");
	checkpoint->state = CHECKPOINT_COMPLETE;
	checkpoint->completed = clock_wall();
	scene_scan(scene, checkpoint, name);
	for (i = 0; i < checkpoint->entry_count; i++) {
		entry = &checkpoint->entries[i];
		if (entry->kind == ENTRY_FILE && entry->same_as == i)
			checkpoint->size += entry->identity.size;
	}
	return checkpoint;
}

static inline struct surroundings *
scene_look(void *context, struct error *error)
{
	struct scene *scene = context;
	struct surroundings *seen = calloc(1, sizeof(*seen));
	size_t i;

	(void)error;
	assert_non_null(seen);
	for (i = 0; scene->companions[i] != NULL; i++)
		scene_add(scene, &seen->companions, &seen->companion_count,
		    scene->companions[i]);
	for (i = 0; scene->pointers[i] != NULL; i++)
		scene_add(scene, &seen->pointers, &seen->pointer_count,
		    scene->pointers[i]);
	return seen;
}

static inline struct scene *
scene_new(void)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct error error = ERROR_INIT;
	struct backend *file;

	assert_non_null(scene);
	scene->root = kit_scratch();
	scene->folder = path_join(scene->root, "run");
	scene->store = path_join(scene->root, "store");
	scene->target = path_join(scene->root, "target");
	assert_int_equal(mkdir(scene->folder, 0777), 0);
	scene->fd = open(scene->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(scene->fd >= 0);
	file = backend_file_open(scene->store, true, &error);
	assert_non_null(file);
	scene->script = script_new(file);
	scene->writer = scene_take_over(scene, 3);
	return scene;
}

static inline void
scene_free(struct scene *scene)
{
	writer_free(scene->writer);
	backend_free(&scene->script->backend);
	close(scene->fd);
	kit_scratch_remove(scene->root);
	free(scene->root);
	free(scene->folder);
	free(scene->store);
	free(scene->target);
	free(scene);
}

/* Upload ${checkpoint} as it was seen. */
static inline int
scene_upload(struct scene *scene, const struct checkpoint *checkpoint,
    struct error *error)
{
	struct upload *upload = &scene->upload;

	upload->backend = &scene->script->backend;
	upload->writer = scene->writer;
	upload->folder = scene->fd;
	upload->checkpoint = checkpoint;
	upload->look = scene_look;
	upload->look_context = scene;
	error_clear(error);
	return upload_run(upload, &scene->outcome, error);
}

/* See it and upload it; must work. */
static inline void
scene_push(struct scene *scene, const char *name)
{
	struct checkpoint *checkpoint = scene_checkpoint(scene, name);
	struct error error = ERROR_INIT;

	assert_ok(scene_upload(scene, checkpoint, &error), error);
	checkpoint_free(checkpoint);
}

static inline struct truth *
scene_truth(struct scene *scene)
{
	struct error error = ERROR_INIT;
	struct truth *truth;

	truth = truth_read(&scene->script->backend, 0, &error);
	if (truth == NULL)
		fail_msg("%s", error.message);
	return truth;
}

/* Restore the newest checkpoint with its pointers and companions. */
static inline int
scene_restore(struct scene *scene, struct restore *restore,
    struct error *error)
{
	struct truth *truth = scene_truth(scene);
	const struct manifest *wanted = truth->valid[0];
	struct restore_plan plan;
	int result;

	restore->backend = &scene->script->backend;
	restore->truth = truth;
	restore->folder = scene->target;
	if (restore->wanted_count == 0) {
		restore->wanted = &wanted;
		restore->wanted_count = 1;
	}
	error_clear(error);
	result = restore_plan_make(restore, &plan, error);
	if (result == 0) {
		result = restore_run(restore, &plan, error);
		restore_plan_free(&plan);
	}
	if (restore->wanted == &wanted)
		restore->wanted_count = 0;
	truth_free(truth);
	return result;
}

static inline bool
scene_has(const char *folder, const char *path)
{
	char *whole = path_join(folder, path);
	struct stat status;
	bool has = lstat(whole, &status) == 0;

	free(whole);
	return has;
}

/* Whether both are the same file, byte for byte. */
static inline void
scene_same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;
	size_t length_a, length_b;
	char *data_a = kit_read_file(a, &length_a);
	char *data_b = kit_read_file(b, &length_b);

	assert_int_equal(length_a, length_b);
	assert_memory_equal(data_a, data_b, length_a);
	free(data_a);
	free(data_b);
	assert_int_equal(stat(a, &of_a), 0);
	assert_int_equal(stat(b, &of_b), 0);
	assert_int_equal(of_a.st_mode, of_b.st_mode);
	assert_int_equal(of_a.st_mtim.tv_sec, of_b.st_mtim.tv_sec);
	assert_int_equal(of_a.st_mtim.tv_nsec, of_b.st_mtim.tv_nsec);
}

/* The same of ${path} in the watched directory and in the target: names,
 * kinds, bytes, modes, times, link targets, hard links. */
static inline void
scene_same(const struct scene *scene, const char *path)
{
	struct scene other = *scene;
	struct checkpoint *here, *there;
	char *a, *b;
	size_t i;

	other.folder = scene->target;
	here = scene_checkpoint(scene, path);
	there = scene_checkpoint(&other, path);
	assert_int_equal(here->entry_count, there->entry_count);
	for (i = 0; i < here->entry_count; i++) {
		assert_string_equal(here->entries[i].path,
		    there->entries[i].path);
		assert_int_equal(here->entries[i].kind,
		    there->entries[i].kind);
		assert_int_equal(here->entries[i].mode,
		    there->entries[i].mode);
		assert_int_equal(here->entries[i].same_as,
		    there->entries[i].same_as);
		if (here->entries[i].kind == ENTRY_LINK) {
			assert_string_equal(here->entries[i].target,
			    there->entries[i].target);
			continue;
		}
		assert_int_equal(here->entries[i].identity.modified.tv_sec,
		    there->entries[i].identity.modified.tv_sec);
		assert_int_equal(here->entries[i].identity.modified.tv_nsec,
		    there->entries[i].identity.modified.tv_nsec);
		if (here->entries[i].kind != ENTRY_FILE)
			continue;
		a = scene_path(scene, NULL, here->entries[i].path);
		b = scene_path(&other, NULL, here->entries[i].path);
		scene_same_file(a, b);
		free(a);
		free(b);
	}
	checkpoint_free(here);
	checkpoint_free(there);
}

#endif
