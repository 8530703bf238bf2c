#include "watch/pointer.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "watch/map.h"
#include "watch/tree.h"

/* Longer than any path; a TensorFlow list of checkpoints names the newest
 * first. */
#define TEXT_SIZE (PATH_MAX * 2)

/* The unit at ${path}, or around it, or that has it as a part. */
static size_t
unit_at(const struct map *map, const char *path)
{
	size_t node = tree_find(map->tree, path);

	if (node != SIZE_MAX && map->owner[node] < map->unit_count)
		return map->owner[node];
	return map_unit(map, path);
}

/* The unit named ${name} in the folder of ${node}. */
static size_t
unit_beside(const struct map *map, size_t node, const char *name)
{
	size_t folder = map->tree->nodes[node].parent;
	char path[PATH_MAX];
	const char *parent = map->tree->nodes[folder].path;
	int length;

	while (strncmp(name, "./", 2) == 0)
		name += 2;
	length = snprintf(path, sizeof(path), "%s%s%s", parent,
	    *parent != '\0' ? "/" : "", name);
	if (length < 0 || (size_t)length >= sizeof(path))
		return SIZE_MAX;
	return unit_at(map, path);
}

/*
 * A path as a trainer writes it: from the folder of the pointer, from its
 * working directory, or absolute, here or on another machine.
 */
static size_t
unit_of_text(const struct map *map, size_t node, const char *text)
{
	const struct tree *tree = map->tree;
	size_t length = strlen(tree->real), unit;

	if (strncmp(text, tree->real, length) == 0 && text[length] == '/')
		return unit_at(map, text + length + 1);
	if (*text != '/') {
		unit = unit_beside(map, node, text);
		if (unit != SIZE_MAX)
			return unit;
		unit = unit_at(map, text);
		if (unit != SIZE_MAX)
			return unit;
	}
	return unit_beside(map, node, path_base(text));
}

/* Megatron and verl: the number of the iteration alone. */
static size_t
unit_of_tracker(const struct map *map, size_t node, const char *text)
{
	char name[64], *end;
	unsigned long long number;
	size_t unit;

	if (!isdigit((unsigned char)*text))
		return unit_beside(map, node, text);
	number = strtoull(text, &end, 10);
	if (*end != '\0')
		return SIZE_MAX;
	snprintf(name, sizeof(name), "iter_%07llu", number);
	unit = unit_beside(map, node, name);
	if (unit != SIZE_MAX)
		return unit;
	snprintf(name, sizeof(name), "global_step_%llu", number);
	return unit_beside(map, node, name);
}

/* TensorFlow's text form of CheckpointState. */
static size_t
unit_of_state(const struct map *map, size_t node, char *text)
{
	char *begin = strstr(text, "model_checkpoint_path: \""), *end;

	if (begin == NULL || (begin != text && begin[-1] != '\n'))
		return SIZE_MAX;
	begin = strchr(begin, '"') + 1;
	end = strchr(begin, '"');
	if (end == NULL)
		return SIZE_MAX;
	*end = '\0';
	return unit_of_text(map, node, begin);
}

/* Read the beginning of the file ${node} as text. */
static int
read_text(const struct map *map, size_t node, char text[TEXT_SIZE])
{
	const struct tree_node *file = &map->tree->nodes[node];
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = openat(map->tree->folder, file->path,
	    file->follow ? flags : flags | O_NOFOLLOW);
	ssize_t length;

	if (fd == -1)
		return -1;
	length = pread(fd, text, TEXT_SIZE - 1, 0);
	close(fd);
	if (length <= 0)
		return -1;
	text[length] = '\0';
	return 0;
}

size_t
pointer_read(const struct map *map, size_t node)
{
	const struct tree_node *file = &map->tree->nodes[node];
	char text[TEXT_SIZE];
	size_t length;

	if (file->kind == TREE_LINK)
		return unit_at(map, file->resolved);
	if (read_text(map, node, text) != 0)
		return SIZE_MAX;
	if (strcmp(file->base, "checkpoint") == 0)
		return unit_of_state(map, node, text);
	length = strcspn(text, "\r\n");
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	text[length] = '\0';
	if (length == 0 || length >= PATH_MAX)
		return SIZE_MAX;
	if (strstr(file->base, "iteration") != NULL ||
	    strstr(file->base, "step") != NULL)
		return unit_of_tracker(map, node, text);
	return unit_of_text(map, node, text);
}
