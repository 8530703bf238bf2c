#ifndef UNIT_MOVE_RUN_H
#define UNIT_MOVE_RUN_H

#include <ftw.h>

#include "unit/move/scene.h"

#define MIB ((size_t)1 << 20)

/* A directory checkpoint, a pointer to it and a log. */
static inline struct scene *
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
static inline void
check_clean(const struct scene *scene)
{
	DIR *folder = opendir(scene->target);
	struct dirent *entry;

	assert_non_null(folder);
	while ((entry = readdir(folder)) != NULL)
		assert_null(strstr(entry->d_name, "ckptsync"));
	closedir(folder);
}

static inline void
put_target(const struct scene *scene, const char *path, const void *data,
    size_t length)
{
	char *whole = path_join(scene->target, path);

	kit_write_file(whole, data, length);
	free(whole);
}

static inline char *
target_path(const struct scene *scene, const char *path)
{
	char *whole = path_join(scene->target, path);

	assert_non_null(whole);
	return whole;
}

/* The largest chunk in the store: its file. */
static char *found_chunk;
static off_t found_size;

static inline int
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

static inline void
find_chunk(const struct scene *scene)
{
	found_size = 0;
	assert_int_equal(nftw(scene->store, visit_chunk, 16, FTW_PHYS), 0);
	assert_non_null(found_chunk);
}

static inline void
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

#endif
