#include "watch/told.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "watch/view.h"

/* What was told of one name. */
struct name {
	char *name;
	struct checkpoint *version;	/* last told complete or torn */
	char waiting[256];		/* last reason told since */
};

/* The newest of a series that was told. */
struct series_last {
	char *series;
	char *name;
	struct timespec changed;
};

struct told {
	uint64_t order;
	struct name *names;		/* sorted; those of the last view */
	size_t count;
	struct series_last *series;
	size_t series_count;
};

struct told *
told_new(void)
{
	return calloc(1, sizeof(struct told));
}

static int
name_compare(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->name,
	    ((const struct name *)b)->name);
}

static bool
is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec ||
	    (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/*
 * When the last file of a checkpoint changed, by the time that no trainer can
 * set: a copy that keeps the old times of modification is new all the same.
 */
static struct timespec
changed_time(const struct checkpoint *checkpoint)
{
	struct timespec last = { 0 };

	for (size_t i = 0; i < checkpoint->entry_count; i++) {
		const struct checkpoint_entry *entry = &checkpoint->entries[i];

		if (entry->kind == ENTRY_FILE &&
		    is_before(&last, &entry->identity.changed))
			last = entry->identity.changed;
	}
	return last;
}

static struct series_last *
find_series(struct told *told, const char *series)
{
	for (size_t i = 0; i < told->series_count; i++) {
		if (strcmp(told->series[i].series, series) == 0)
			return &told->series[i];
	}
	return NULL;
}

/* Note ${checkpoint} as the newest of its series. */
static int
remember_series(struct told *told, const struct checkpoint *checkpoint)
{
	struct series_last *last = find_series(told, checkpoint->series);
	struct timespec changed = changed_time(checkpoint);
	char *name;

	if (last == NULL) {
		struct series_last *larger = realloc(told->series,
		    (told->series_count + 1) * sizeof(*larger));

		if (larger == NULL)
			return -1;
		told->series = larger;
		last = &larger[told->series_count];
		*last = (struct series_last){
		    .series = strdup(checkpoint->series) };
		if (last->series == NULL)
			return -1;
		told->series_count++;
	}
	if (is_before(&changed, &last->changed))
		return 0;
	name = strdup(checkpoint->name);
	if (name == NULL)
		return -1;
	free(last->name);
	last->name = name;
	last->changed = changed;
	return 0;
}

/* Whether a newer one of another name was told before. */
static bool
is_late(struct told *told, const struct checkpoint *checkpoint)
{
	const struct series_last *last =
	    find_series(told, checkpoint->series);
	struct timespec changed = changed_time(checkpoint);

	return last != NULL && last->name != NULL &&
	    strcmp(last->name, checkpoint->name) != 0 &&
	    is_before(&changed, &last->changed);
}

static void
name_clear(struct name *name)
{
	free(name->name);
	checkpoint_free(name->version);
}

/* Carry over what is known of the names that are still there. */
static int
renew_names(struct told *told, const struct view *view)
{
	struct name *names = calloc(view->count + 1, sizeof(*names));
	size_t count = 0;

	if (names == NULL)
		return -1;
	for (; count < view->count; count++) {
		names[count].name = strdup(view->checkpoints[count]->name);
		if (names[count].name == NULL) {
			while (count > 0)
				free(names[--count].name);
			free(names);
			return -1;
		}
	}
	if (count > 0)
		qsort(names, count, sizeof(*names), name_compare);
	for (size_t i = 0; i < told->count; i++) {
		struct name *now = count == 0 ? NULL : bsearch(
		    &told->names[i], names, count, sizeof(*names),
		    name_compare);

		if (now != NULL) {
			now->version = told->names[i].version;
			told->names[i].version = NULL;
			memcpy(now->waiting, told->names[i].waiting,
			    sizeof(now->waiting));
		}
		name_clear(&told->names[i]);
	}
	free(told->names);
	told->names = names;
	told->count = count;
	return 0;
}

static struct name *
find_name(struct told *told, const char *name)
{
	struct name key = { .name = (char *)name };
	struct name *found = bsearch(&key, told->names, told->count,
	    sizeof(key), name_compare);

	assert(found != NULL);
	return found;
}

static bool
was_told(const struct name *name, const struct checkpoint *checkpoint)
{
	if (checkpoint->state == CHECKPOINT_WAITING)
		return strcmp(name->waiting, checkpoint->reason) == 0;
	return name->version != NULL &&
	    name->version->state == checkpoint->state &&
	    checkpoint_same(name->version, checkpoint);
}

struct teller {
	struct told *told;
	void (*tell)(void *context, enum watch_kind kind,
	    struct checkpoint *checkpoint);
	void *context;
};

/* Tell it, or only take note of it when a newer one was told (${late}). */
static int
tell_one(struct teller *teller, const struct checkpoint *from, bool late)
{
	static const enum watch_kind kinds[] = {
		[CHECKPOINT_COMPLETE] = WATCH_COMPLETE,
		[CHECKPOINT_TORN] = WATCH_TORN,
		[CHECKPOINT_WAITING] = WATCH_WAITING
	};
	struct name *name = find_name(teller->told, from->name);
	struct checkpoint *copy = checkpoint_copy(from), *version = NULL;

	if (copy == NULL)
		return -1;
	if (from->state != CHECKPOINT_WAITING) {
		version = checkpoint_copy(from);
		if (version == NULL || (from->state == CHECKPOINT_COMPLETE &&
		    !late && remember_series(teller->told, from) != 0)) {
			checkpoint_free(version);
			checkpoint_free(copy);
			return -1;
		}
		checkpoint_free(name->version);
		name->version = version;
		name->waiting[0] = '\0';
	} else {
		memcpy(name->waiting, from->reason, sizeof(from->reason));
	}
	if (late) {
		checkpoint_free(copy);
		return 0;
	}
	if (from->state == CHECKPOINT_COMPLETE)
		copy->order = ++teller->told->order;
	teller->tell(teller->context, kinds[from->state], copy);
	return 0;
}

int
told_update(struct told *told, const struct view *view,
    void (*tell)(void *context, enum watch_kind kind,
    struct checkpoint *checkpoint), void *context)
{
	struct teller teller = { .told = told, .tell = tell,
	    .context = context };
	bool *late;
	int result = 0;

	if (renew_names(told, view) != 0)
		return -1;
	/* Against what was told before this view: in itself it has the order
	 * of completion. */
	late = calloc(view->count + 1, sizeof(*late));
	if (late == NULL)
		return -1;
	for (size_t i = 0; i < view->count; i++)
		late[i] = view->checkpoints[i]->state == CHECKPOINT_COMPLETE &&
		    is_late(told, view->checkpoints[i]);
	for (size_t i = 0; i < view->count && result == 0; i++) {
		if (!was_told(find_name(told, view->checkpoints[i]->name),
		    view->checkpoints[i]))
			result = tell_one(&teller, view->checkpoints[i],
			    late[i]);
	}
	free(late);
	return result;
}

void
told_free(struct told *told)
{
	if (told == NULL)
		return;
	for (size_t i = 0; i < told->count; i++)
		name_clear(&told->names[i]);
	free(told->names);
	for (size_t i = 0; i < told->series_count; i++) {
		free(told->series[i].series);
		free(told->series[i].name);
	}
	free(told->series);
	free(told);
}
