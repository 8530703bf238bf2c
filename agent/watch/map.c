#include "watch/map.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "watch/pattern.h"
#include "watch/pointer.h"
#include "watch/tree.h"

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory while looking at the directory");
}

/* Make room for one more in an array of items of ${size} bytes. */
static void *
grow(void *array, size_t count, size_t size)
{
	/* Powers of two are full. */
	if (count > 0 && (count & (count - 1)) != 0)
		return array;
	return realloc(array, (count > 0 ? count * 2 : 1) * size);
}

/* A new unit without nodes; ${name} is taken over, also when it fails. */
static struct unit *
add_unit(struct map *map, const struct layout *layout, char *name,
    size_t folder, struct error *error)
{
	struct unit *units, *unit;

	if (name == NULL) {
		no_memory(error);
		return NULL;
	}
	units = grow(map->units, map->unit_count, sizeof(*units));
	if (units == NULL) {
		free(name);
		no_memory(error);
		return NULL;
	}
	map->units = units;
	unit = &units[map->unit_count];
	*unit = (struct unit){ .layout = layout, .name = name,
	    .folder = folder, .top = SIZE_MAX };
	if (series_of(name, &unit->series) != 0) {
		free(name);
		no_memory(error);
		return NULL;
	}
	if (layout->final && unit->series.role == ROLE_RESUME)
		unit->series.role = ROLE_FINAL;
	map->unit_count++;
	return unit;
}

/* Give the last unit the node ${at} and all beneath it. */
static int
add_nodes(struct map *map, size_t at, struct error *error)
{
	struct unit *unit = &map->units[map->unit_count - 1];
	const struct tree_node *nodes = map->tree->nodes;

	for (size_t i = at; i < nodes[at].end; i++) {
		size_t *larger;

		map->owner[i] = OWNER_IGNORED;
		if (nodes[i].left_out ||
		    (i != at && layout_is_ignored(nodes[i].base)))
			continue;
		map->owner[i] = map->unit_count - 1;
		larger = grow(unit->nodes, unit->count, sizeof(*larger));
		if (larger == NULL)
			return no_memory(error);
		unit->nodes = larger;
		unit->nodes[unit->count++] = i;
	}
	return 0;
}

/* A unit that has only folders holds nothing: not yet, or all left out. */
static void
drop_empty(struct map *map)
{
	struct unit *unit = &map->units[map->unit_count - 1];

	for (size_t i = 0; i < unit->count; i++) {
		if (map->tree->nodes[unit->nodes[i]].kind != TREE_FOLDER)
			return;
	}
	for (size_t i = 0; i < unit->count; i++)
		map->owner[unit->nodes[i]] = OWNER_IGNORED;
	free(unit->name);
	free(unit->series.name);
	free(unit->nodes);
	map->unit_count--;
}

/* Whether ${node} is a file that a group or a row may still take. */
static bool
is_free_file(const struct map *map, size_t node)
{
	return map->tree->nodes[node].kind == TREE_FILE &&
	    map->owner[node] == OWNER_NONE;
}

/* The name of a group: the first of the title's names that is there. */
static char *
group_name(const struct map *map, size_t folder, const struct layout *row)
{
	const char *title = row->title;
	char name[128];

	for (;;) {
		size_t length = strcspn(title, "|");

		if (length >= sizeof(name))
			return NULL;
		memcpy(name, title, length);
		name[length] = '\0';
		if (tree_child(map->tree, folder, name) != SIZE_MAX)
			break;
		if (title[length] == '\0') {
			length = strcspn(row->title, "|");
			memcpy(name, row->title, length);
			name[length] = '\0';
			break;
		}
		title += length + 1;
	}
	return path_join(map->tree->nodes[folder].path, name);
}

static int
take_group(struct map *map, size_t folder, const struct layout *row,
    struct error *error)
{
	const struct tree_node *nodes = map->tree->nodes;
	bool found = false;

	for (size_t i = folder + 1; i < nodes[folder].end && !found;
	    i = nodes[i].end)
		found = is_free_file(map, i) &&
		    pattern_matches(row->name, nodes[i].base);
	if (!found || (row->holds != NULL &&
	    !layout_holds(map->tree, folder, row->holds)))
		return 0;
	if (add_unit(map, row, group_name(map, folder, row), folder,
	    error) == NULL)
		return -1;
	for (size_t i = folder + 1; i < nodes[folder].end; i = nodes[i].end) {
		if (is_free_file(map, i) &&
		    pattern_matches(row->members, nodes[i].base) &&
		    add_nodes(map, i, error) != 0)
			return -1;
	}
	drop_empty(map);
	return 0;
}

