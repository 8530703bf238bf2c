#include "watch/tree.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "watch/choice.h"
#include "watch/link.h"
#include "watch/place.h"
#include "watch/view.h"

struct scanner {
	struct tree *tree;
	const struct view_options *options;
	const struct view_guide *guide;
};

/* The names in one folder. */
struct names {
	char **names;
	size_t count;
	size_t capacity;
};

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory while looking at the directory");
}

static void
names_free(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
}

static int
names_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
names_add(struct names *names, const char *name, struct error *error)
{
	if (names->count == names->capacity) {
		size_t capacity = names->capacity ? names->capacity * 2 : 64;
		char **larger;

		if (capacity > TREE_NODES_MAXIMUM * 2) {
			return error_set(error, ERROR_FAILED, CAUSE_LIMIT, name,
			    "more than %zu names in one folder",
			    TREE_NODES_MAXIMUM);
		}
		larger = realloc(names->names, capacity * sizeof(*larger));
		if (larger == NULL)
			return no_memory(error);
		names->names = larger;
		names->capacity = capacity;
	}
	names->names[names->count] = strdup(name);
	if (names->names[names->count] == NULL)
		return no_memory(error);
	names->count++;
	return 0;
}

/* Read and sort the names in ${folder}, which this closes. */
static int
names_read(struct names *names, DIR *folder, const char *path,
    struct error *error)
{
	struct dirent *entry;

	for (;;) {
		errno = 0;
		entry = readdir(folder);
		if (entry == NULL)
			break;
		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		if (names_add(names, entry->d_name, error) != 0)
			return -1;
	}
	if (errno != 0)
		return error_set_errno(error, errno, path, "cannot list");
	if (names->count > 0)
		qsort(names->names, names->count, sizeof(char *), names_compare);
	return 0;
}

static void
note(struct tree *tree, const struct error *what)
{
	struct error *larger;

	/* A note is not worth failing for. */
	if (tree->note_count == TREE_NOTES_MAXIMUM)
		return;
	larger = realloc(tree->notes,
	    (tree->note_count + 1) * sizeof(*larger));
	if (larger == NULL)
		return;
	tree->notes = larger;
	tree->notes[tree->note_count++] = *what;
}

/* Add a node for ${path}, which is taken over, also when it fails. */
static struct tree_node *
add_node(struct tree *tree, size_t parent, char *path,
    const struct stat *status, struct error *error)
{
	struct tree_node *node;

	if (path == NULL) {
		no_memory(error);
		return NULL;
	}
	if (tree->count == TREE_NODES_MAXIMUM) {
		error_set(error, ERROR_FAILED, CAUSE_LIMIT, path,
		    "more than %zu files in the directory", TREE_NODES_MAXIMUM);
		error_cure(error, "watch a folder that holds the checkpoints "
		    "alone, or leave folders out with --exclude");
		free(path);
		return NULL;
	}
	if (tree->count == tree->capacity) {
		size_t capacity = tree->capacity ? tree->capacity * 2 : 256;
		struct tree_node *larger = realloc(tree->nodes,
		    capacity * sizeof(*larger));

		if (larger == NULL) {
			free(path);
			no_memory(error);
			return NULL;
		}
		tree->nodes = larger;
		tree->capacity = capacity;
	}
	node = &tree->nodes[tree->count++];
	*node = (struct tree_node){ .path = path, .base = path_base(path),
	    .mode = status->st_mode & 07777, .parent = parent,
	    .end = tree->count, .identity = identity_of(status) };
	return node;
}

static int scan_folder(struct scanner *scanner, int fd, size_t at,
    unsigned depth, struct error *error);

