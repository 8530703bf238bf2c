#include "store/file_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/file_path.h"

/* Our own keys have five folders; whatever else lies there has an end too. */
#define DEPTH_MAXIMUM 16

/* One line of a folder. */
struct line {
	char *name;		/* a folder's ends in '/', so that keys sort */
	bool folder;
	uint64_t size;
};

struct lines {
	struct line *items;
	size_t count, capacity;
};

struct walk {
	int root;
	const char *prefix;
	backend_visit visit;
	void *context;
	struct error *error;
};

/* What a walk step may say besides 0 and -1. */
#define STOP 1

static void
lines_free(struct lines *lines)
{
	size_t i;

	for (i = 0; i < lines->count; i++)
		free(lines->items[i].name);
	free(lines->items);
	*lines = (struct lines){ 0 };
}

static int
lines_add(struct lines *lines, const char *name, bool folder, uint64_t size)
{
	size_t length = strlen(name);
	char *text;

	if (lines->count == lines->capacity) {
		size_t capacity = lines->capacity == 0 ? 16 :
		    lines->capacity * 2;
		struct line *items = realloc(lines->items,
		    capacity * sizeof(*items));

		if (items == NULL)
			return -1;
		lines->items = items;
		lines->capacity = capacity;
	}
	text = malloc(length + 2);
	if (text == NULL)
		return -1;
	memcpy(text, name, length);
	text[length] = folder ? '/' : '\0';
	text[length + 1] = '\0';
	lines->items[lines->count++] = (struct line){ text, folder, size };
	return 0;
}

static int
compare_lines(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->name,
	    ((const struct line *)b)->name);
}

/* Add one name: a file or a folder; what else it is or that is gone is not. */
static int
take_name(int fd, const char *name, struct lines *lines)
{
	struct stat status;

	/* No key's component starts with a dot, but half-written objects do. */
	if (name[0] == '.')
		return 0;
	if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : -1;
	if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
		return 0;
	if (lines_add(lines, name, S_ISDIR(status.st_mode),
	    (uint64_t)status.st_size) != 0) {
		errno = ENOMEM;
		return -1;
	}
	return 0;
}

/* Read the folder ${path}; one that is gone is empty.  Return 0, or errno. */
static int
read_folder(int root, const char *path, struct lines *lines)
{
	struct dirent *entry;
	DIR *folder;
	int fd, saved = 0;

	fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : errno;
	folder = fdopendir(fd);
	if (folder == NULL) {
		saved = errno;
		close(fd);
		return saved;
	}
	for (errno = 0; (entry = readdir(folder)) != NULL; errno = 0) {
		if (take_name(dirfd(folder), entry->d_name, lines) != 0)
			break;
	}
	saved = errno;
	closedir(folder);
	if (lines->count > 1)
		qsort(lines->items, lines->count, sizeof(*lines->items),
		    compare_lines);
	return saved;
}

/* "folder/name" without a doubled or trailing slash; false when too long. */
static bool
join(const char *folder, const char *name, char path[FILE_PATH_SIZE])
{
	int length = strcmp(folder, ".") == 0 ?
	    snprintf(path, FILE_PATH_SIZE, "%s", name) :
	    snprintf(path, FILE_PATH_SIZE, "%s/%s", folder, name);

	if (length < 0 || length >= FILE_PATH_SIZE)
		return false;
	if (length > 0 && path[length - 1] == '/')
		path[length - 1] = '\0';
	return true;
}

static int walk_folder(const struct walk *walk, const char *path,
    const char *keys, int depth);

static int
walk_line(const struct walk *walk, const struct line *line, const char *path,
    const char *keys, int depth)
{
	struct backend_entry entry = { .size = line->size };
	char inner[FILE_PATH_SIZE], key[FILE_PATH_SIZE];
	bool spread = line->folder && strlen(line->name) == 3 &&
	    file_path_holds_chunks(keys);

	if (!join(path, line->name, inner) || !join(keys, line->name, key))
		return 0;	/* too long to be a key */
	if (line->folder)
		return walk_folder(walk, inner, spread ? keys : key, depth + 1);
	if (strncmp(key, walk->prefix, strlen(walk->prefix)) != 0)
		return 0;
	entry.key = key;
	return walk->visit(walk->context, &entry, walk->error);
}

/* Visit what lies in ${path}, whose keys start with ${keys}. */
static int
walk_folder(const struct walk *walk, const char *path, const char *keys,
    int depth)
{
	struct lines lines = { 0 };
	int failure, result = 0;
	size_t i;

	if (depth > DEPTH_MAXIMUM)
		return 0;
	failure = read_folder(walk->root, path, &lines);
	if (failure != 0)
		result = file_path_failure(walk->error, failure, path,
		    "reading the folder");
	for (i = 0; i < lines.count && result == 0; i++)
		result = walk_line(walk, &lines.items[i], path, keys, depth);
	lines_free(&lines);
	return result;
}

static int
stop_at_first(void *context, const struct backend_entry *entry,
    struct error *error)
{
	(void)context;
	(void)entry;
	(void)error;
	return STOP;
}

/* One entry for the folder ${line}, unless no object lies in it. */
static int
visit_folded(const struct walk *walk, const struct line *line,
    const char *folder)
{
	struct walk probe = *walk;
	struct backend_entry entry = { .is_prefix = true };
	char path[FILE_PATH_SIZE], key[FILE_PATH_SIZE + 1];
	int found;

	if (!join(folder, line->name, path))
		return 0;
	snprintf(key, sizeof(key), "%s/", path);
	if (strncmp(key, walk->prefix, strlen(walk->prefix)) != 0)
		return 0;
	probe.prefix = "";
	probe.visit = stop_at_first;
	found = walk_folder(&probe, path, path, 1);
	if (found != STOP)
		return found;
	entry.key = key;
	return walk->visit(walk->context, &entry, walk->error);
}

static int
fold_folder(const struct walk *walk, const char *folder)
{
	struct lines lines = { 0 };
	int failure, result = 0;
	size_t i;

	failure = read_folder(walk->root, folder, &lines);
	if (failure != 0)
		result = file_path_failure(walk->error, failure, folder,
		    "reading the folder");
	for (i = 0; i < lines.count && result == 0; i++) {
		if (lines.items[i].folder)
			result = visit_folded(walk, &lines.items[i], folder);
		else
			result = walk_line(walk, &lines.items[i], folder,
			    folder, 0);
	}
	lines_free(&lines);
	return result;
}

int
file_list(int root, const char *prefix, bool fold, backend_visit visit,
    void *context, struct error *error)
{
	const struct walk walk = { root, prefix, visit, context, error };
	char folder[FILE_PATH_SIZE];
	int absent;

	if (strlen(prefix) >= KEY_SIZE)
		return error_set(error, ERROR_FAILED, CAUSE_OTHER, prefix,
		    "is too long for a prefix");
	file_path_parent(prefix, folder);
	if (file_path_check_root(root, error) != 0)
		return -1;
	/* A client's memory of a folder that was missing proves nothing. */
	if (strcmp(folder, ".") != 0) {
		absent = file_path_is_absent(root, folder, error);
		if (absent != 0)
			return absent < 0 ? -1 : 0;
	}
	return fold ? fold_folder(&walk, folder) :
	    walk_folder(&walk, folder, folder, 0);
}