/*
 * Take the files from ${first} on (names are sorted) that begin with the
 * ${length} bytes of its path and match ${members}, as the unit ${name}.
 */
static int
take_run(struct map *map, size_t folder, size_t first, size_t length,
    const char *members, const struct layout *row, char *name,
    struct error *error)
{
	const struct tree_node *nodes = map->tree->nodes;
	const char *path = nodes[first].path;

	if (add_unit(map, row, name, folder, error) == NULL)
		return -1;
	for (size_t i = first; i < nodes[folder].end &&
	    strncmp(nodes[i].path, path, length) == 0; i = nodes[i].end) {
		if (is_free_file(map, i) &&
		    pattern_matches(members, nodes[i].base) &&
		    add_nodes(map, i, error) != 0)
			return -1;
	}
	drop_empty(map);
	return 0;
}

/* "ckpt-12.data-00000-of-00001" and its index; and the files of ranks. */
static int
take_runs(struct map *map, size_t folder, struct error *error)
{
	const struct tree_node *nodes = map->tree->nodes;

	for (size_t i = folder + 1; i < nodes[folder].end; i = nodes[i].end) {
		const char *path = nodes[i].path;
		size_t length;

		if (!is_free_file(map, i))
			continue;
		if (pattern_matches("*.data-#-of-#", nodes[i].base)) {
			length = (size_t)(strrchr(path, '.') - path);
			if (take_run(map, folder, i, length + 1,
			    "*.data-#-of-#|*.index|*.meta",
			    &layout_tensorflow, strndup(path, length),
			    error) != 0)
				return -1;
		} else if (pattern_matches("ep#-ba#-rank#.pt",
		    nodes[i].base)) {
			length = (size_t)(strstr(nodes[i].base, "-rank") -
			    path) + strlen("-rank");
			if (take_run(map, folder, i, length,
			    "ep#-ba#-rank#.pt", &layout_composer_ranks,
			    strdup(path), error) != 0)
				return -1;
		}
	}
	return 0;
}

static int
take_file(struct map *map, size_t folder, size_t at, struct error *error)
{
	const struct tree_node *node = &map->tree->nodes[at];
	const struct layout *row = layout_of_file(node->path);
	char gda[256];
	size_t beside;

	if (node->left_out || ((row == NULL || !row->temporary) &&
	    layout_is_ignored(node->base))) {
		map->owner[at] = OWNER_IGNORED;
		return 0;
	}
	if (pattern_matches(LAYOUT_POINTERS, node->base)) {
		map->owner[at] = OWNER_POINTER;
		return 0;
	}
	if (row == NULL) {
		map->owner[at] = OWNER_COMPANION;
		return 0;
	}
	if (add_unit(map, row, strdup(node->path), folder, error) == NULL ||
	    add_nodes(map, at, error) != 0)
		return -1;
	if (strcmp(row->word, "flax") == 0 && (size_t)snprintf(gda,
	    sizeof(gda), "%s_gda", node->base) < sizeof(gda)) {
		beside = tree_child(map->tree, folder, gda);
		if (beside != SIZE_MAX &&
		    map->tree->nodes[beside].kind == TREE_FOLDER)
			return add_nodes(map, beside, error);
	}
	return 0;
}

static int take_folder(struct map *map, size_t folder, struct error *error);

/* A folder in a folder: a checkpoint, or just a folder. */
static int
take_child_folder(struct map *map, size_t folder, size_t at,
    struct error *error)
{
	const struct tree_node *node = &map->tree->nodes[at];
	const struct layout *row = layout_of_folder(map->tree, at);

	if (row == NULL) {
		map->owner[at] = OWNER_COMPANION;
		return take_folder(map, at, error);
	}
	if (add_unit(map, row, strdup(node->path), folder, error) == NULL)
		return -1;
	map->units[map->unit_count - 1].top = at;
	if (add_nodes(map, at, error) != 0)
		return -1;
	if (!row->temporary)
		drop_empty(map);
	return 0;
}

