#include "watch/rule.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/path.h"
#include "watch/map.h"
#include "watch/pattern.h"
#include "watch/tree.h"

/* What may lie in a folder that is not finished. */
#define UNFINISHED "*.orbax-checkpoint-tmp*|.metadata.tmp|*-unfinished|" \
    "tmp-checkpoint-*"

/* More shards than any checkpoint has. */
#define SHARDS_MAXIMUM 1000000

struct check {
	const struct map *map;
	const struct unit *unit;
	const struct tree_node *nodes;
	struct rule *rule;
};

static bool __attribute__((format(printf, 2, 3)))
refuse(struct check *check, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(check->rule->reason, sizeof(check->rule->reason), format,
	    list);
	va_end(list);
	check->rule->met = false;
	return false;
}

static bool
is_older(const struct tree_node *a, const struct tree_node *b)
{
	const struct timespec *x = &a->identity.modified;
	const struct timespec *y = &b->identity.modified;

	return x->tv_sec < y->tv_sec ||
	    (x->tv_sec == y->tv_sec && x->tv_nsec < y->tv_nsec);
}

/* NeMo touches "<name>-unfinished" before it writes or deletes. */
static bool
check_sibling(struct check *check)
{
	const char *name = path_base(check->unit->name);
	static const char *const endings[] = { "", ".ckpt", ".nemo" };
	char sibling[NAME_MAX + 16];

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t length = strlen(name), ending = strlen(endings[i]);

		if (length <= ending ||
		    strcmp(name + length - ending, endings[i]) != 0)
			continue;
		snprintf(sibling, sizeof(sibling), "%.*s-unfinished",
		    (int)(length - ending), name);
		if (tree_child(check->map->tree, check->unit->folder,
		    sibling) != SIZE_MAX)
			return refuse(check, "%s is still there", sibling);
	}
	return true;
}

static bool
check_unwanted(struct check *check)
{
	const struct unit *unit = check->unit;

	if (unit->layout->temporary)
		return refuse(check, "its name is that of an unfinished save");
	if (unit->top == SIZE_MAX) {
		if (strcmp(unit->layout->word, "torch-dcp") == 0 &&
		    layout_holds(check->map->tree, unit->folder,
		    ".metadata.tmp"))
			return refuse(check, ".metadata.tmp is still there");
		return true;
	}
	for (size_t i = unit->top + 1; i < check->nodes[unit->top].end; i++) {
		if (pattern_matches(UNFINISHED, check->nodes[i].base))
			return refuse(check, "%s is still there",
			    check->nodes[i].path);
	}
	return true;
}

/* "a|b" as people say it. */
static void
write_list(char text[128], const char *patterns)
{
	size_t used = 0;

	for (; *patterns != '\0' && used < 120; patterns++) {
		if (*patterns == '|') {
			memcpy(text + used, " or ", 4);
			used += 4;
		} else {
			text[used++] = *patterns == '#' ? 'N' : *patterns;
		}
	}
	text[used] = '\0';
}

static bool
check_needs(struct check *check)
{
	const struct unit *unit = check->unit;
	size_t folder = unit->top != SIZE_MAX ? unit->top : unit->folder;
	char text[128];

	for (size_t i = 0; i < 2 && unit->layout->needs[i] != NULL; i++) {
		if (layout_holds(check->map->tree, folder,
		    unit->layout->needs[i]))
			continue;
		write_list(text, unit->layout->needs[i]);
		return refuse(check, "%s is missing", text);
	}
	return true;
}

/* Whether the marker or pointer must not be older than ${node}. */
static bool
comes_before(const struct check *check, size_t folder,
    const struct tree_node *node)
{
	const struct layout *row = check->unit->layout;
	size_t skip = strlen(check->nodes[folder].path);

	if (node->kind != TREE_FILE ||
	    (row->marker != NULL && pattern_matches(row->marker, node->base)) ||
	    (row->late != NULL && pattern_matches(row->late, node->base)))
		return false;
	if (row->before != NULL)
		return pattern_matches(row->before,
		    node->path + skip + (skip > 0));
	return node->parent == folder && layout_is_weights(node->base);
}