/* Walk the folder that is node ${at}, named ${name} in ${parent}. */
static int
descend(struct scanner *scanner, int parent, const char *name, size_t at,
    unsigned depth, struct error *error)
{
	struct tree *tree = scanner->tree;
	struct error what;
	int fd;

	if (depth == TREE_DEPTH_MAXIMUM) {
		error_set(&what, ERROR_FAILED, CAUSE_LIMIT, tree->nodes[at].path,
		    "folders are nested more than %d deep; what is beneath is "
		    "not seen", TREE_DEPTH_MAXIMUM);
		note(tree, &what);
		return 0;
	}
	fd = openat(parent, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return error_set_errno(error, errno, tree->nodes[at].path,
		    "cannot open the folder");
	if (fd == -1) {
		if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
			error_set_errno(&what, errno, tree->nodes[at].path,
			    "the folder cannot be read; what is in it is "
			    "not seen");
			note(tree, &what);
		}
		return 0;
	}
	return scan_folder(scanner, fd, at, depth + 1, error);
}

/* Make a node of the link ${name}; one that leads nowhere gets none. */
static int
scan_link(struct scanner *scanner, int fd, const char *name, size_t parent,
    char *path, const struct stat *status, struct error *error)
{
	struct tree *tree = scanner->tree;
	struct error what = ERROR_INIT;
	struct link link;
	struct stat content;
	struct tree_node *node;
	enum link_kind kind = link_look(tree->real, path, fd, name, &link,
	    &content, &what);

	if (what.class != ERROR_NONE)
		note(tree, &what);
	if (kind == LINK_NOWHERE) {
		free(path);
		return 0;
	}
	node = add_node(tree, parent, path,
	    kind == LINK_OUTSIDE ? &content : status, error);
	if (node == NULL) {
		link_clear(&link);
		return -1;
	}
	node->remote = tree->nodes[parent].remote;
	node->left_out = !choice_has_file(scanner->options, node->path);
	if (kind == LINK_OUTSIDE) {
		node->kind = TREE_FILE;
		node->follow = true;
		return 0;
	}
	node->kind = TREE_LINK;
	node->target = link.target;
	node->resolved = link.resolved;
	return 0;
}

static int
scan_name(struct scanner *scanner, int fd, const char *name, size_t parent,
    unsigned depth, struct error *error)
{
	struct tree *tree = scanner->tree;
	struct tree_node *node;
	struct stat status;
	char *path;

	if (parent == 0 && strncmp(name, ".ckptsync-", 10) == 0)
		return 0;
	if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
		return 0;	/* it has gone; the scan that sees that follows */
	if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) &&
	    !S_ISLNK(status.st_mode))
		return 0;
	path = path_join(tree->nodes[parent].path, name);
	if (path == NULL)
		return no_memory(error);
	if (S_ISLNK(status.st_mode))
		return scan_link(scanner, fd, name, parent, path, &status, error);
	if (S_ISDIR(status.st_mode) &&
	    !choice_has_folder(scanner->options, path)) {
		free(path);
		return 0;
	}
	node = add_node(tree, parent, path, &status, error);
	if (node == NULL)
		return -1;
	node->remote = tree->nodes[parent].remote;
	if (S_ISDIR(status.st_mode)) {
		node->kind = TREE_FOLDER;
		return descend(scanner, fd, name, tree->count - 1, depth, error);
	}
	node->kind = TREE_FILE;
	node->left_out = !choice_has_file(scanner->options, path);
	return 0;
}

/* Walk the open folder ${fd}, node ${at}.  Closes ${fd}. */
static int
scan_folder(struct scanner *scanner, int fd, size_t at, unsigned depth,
    struct error *error)
{
	struct tree *tree = scanner->tree;
	struct tree_node *node = &tree->nodes[at];
	struct names names = { 0 };
	struct stat status;
	DIR *folder;
	int result = -1;

