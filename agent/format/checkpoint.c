#include "format/checkpoint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct identity
identity_of(const struct stat *status)
{
	return (struct identity){
		.device = status->st_dev,
		.inode = status->st_ino,
		.size = (uint64_t)status->st_size,
		.modified = status->st_mtim,
		.changed = status->st_ctim,
	};
}

static bool
same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool
identity_same(const struct identity *a, const struct identity *b)
{
	return a->device == b->device && a->inode == b->inode &&
	    a->size == b->size && same_time(a->modified, b->modified) &&
	    same_time(a->changed, b->changed);
}

/* ${text}, or NULL for NULL; *${failed} when out of memory. */
static char *
copy_text(const char *text, bool *failed)
{
	char *copy = text == NULL ? NULL : strdup(text);

	if (text != NULL && copy == NULL)
		*failed = true;
	return copy;
}

struct checkpoint *
checkpoint_copy(const struct checkpoint *checkpoint)
{
	struct checkpoint *copy = malloc(sizeof(*copy));
	bool failed = false;

	if (copy == NULL)
		return NULL;
	*copy = *checkpoint;
	copy->name = copy_text(checkpoint->name, &failed);
	copy->series = copy_text(checkpoint->series, &failed);
	copy->entries = calloc(checkpoint->entry_count + 1,
	    sizeof(*copy->entries));
	if (copy->entries == NULL) {
		copy->entry_count = 0;
		failed = true;
	}
	for (size_t i = 0; i < copy->entry_count; i++) {
		copy->entries[i] = checkpoint->entries[i];
		copy->entries[i].path =
		    copy_text(checkpoint->entries[i].path, &failed);
		copy->entries[i].target =
		    copy_text(checkpoint->entries[i].target, &failed);
	}
	if (failed) {
		checkpoint_free(copy);
		return NULL;
	}
	return copy;
}

static bool
same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool
same_entry(const struct checkpoint_entry *a, const struct checkpoint_entry *b)
{
	if (a->kind != b->kind || !same_text(a->path, b->path))
		return false;
	switch (a->kind) {
	case ENTRY_FILE:
		return a->follow == b->follow && a->mode == b->mode &&
		    identity_same(&a->identity, &b->identity);
	case ENTRY_FOLDER:
		return a->mode == b->mode;
	case ENTRY_LINK:
		return same_text(a->target, b->target);
	}
	return false;
}

bool
checkpoint_same(const struct checkpoint *a, const struct checkpoint *b)
{
	if (!same_text(a->name, b->name) || a->entry_count != b->entry_count)
		return false;
	for (size_t i = 0; i < a->entry_count; i++)
		if (!same_entry(&a->entries[i], &b->entries[i]))
			return false;
	return true;
}

void
checkpoint_free(struct checkpoint *checkpoint)
{
	if (checkpoint == NULL)
		return;
	for (size_t i = 0; i < checkpoint->entry_count; i++) {
		free(checkpoint->entries[i].path);
		free(checkpoint->entries[i].target);
	}
	free(checkpoint->entries);
	free(checkpoint->name);
	free(checkpoint->series);
	free(checkpoint);
}

static void
free_entries(struct checkpoint_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(entries[i].path);
		free(entries[i].target);
	}
	free(entries);
}

static void
free_names(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

void
surroundings_free(struct surroundings *surroundings)
{
	if (surroundings == NULL)
		return;
	free_entries(surroundings->companions, surroundings->companion_count);
	free_entries(surroundings->pointers, surroundings->pointer_count);
	free_names(surroundings->pointed, surroundings->pointed_count);
	free_names(surroundings->present, surroundings->present_count);
	free(surroundings);
}