/* Whether ${marker} was written behind what comes before it. */
static bool
check_age(struct check *check, const struct tree_node *marker)
{
	const struct unit *unit = check->unit;
	size_t folder = unit->top != SIZE_MAX ? unit->top : unit->folder;

	for (size_t i = 0; i < unit->count; i++) {
		const struct tree_node *node = &check->nodes[unit->nodes[i]];

		if (comes_before(check, folder, node) &&
		    is_older(marker, node))
			return refuse(check, "%.64s is older than %.64s: it "
			    "is of an earlier save", marker->base, node->base);
	}
	return true;
}

/* The newest marker must be the last of the files that count. */
static bool
check_marker(struct check *check)
{
	const struct unit *unit = check->unit;
	const struct layout *row = unit->layout;
	size_t folder = unit->top != SIZE_MAX ? unit->top : unit->folder;
	const struct tree_node *newest = NULL;

	if (row->marker == NULL)
		return true;
	for (size_t i = folder + 1; i < check->nodes[folder].end;
	    i = check->nodes[i].end) {
		const struct tree_node *node = &check->nodes[i];

		if (node->kind == TREE_FILE &&
		    pattern_matches(row->marker, node->base) &&
		    (newest == NULL || is_older(newest, node)))
			newest = node;
	}
	if (newest == NULL)
		return refuse(check, "%s is missing", row->marker);
	return check_age(check, newest);
}

/*
 * DCP: in a folder that is written again the data files change while the old
 * .metadata still lies there.
 */
static bool
check_distcp(struct check *check)
{
	const struct unit *unit = check->unit;

	for (size_t i = 0; i < unit->count; i++) {
		const struct tree_node *node = &check->nodes[unit->nodes[i]];
		size_t metadata;

		if (node->kind != TREE_FILE ||
		    !pattern_matches("*.distcp", node->base))
			continue;
		metadata = tree_child(check->map->tree, node->parent,
		    ".metadata");
		if (metadata == SIZE_MAX)
			return refuse(check, ".metadata is missing beside %s",
			    node->path);
		if (is_older(&check->nodes[metadata], node))
			return refuse(check, ".metadata is older than %s: it "
			    "is of an earlier save", node->path);
	}
	return true;
}

/* Split "model-00002-of-00003.bin"; return the length before the number. */
static size_t
shard_prefix(const char *name, unsigned long *total)
{
	const char *of = strstr(name, "-of-");
	size_t length;

	if (of == NULL)
		return 0;
	*total = strtoul(of + 4, NULL, 10);
	length = (size_t)(of - name);
	while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9')
		length--;
	return length;
}

/* All of "-00001-of-00003" to "-00003-of-00003" must be there. */
static bool
check_run(struct check *check, size_t first, unsigned long *counted)
{
	const struct tree_node *node = &check->nodes[first];
	unsigned long total = 0, other, count = 0;
	size_t length = shard_prefix(node->base, &total);
	size_t end = check->nodes[node->parent].end;

	for (size_t i = first; i < end; i = check->nodes[i].end) {
		if (shard_prefix(check->nodes[i].base, &other) != length ||
		    other != total ||
		    strncmp(check->nodes[i].base, node->base, length) != 0)
			break;
		count++;
	}
	*counted = count;
	if (total > SHARDS_MAXIMUM || count < total)
		return refuse(check, "%lu of %lu shards like %s are there",
		    count, total, node->base);
	if (pattern_matches("model-#-of-#.safetensors|"
	    "pytorch_model-#-of-#.bin", node->base)) {
		char index[64];

		snprintf(index, sizeof(index), "%.*s%s.index.json",
		    (int)length - 1, node->base, strrchr(node->base, '.'));
		if (tree_child(check->map->tree, node->parent, index) ==
		    SIZE_MAX)
			return refuse(check, "%s is missing", index);
	}
	return true;
}

