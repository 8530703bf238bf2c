#include "move/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "move/beneath.h"
#include "move/walk.h"

struct prune {
	int folder;
	const struct part **parts;	/* of things to be made, by path */
	size_t count;
};

static int
compare_parts(const void *a, const void *b)
{
	const struct part *const *left = a, *const *right = b;

	return strcmp((*left)->entry->path, (*right)->entry->path);
}

/* The first part whose path is not before ${path}. */
static size_t
lower_bound(const struct prune *prune, const char *path)
{
	size_t low = 0, high = prune->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (strcmp(prune->parts[middle]->entry->path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether some part lies beneath the folder ${path}. */
static bool
leads_somewhere(const struct prune *prune, const char *path)
{
	size_t at, length = strlen(path);
	char *below;
	bool leads;

	if ((below = malloc(length + 2)) == NULL)
		return true;
	memcpy(below, path, length);
	below[length] = '/';
	below[length + 1] = '\0';
	at = lower_bound(prune, below);
	leads = at < prune->count && strncmp(prune->parts[at]->entry->path,
	    below, length + 1) == 0;
	free(below);
	return leads;
}

static int
visit(void *context, const char *path, const struct stat *status,
    struct error *error)
{
	const struct prune *prune = context;
	size_t at = lower_bound(prune, path);
	const struct part *part = NULL;
	mode_t mode = S_ISDIR(status->st_mode) ? 0700 : 0600;
	int parent, result = -1;
	bool stays;

	if (at < prune->count &&
	    strcmp(prune->parts[at]->entry->path, path) == 0)
		part = prune->parts[at];
	if (S_ISDIR(status->st_mode))
		stays = part != NULL ? part->entry->kind == MANIFEST_FOLDER :
		    leads_somewhere(prune, path);
	else
		stays = S_ISREG(status->st_mode) && part != NULL &&
		    part->content != NULL && status->st_nlink == 1;
	if (!stays)
		return path_remove_tree(prune->folder, path, error) == -1 ?
		    -1 : 1;
	/* A run that was cut may have set the final mode, which may forbid us
	 * to go on. */
	if ((status->st_mode & 07777) == mode)
		return 0;
	parent = beneath_parent(prune->folder, path, false);
	if (parent != -1)
		result = fchmodat(parent, path_base(path), mode, 0);
	if (result == -1)
		error_set_errno(error, errno, path, "cannot change its mode");
	if (parent != -1)
		close(parent);
	return result;
}

int
staging_prune(struct staging *staging, const struct selection *selection,
    struct error *error)
{
	struct prune prune = { .folder = staging_new(staging) };
	const struct item *item;
	size_t i, j;
	int result;

	prune.parts = calloc(selection->part_count + 1, sizeof(*prune.parts));
	if (prune.parts == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	for (i = 0; i < selection->item_count; i++) {
		item = &selection->items[i];
		for (j = 0; !item->settled && j < item->count; j++)
			prune.parts[prune.count++] =
			    &selection->parts[item->first + j];
	}
	qsort(prune.parts, prune.count, sizeof(*prune.parts), compare_parts);
	result = walk_beneath(prune.folder, "", visit, &prune, error);
	free(prune.parts);
	return result;
}
