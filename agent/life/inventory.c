#include "life/inventory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "move/match.h"
#include "store/truth.h"
#include "watch/view.h"

static int
tell(int folder, const struct truth *truth, struct inventory_item *item,
    struct error *error)
{
	size_t which = SIZE_MAX;

	if (truth != NULL && match_checkpoint(folder, item->checkpoint,
	    truth->valid, truth->count, &which, error) != 0) {
		/* Gone or rewritten since it was looked at: the watcher will
		 * tell of it again. */
		if (error->cause != CAUSE_CHANGED &&
		    error->cause != CAUSE_NOT_FOUND)
			return -1;
		error_clear(error);
		which = SIZE_MAX;
	}
	if (which != SIZE_MAX) {
		item->known = truth->valid[which];
		item->standing = INVENTORY_KNOWN;
	} else {
		item->standing = INVENTORY_NEWER;
	}
	return 0;
}

int
inventory_take(const char *folder, const struct view *view,
    const struct truth *truth, struct inventory *inventory,
    struct error *error)
{
	int fd = -1, result = -1;
	size_t i;

	memset(inventory, 0, sizeof(*inventory));
	if (view->count == 0)
		return 0;
	inventory->items = calloc(view->count, sizeof(*inventory->items));
	if (inventory->items == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, folder,
		    "out of memory for what lies in the directory");
	if ((fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		error_set_errno(error, errno, folder,
		    "could not open the directory");
		goto done;
	}
	for (i = 0; i < view->count; i++) {
		if (view->checkpoints[i]->state != CHECKPOINT_COMPLETE)
			continue;
		inventory->items[inventory->count].checkpoint =
		    view->checkpoints[i];
		if (tell(fd, truth, &inventory->items[inventory->count],
		    error) != 0)
			goto done;
		inventory->count++;
	}
	result = 0;
done:
	if (fd >= 0)
		close(fd);
	if (result != 0)
		inventory_free(inventory);
	return result;
}

bool
inventory_holds(const struct inventory *inventory,
    const struct manifest *manifest)
{
	size_t i;

	for (i = 0; i < inventory->count; i++)
		if (inventory->items[i].known == manifest)
			return true;
	return false;
}

void
inventory_sort(struct inventory *inventory,
    const struct precedence *precedence)
{
	struct inventory_item *item;
	size_t i;

	for (i = 0; i < inventory->count; i++) {
		item = &inventory->items[i];
		if (item->standing == INVENTORY_KNOWN)
			continue;
		item->standing = item->checkpoint->role != ROLE_RESUME ||
		    precedence_newer(precedence, item->checkpoint) ?
		    INVENTORY_NEWER : INVENTORY_OLDER;
	}
}

const struct inventory_item *
inventory_resume(const struct inventory *inventory, const struct view *view,
    const struct manifest *resume)
{
	const struct inventory_item *item, **items;
	struct checkpoint **locals;
	size_t i, count = 0, best = SIZE_MAX;
	bool counts;

	if (inventory->count == 0)
		return NULL;
	items = calloc(inventory->count, sizeof(*items));
	locals = calloc(inventory->count, sizeof(*locals));
	for (i = 0; items != NULL && locals != NULL &&
	    i < inventory->count; i++) {
		item = &inventory->items[i];
		/* With nothing in the remote everything here counts. */
		counts = resume == NULL ||
		    (item->standing == INVENTORY_NEWER &&
		    item->checkpoint->role == ROLE_RESUME);
		if (!counts)
			continue;
		items[count] = item;
		locals[count++] = (struct checkpoint *)item->checkpoint;
	}
	if (count > 0)
		best = precedence_best(locals, count,
		    view->surroundings == NULL ? NULL :
		    view->surroundings->pointed,
		    view->surroundings == NULL ? 0 :
		    view->surroundings->pointed_count);
	item = best == SIZE_MAX ? NULL : items[best];
	free(items);
	free(locals);
	/* The resume point itself may lie here already. */
	for (i = 0; item == NULL && resume != NULL && i < inventory->count;
	    i++)
		if (inventory->items[i].known == resume)
			item = &inventory->items[i];
	return item;
}

void
inventory_free(struct inventory *inventory)
{
	free(inventory->items);
	memset(inventory, 0, sizeof(*inventory));
}