	/* It may be another one by now than the one that had a stat. */
	if (fstat(fd, &status) == 0)
		node->identity = identity_of(&status);
	if (at == 0 ||
	    node->identity.device != tree->nodes[node->parent].identity.device)
		node->remote = place_is_remote(fd);
	tree->blind |= node->remote;
	tree->folder_count++;
	if (scanner->guide != NULL) {
		scanner->guide->enter(scanner->guide->context, fd,
		    &node->identity);
	}
	folder = fdopendir(fd);
	if (folder == NULL) {
		close(fd);
		return error_set_errno(error, errno, node->path, "cannot list");
	}
	if (names_read(&names, folder, node->path, error) != 0)
		goto done;
	for (size_t i = 0; i < names.count; i++) {
		if (scan_name(scanner, fd, names.names[i], at, depth,
		    error) != 0)
			goto done;
	}
	tree->nodes[at].end = tree->count;
	result = 0;
done:
	closedir(folder);
	names_free(&names);
	return result;
}

static int
compare_paths(const void *a, const void *b, void *context)
{
	const struct tree_node *nodes = context;

	return strcmp(nodes[*(const size_t *)a].path,
	    nodes[*(const size_t *)b].path);
}

static int
sort_paths(struct tree *tree, struct error *error)
{
	tree->by_path = calloc(tree->count, sizeof(*tree->by_path));
	if (tree->by_path == NULL)
		return no_memory(error);
	for (size_t i = 0; i < tree->count; i++)
		tree->by_path[i] = i;
	qsort_r(tree->by_path, tree->count, sizeof(*tree->by_path),
	    compare_paths, tree->nodes);
	return 0;
}

/* Open ${folder} and make node 0 of it.  A folder that is not there is fine. */
static int
open_folder(struct tree *tree, const char *folder, struct error *error)
{
	struct stat status;

	tree->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree->folder == -1 && errno == ENOENT)
		return 0;
	if (tree->folder == -1 || fstat(tree->folder, &status) != 0)
		return error_set_errno(error, errno, folder, "cannot open");
	tree->real = realpath(folder, NULL);
	if (tree->real == NULL)
		return error_set_errno(error, errno, folder, "cannot find");
	if (add_node(tree, 0, strdup(""), &status, error) == NULL)
		return -1;
	tree->nodes[0].kind = TREE_FOLDER;
	return 0;
}

struct tree *
tree_scan(const char *folder, const struct view_options *options,
    const struct view_guide *guide, struct error *error)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	struct scanner scanner = { .tree = tree, .options = options,
	    .guide = guide };
	int fd;

	if (tree == NULL) {
		no_memory(error);
		return NULL;
	}
	if (open_folder(tree, folder, error) != 0)
		goto failed;
	if (tree->folder == -1)
		return tree;
	fd = openat(tree->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1) {
		error_set_errno(error, errno, folder, "cannot open");
		goto failed;
	}
	if (scan_folder(&scanner, fd, 0, 0, error) != 0 ||
	    sort_paths(tree, error) != 0)
		goto failed;
	return tree;
failed:
	tree_free(tree);
	return NULL;
}

size_t
tree_find(const struct tree *tree, const char *path)
{
	size_t low = 0, high = tree->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		size_t at = tree->by_path[middle];
		int order = strcmp(path, tree->nodes[at].path);

		if (order == 0)
			return at;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return SIZE_MAX;
}

size_t
tree_child(const struct tree *tree, size_t folder, const char *name)
{
	char path[PATH_MAX];
	const char *parent = tree->nodes[folder].path;
	int length;

	length = snprintf(path, sizeof(path), "%s%s%s", parent,
	    *parent != '\0' ? "/" : "", name);
	if (length < 0 || (size_t)length >= sizeof(path))
		return SIZE_MAX;
	return tree_find(tree, path);
}

void
tree_free(struct tree *tree)
{
	if (tree == NULL)
		return;
	for (size_t i = 0; i < tree->count; i++) {
		free(tree->nodes[i].path);
		free(tree->nodes[i].target);
		free(tree->nodes[i].resolved);
	}
	free(tree->nodes);
	free(tree->by_path);
	free(tree->notes);
	free(tree->real);
	if (tree->folder != -1)
		close(tree->folder);
	free(tree);
}