/* All that lies in a folder that is no checkpoint. */
static int
take_folder(struct map *map, size_t folder, struct error *error)
{
	const struct tree_node *nodes = map->tree->nodes;
	const struct layout *row;

	for (size_t i = 0; (row = layout_group(i)) != NULL; i++) {
		if (take_group(map, folder, row, error) != 0)
			return -1;
	}
	if (take_runs(map, folder, error) != 0)
		return -1;
	for (size_t i = folder + 1; i < nodes[folder].end; i = nodes[i].end) {
		if (map->owner[i] != OWNER_NONE)
			continue;
		if (nodes[i].kind == TREE_LINK)
			map->owner[i] = nodes[i].left_out ? OWNER_IGNORED :
			    OWNER_POINTER;
		else if ((nodes[i].kind == TREE_FILE ?
		    take_file(map, folder, i, error) :
		    take_child_folder(map, folder, i, error)) != 0)
			return -1;
	}
	return 0;
}

static int
compare_units(const void *a, const void *b)
{
	return strcmp(((const struct unit *)a)->name,
	    ((const struct unit *)b)->name);
}

/* Sort the units by name, and tell their nodes. */
static void
sort_units(struct map *map)
{
	if (map->unit_count > 0)
		qsort(map->units, map->unit_count, sizeof(*map->units),
		    compare_units);
	for (size_t i = 0; i < map->unit_count; i++) {
		for (size_t k = 0; k < map->units[i].count; k++)
			map->owner[map->units[i].nodes[k]] = i;
	}
}

/* What may be a pointer is one when it names a checkpoint. */
static int
gather(struct map *map, struct error *error)
{
	const struct tree_node *nodes = map->tree->nodes;

	for (size_t i = 1; i < map->tree->count; i++) {
		size_t unit = SIZE_MAX;

		if (map->owner[i] == OWNER_POINTER) {
			unit = pointer_read(map, i);
			if (unit == SIZE_MAX && (nodes[i].kind == TREE_LINK ||
			    !pattern_matches("latest*|last_checkpoint",
			    nodes[i].base)))
				map->owner[i] = OWNER_COMPANION;
		}
		if (map->owner[i] == OWNER_POINTER) {
			struct pointer *larger = grow(map->pointers,
			    map->pointer_count, sizeof(*larger));

			if (larger == NULL)
				return no_memory(error);
			map->pointers = larger;
			map->pointers[map->pointer_count++] =
			    (struct pointer){ .node = i, .unit = unit };
		} else if (map->owner[i] == OWNER_COMPANION &&
		    nodes[i].kind != TREE_FOLDER) {
			size_t *larger = grow(map->companions,
			    map->companion_count, sizeof(*larger));

			if (larger == NULL)
				return no_memory(error);
			map->companions = larger;
			map->companions[map->companion_count++] = i;
		}
	}
	return 0;
}

struct map *
map_make(const struct tree *tree, struct error *error)
{
	struct map *map = calloc(1, sizeof(*map));

	if (map == NULL) {
		no_memory(error);
		return NULL;
	}
	map->tree = tree;
	if (tree->count == 0)
		return map;
	map->owner = malloc(tree->count * sizeof(*map->owner));
	if (map->owner == NULL) {
		no_memory(error);
		goto failed;
	}
	for (size_t i = 0; i < tree->count; i++)
		map->owner[i] = OWNER_NONE;
	if (take_folder(map, 0, error) != 0)
		goto failed;
	sort_units(map);
	if (gather(map, error) != 0)
		goto failed;
	return map;
failed:
	map_free(map);
	return NULL;
}

size_t
map_unit(const struct map *map, const char *name)
{
	struct unit key = { .name = (char *)name };
	const struct unit *found;

	if (map->unit_count == 0)
		return SIZE_MAX;
	found = bsearch(&key, map->units, map->unit_count,
	    sizeof(*map->units), compare_units);
	return found != NULL ? (size_t)(found - map->units) : SIZE_MAX;
}

void
map_free(struct map *map)
{
	if (map == NULL)
		return;
	for (size_t i = 0; i < map->unit_count; i++) {
		free(map->units[i].name);
		free(map->units[i].series.name);
		free(map->units[i].nodes);
	}
	free(map->units);
	free(map->owner);
	free(map->pointers);
	free(map->companions);
	free(map);
}
