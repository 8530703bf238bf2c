#ifndef TESTS_UNIT_WATCH_SCENE_H
#define TESTS_UNIT_WATCH_SCENE_H

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit/kit.h"

#include "base/error.h"
#include "watch/view.h"

/*
 * What the tests of the watcher share: files as trainers leave them, made of
 * the fixtures of the format tests.
 */

struct scene_path {
	char text[PATH_MAX];
};

static inline const char *
scene_in(struct scene_path *path, const char *folder, const char *name)
{
	assert_in_range(snprintf(path->text, sizeof(path->text), "%s/%s",
	    folder, name), 1, sizeof(path->text) - 1);
	return path->text;
}

/* The end of a test that began with kit_scratch. */
static inline void
scene_end(char *folder)
{
	kit_scratch_remove(folder);
	free(folder);
}

/* The bytes of a fixture; the caller frees them. */
static inline char *
scene_bytes(const char *fixture, size_t *length)
{
	struct scene_path path;

	return kit_read_file(scene_in(&path, TEST_DATA "/format", fixture),
	    length);
}

/* Write ${name} in ${folder} in place, in one go, as the fixture is. */
static inline void
scene_write(const char *folder, const char *name, const char *fixture)
{
	struct scene_path path;
	size_t length;
	char *data = scene_bytes(fixture, &length);

	kit_write_file(scene_in(&path, folder, name), data, length);
	free(data);
}

static inline void
scene_text(const char *folder, const char *name, const char *text)
{
	struct scene_path path;

	kit_write_file(scene_in(&path, folder, name), text, strlen(text));
}

static inline void
scene_folder(const char *folder, const char *name)
{
	struct scene_path path;

	assert_int_equal(mkdir(scene_in(&path, folder, name), 0700), 0);
}

static inline void
scene_rename(const char *folder, const char *from, const char *to)
{
	struct scene_path a, b;

	assert_int_equal(rename(scene_in(&a, folder, from),
	    scene_in(&b, folder, to)), 0);
}

/* No waiting but for what the structure or a marker says. */
static const struct view_options scene_at_once = {
	.settle_known = 1, .settle_unknown = 1, .settle_marker = 1
};

/* Look, or fail with the reason. */
static inline struct view *
scene_look(const char *folder, const struct view_options *options,
    const struct view *previous)
{
	struct error error = ERROR_INIT;
	char text[ERROR_TEXT_SIZE];
	struct view *view = view_take(folder, options, previous, &error);

	if (view == NULL)
		fail_msg("%s", error_text(&error, text));
	return view;
}

static inline const struct checkpoint *
scene_find(const struct view *view, const char *name)
{
	for (size_t i = 0; i < view->count; i++) {
		if (strcmp(view->checkpoints[i]->name, name) == 0)
			return view->checkpoints[i];
	}
	return NULL;
}

static inline int
scene_names(char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(names[i], name) == 0)
			return 1;
	}
	return 0;
}

static inline const struct checkpoint_entry *
scene_entry(const struct checkpoint_entry *entries, size_t count,
    const char *path)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(entries[i].path, path) == 0)
			return &entries[i];
	}
	return NULL;
}

#endif
