#include "watch/view.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "watch/map.h"
#include "watch/prove.h"
#include "watch/record.h"
#include "watch/tree.h"

static const struct view_options no_options;

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory while looking at the directory");
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp((*(struct checkpoint *const *)a)->name,
	    (*(struct checkpoint *const *)b)->name);
}

/* The checkpoints of ${view} (may be NULL) sorted by name. */
static struct checkpoint **
sort_names(const struct view *view)
{
	size_t count = view != NULL ? view->count : 0;
	struct checkpoint **sorted = calloc(count + 1, sizeof(*sorted));

	if (sorted == NULL || count == 0)
		return sorted;
	memcpy(sorted, view->checkpoints, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_names);
	return sorted;
}

/*
 * Take over what the view before (its checkpoints, sorted) found out, if
 * nothing changed: what was complete or torn then is so now.
 */
static bool
keep_state(struct checkpoint **sorted, size_t count,
    struct checkpoint *checkpoint)
{
	struct checkpoint **found = NULL, *before;

	if (count > 0)
		found = bsearch(&checkpoint, sorted, count, sizeof(*sorted),
		    compare_names);
	if (found == NULL)
		return false;
	before = *found;
	if (before->state == CHECKPOINT_WAITING ||
	    !checkpoint_same(before, checkpoint))
		return false;
	checkpoint->state = before->state;
	checkpoint->proven = before->proven;
	memcpy(checkpoint->reason, before->reason, sizeof(before->reason));
	return true;
}

static int
add_checkpoints(struct view *view, struct prover *prover,
    const struct view *previous, struct error *error)
{
	struct checkpoint **sorted = sort_names(previous), *checkpoint;
	size_t known = previous != NULL ? previous->count : 0;
	int result = sorted != NULL ? 0 : no_memory(error);

	for (size_t i = 0; i < prover->map->unit_count && result == 0; i++) {
		checkpoint = record_checkpoint(prover->map, i, error);
		if (checkpoint == NULL) {
			result = -1;
			break;
		}
		view->checkpoints[view->count++] = checkpoint;
		result = keep_state(sorted, known, checkpoint) ?
		    prove_keep(prover, i, error) :
		    prove_unit(prover, i, checkpoint, error);
	}
	free(sorted);
	return result;
}

static int
compare_times(const struct timespec *a, const struct timespec *b)
{
	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

/* Complete, torn, waiting; each in the order of completion. */
static int
compare_checkpoints(const void *a, const void *b)
{
	static const int places[] = {
		[CHECKPOINT_COMPLETE] = 0, [CHECKPOINT_TORN] = 1,
		[CHECKPOINT_WAITING] = 2
	};
	const struct checkpoint *x = *(struct checkpoint *const *)a;
	const struct checkpoint *y = *(struct checkpoint *const *)b;
	int order = places[x->state] - places[y->state];

	if (order == 0)
		order = compare_times(&x->completed, &y->completed);
	if (order == 0 && x->has_step && y->has_step)
		order = (x->step > y->step) - (x->step < y->step);
	return order != 0 ? order : strcmp(x->name, y->name);
}

static int
fill_checkpoints(struct view *view, const struct map *map,
    const struct view_options *options, const struct view *previous,
    struct error *error)
{
	struct prover prover = { .map = map, .options = options,
	    .known = previous != NULL ? previous->proofs : NULL,
	    .known_count = previous != NULL ? previous->proof_count : 0,
	    .now = clock_monotonic(), .wall = clock_wall(),
	    .check_again = CLOCK_NEVER, .leases = true };
	int result;

	view->checkpoints = calloc(map->unit_count + 1,
	    sizeof(struct checkpoint *));
	if (view->checkpoints == NULL)
		return no_memory(error);
	result = add_checkpoints(view, &prover, previous, error);
	view->proofs = prover.proofs;
	view->proof_count = prover.proof_count;
	view->leases = prover.leases;
	view->check_again = prover.check_again;
	if (result != 0)
		return -1;
	prove_end(&prover);
	if (view->count > 0)
		qsort(view->checkpoints, view->count,
		    sizeof(struct checkpoint *), compare_checkpoints);
	return 0;
}

struct view *
view_take_guided(const char *folder, const struct view_options *options,
    const struct view *previous, const struct view_guide *guide,
    struct error *error)
{
	struct view *view = calloc(1, sizeof(*view));
	struct tree *tree = NULL;
	struct map *map = NULL;

	if (options == NULL)
		options = &no_options;
	if (view == NULL) {
		no_memory(error);
		return NULL;
	}
	tree = tree_scan(folder, options, guide, error);
	if (tree == NULL)
		goto failed;
	map = map_make(tree, error);
	if (map == NULL ||
	    fill_checkpoints(view, map, options, previous, error) != 0)
		goto failed;
	view->surroundings = record_surroundings(map, error);
	if (view->surroundings == NULL)
		goto failed;
	view->blind = tree->blind;
	view->folders = tree->folder_count;
	view->notes = tree->notes;
	view->note_count = tree->note_count;
	tree->notes = NULL;
	map_free(map);
	tree_free(tree);
	return view;
failed:
	map_free(map);
	tree_free(tree);
	view_free(view);
	return NULL;
}

struct view *
view_take(const char *folder, const struct view_options *options,
    const struct view *previous, struct error *error)
{
	return view_take_guided(folder, options, previous, NULL, error);
}

bool
view_may_mislead(const struct view *view, const struct checkpoint *checkpoint)
{
	if (checkpoint->state == CHECKPOINT_COMPLETE)
		return false;
	for (size_t i = 0; i < view->count; i++) {
		const struct checkpoint *other = view->checkpoints[i];

		if (other->state != CHECKPOINT_COMPLETE ||
		    strcmp(other->series, checkpoint->series) != 0)
			continue;
		if (other->has_step && checkpoint->has_step ?
		    other->step > checkpoint->step :
		    compare_times(&other->completed,
		    &checkpoint->completed) > 0)
			return false;
	}
	return true;
}

struct surroundings *
view_surroundings(const char *folder, const struct view_options *options,
    struct error *error)
{
	struct surroundings *surroundings = NULL;
	struct tree *tree = tree_scan(folder,
	    options != NULL ? options : &no_options, NULL, error);
	struct map *map = tree != NULL ? map_make(tree, error) : NULL;

	if (map != NULL)
		surroundings = record_surroundings(map, error);
	map_free(map);
	tree_free(tree);
	return surroundings;
}

void
view_free(struct view *view)
{
	if (view == NULL)
		return;
	for (size_t i = 0; i < view->count; i++)
		checkpoint_free(view->checkpoints[i]);
	free(view->checkpoints);
	surroundings_free(view->surroundings);
	prove_free(view->proofs, view->proof_count);
	free(view->notes);
	free(view);
}