static bool
check_shards(struct check *check)
{
	const struct unit *unit = check->unit;
	unsigned long skip = 0;

	for (size_t i = 0; i < unit->count; i++) {
		const struct tree_node *node = &check->nodes[unit->nodes[i]];

		if (skip > 0) {
			skip--;
			continue;
		}
		if (node->kind != TREE_FILE ||
		    !pattern_matches("*-#-of-#.*|*-#-of-#", node->base))
			continue;
		if (!check_run(check, unit->nodes[i], &skip))
			return false;
		skip -= skip > 0;
	}
	return true;
}

static bool
check_index(struct check *check)
{
	const struct unit *unit = check->unit;
	char index[NAME_MAX + 1];
	size_t found;

	if (unit->layout != &layout_tensorflow)
		return true;
	snprintf(index, sizeof(index), "%.240s.index", path_base(unit->name));
	found = tree_child(check->map->tree, unit->folder, index);
	if (found == SIZE_MAX)
		return refuse(check, "%s is missing", index);
	for (size_t i = 0; i < unit->count; i++) {
		if (is_older(&check->nodes[found],
		    &check->nodes[unit->nodes[i]]) &&
		    !pattern_matches("*.meta",
		    check->nodes[unit->nodes[i]].base))
			return refuse(check, "%s is older than its data: it "
			    "is of an earlier save", index);
	}
	return true;
}

/* The pointer beside it must name it. */
static bool
check_pointer(struct check *check)
{
	const struct map *map = check->map;
	const char *patterns = check->unit->layout->pointer;
	char text[128];

	if (patterns == NULL)
		return true;
	for (size_t i = 0; i < map->pointer_count; i++) {
		const struct pointer *pointer = &map->pointers[i];
		const struct tree_node *node = &check->nodes[pointer->node];

		if (node->parent == check->unit->folder &&
		    pattern_matches(patterns, node->base) &&
		    pointer->unit < map->unit_count &&
		    &map->units[pointer->unit] == check->unit)
			return check_age(check, node);
	}
	write_list(text, patterns);
	return refuse(check, "%s does not name it", text);
}

/* DeepSpeed inside a checkpoint of others: `latest` names a folder there. */
static bool
check_inner_tag(struct check *check)
{
	const struct tree *tree = check->map->tree;
	struct buffer tag;
	struct error error;
	size_t latest;
	bool found;

	if (check->unit->top == SIZE_MAX)
		return true;
	latest = tree_child(tree, check->unit->top, "latest");
	if (latest == SIZE_MAX || check->nodes[latest].kind != TREE_FILE)
		return true;
	buffer_init(&tag, NAME_MAX);
	if (path_read_at(tree->folder, check->nodes[latest].path, &tag,
	    &error) != 0) {
		buffer_free(&tag);
		return refuse(check, "latest in it cannot be read");
	}
	if (tag.length > 0)
		tag.data[strcspn(tag.data, "\r\n")] = '\0';
	found = tag.length > 0 && path_is_harmless(tag.data) &&
	    tree_child(tree, check->unit->top, tag.data) != SIZE_MAX;
	if (!found)
		refuse(check, "latest in it names %.64s, which is missing",
		    buffer_text(&tag));
	buffer_free(&tag);
	return found;
}

struct rule
rule_check(const struct map *map, size_t unit)
{
	struct rule rule = { .met = true };
	struct check check = { .map = map, .unit = &map->units[unit],
	    .nodes = map->tree->nodes, .rule = &rule };
	const struct layout *row = check.unit->layout;
	size_t folder = check.unit->top != SIZE_MAX ? check.unit->top :
	    check.unit->folder;

	if (!check_unwanted(&check) || !check_sibling(&check) ||
	    !check_needs(&check) || !check_marker(&check) ||
	    !check_distcp(&check) || !check_shards(&check) ||
	    !check_index(&check) || !check_pointer(&check) ||
	    !check_inner_tag(&check))
		return rule;
	rule.proves = row->proves;
	rule.settle = row->settle;
	if (row->ready != NULL && layout_holds(map->tree, folder, row->ready))
		rule.settle = SETTLE_NOT;
	return rule;
}
