#include "store/manifest_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/manifest.h"

/* One path and where it stands. */
struct place {
	const struct manifest_entry *entry;
	int list;		/* entries, companions, pointers: 0, 1, 2 */
	size_t index;		/* in that list */
};

/*
 * How often a manifest's links may ask whether a step of theirs is a link
 * (only targets like "a/../b" do): hostile ones must not cost minutes.
 */
#define LOOKUPS_MAXIMUM 100000

struct places {
	struct place *items;
	size_t count;
	size_t lookups;
	const char *name;
	struct error *error;
};

/*
 * Order of paths in which '/' comes first: so all that lies beneath a path
 * follows it at once.
 */
static int
compare_paths(const char *a, const char *b)
{
	unsigned of_a, of_b;

	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	of_a = *a == '/' ? 1 : *a == '\0' ? 0 : (unsigned char)*a + 1U;
	of_b = *b == '/' ? 1 : *b == '\0' ? 0 : (unsigned char)*b + 1U;
	return (of_a > of_b) - (of_a < of_b);
}

static int
compare_places(const void *a, const void *b)
{
	return compare_paths(((const struct place *)a)->entry->path,
	    ((const struct place *)b)->entry->path);
}

static const struct place *
find(const struct places *places, const char *path)
{
	const struct manifest_entry entry = { .path = (char *)path };
	const struct place wanted = { .entry = &entry };

	return bsearch(&wanted, places->items, places->count,
	    sizeof(*places->items), compare_places);
}

static int
check_neighbours(const struct places *places)
{
	size_t i, length;

	for (i = 1; i < places->count; i++) {
		const struct manifest_entry *before = places->items[i - 1].entry;
		const char *path = places->items[i].entry->path;

		if (strcmp(before->path, path) == 0)
			return error_set(places->error, ERROR_DAMAGED,
			    CAUSE_OTHER, places->name,
			    "the path \"%s\" is there twice", path);
		length = strlen(before->path);
		if (before->kind != MANIFEST_FOLDER &&
		    strncmp(before->path, path, length) == 0 &&
		    path[length] == '/')
			return error_set(places->error, ERROR_DAMAGED,
			    CAUSE_OTHER, places->name,
			    "the path \"%s\" lies beneath a %s", path,
			    before->kind == MANIFEST_LINK ? "link" : "file");
	}
	return 0;
}

/* Whether ${path} is a link of this manifest, or that must not be asked. */
static bool
may_be_link(struct places *places, const char *path)
{
	const struct place *place;

	if (++places->lookups > LOOKUPS_MAXIMUM)
		return true;
	place = find(places, path);
	return place != NULL && place->entry->kind == MANIFEST_LINK;
}

/* Whether a ".." comes behind the leading ones. */
static bool
climbs_later(const char *target)
{
	while (strncmp(target, "../", 3) == 0)
		target += 3;
	return strstr(target, "/..") != NULL;
}

/*
 * Follow ${target} from the folder in ${path} (room for both, it is changed).
 * What a ".." behind another link means cannot be told from the text, so that
 * is refused.
 */
static bool
stays_inside(struct places *places, char *path, const char *target)
{
	size_t length = strlen(path), step;
	bool climbs = climbs_later(target), behind_link = false;

	for (; *target != '\0'; target += step) {
		step = strcspn(target, "/");
		if (step == 0) {
			step = 1;
		} else if (step == 1 && target[0] == '.') {
			continue;
		} else if (step == 2 && memcmp(target, "..", 2) == 0) {
			if (length == 0 || behind_link)
				return false;
			while (length > 0 && path[length - 1] != '/')
				length--;
			length -= length > 0;
			path[length] = '\0';
		} else {
			if (length > 0)
				path[length++] = '/';
			memcpy(path + length, target, step);
			length += step;
			path[length] = '\0';
			behind_link |= climbs && may_be_link(places, path);
		}
	}
	return true;
}

static int
check_link(struct places *places, const struct place *place)
{
	const struct manifest_entry *entry = place->entry;
	const char *slash = strrchr(entry->path, '/');
	size_t folder = slash == NULL ? 0 : (size_t)(slash - entry->path);
	size_t length = strlen(entry->target);
	char *path;
	bool inside;

	path = malloc(folder + length + 2);
	if (path == NULL)
		return error_set(places->error, ERROR_FAILED, CAUSE_MEMORY,
		    places->name, "out of memory");
	memcpy(path, entry->path, folder);
	path[folder] = '\0';
	inside = length > 0 && length <= 4095 && entry->target[0] != '/' &&
	    stays_inside(places, path, entry->target);
	free(path);
	if (!inside)
		return error_set(places->error, ERROR_DAMAGED, CAUSE_OTHER,
		    places->name, "the link \"%s\" points out of the "
		    "directory: \"%s\"", entry->path, entry->target);
	return 0;
}

static int
check_hard_link(const struct places *places, const struct place *place)
{
	const struct place *target = find(places, place->entry->target);

	if (target == NULL || target->list != place->list ||
	    target->index >= place->index ||
	    target->entry->kind != MANIFEST_FILE)
		return error_set(places->error, ERROR_DAMAGED, CAUSE_OTHER,
		    places->name, "the hard link \"%s\" names no earlier file:"
		    " \"%s\"", place->entry->path, place->entry->target);
	return 0;
}

static void
add(struct places *places, const struct manifest_entry *entries, size_t count,
    int list)
{
	size_t i;

	for (i = 0; i < count; i++) {
		places->items[places->count++] = (struct place){
			.entry = &entries[i], .list = list, .index = i };
	}
}

static int
check_links(struct places *places)
{
	size_t i;

	for (i = 0; i < places->count; i++) {
		const struct place *place = &places->items[i];

		if (place->entry->kind == MANIFEST_LINK &&
		    check_link(places, place) != 0)
			return -1;
		if (place->entry->kind == MANIFEST_HARD_LINK &&
		    check_hard_link(places, place) != 0)
			return -1;
	}
	return 0;
}

int
manifest_paths_check(const struct manifest *manifest, const char *name,
    struct error *error)
{
	struct places places = { .name = name, .error = error };
	int result = 0;

	places.items = calloc(manifest->entry_count +
	    manifest->companion_count + manifest->pointer_count + 1,
	    sizeof(*places.items));
	if (places.items == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, name,
		    "out of memory");
	add(&places, manifest->entries, manifest->entry_count, 0);
	add(&places, manifest->companions, manifest->companion_count, 1);
	add(&places, manifest->pointers, manifest->pointer_count, 2);
	qsort(places.items, places.count, sizeof(*places.items),
	    compare_places);
	if (check_neighbours(&places) != 0 || check_links(&places) != 0)
		result = -1;
	free(places.items);
	return result;
}
