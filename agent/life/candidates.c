#include "life/candidates.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/checkpoint.h"

struct series {
	char *name;
	unsigned changes;	/* uploads in a row that were overwritten */
	uint64_t served;	/* turn at which one was last taken */
	uint64_t durable;	/* highest order that became durable */
	uint64_t lost;		/* highest order that was given up */
	char *lost_name;
	struct series *next;
};

struct candidates {
	struct candidate **waiting;	/* in order */
	size_t count;
	size_t room;
	struct series *series;
	uint64_t last;
	uint64_t turn;
};

struct candidates *
candidates_new(void)
{
	return calloc(1, sizeof(struct candidates));
}

void
candidate_free(struct candidate *candidate)
{
	if (candidate == NULL)
		return;
	checkpoint_free(candidate->checkpoint);
	free(candidate);
}

static struct series *
find_series(const struct candidates *candidates, const char *name)
{
	struct series *series;

	for (series = candidates->series; series != NULL;
	    series = series->next)
		if (strcmp(series->name, name) == 0)
			break;
	return series;
}

static struct series *
need_series(struct candidates *candidates, const char *name)
{
	struct series *series = find_series(candidates, name);

	if (series != NULL)
		return series;
	if ((series = calloc(1, sizeof(*series))) == NULL ||
	    (series->name = strdup(name)) == NULL) {
		free(series);
		return NULL;
	}
	series->next = candidates->series;
	candidates->series = series;
	return series;
}

static bool
same_series(const struct candidate *a, const struct candidate *b)
{
	return strcmp(a->checkpoint->series, b->checkpoint->series) == 0;
}

static void
remove_at(struct candidates *candidates, size_t index)
{
	candidates->count--;
	memmove(candidates->waiting + index, candidates->waiting + index + 1,
	    (candidates->count - index) * sizeof(*candidates->waiting));
}

/* Put ${candidate} where its order belongs. */
static int
insert(struct candidates *candidates, struct candidate *candidate)
{
	struct candidate **more;
	size_t i;

	if (candidates->count == candidates->room) {
		more = reallocarray(candidates->waiting,
		    candidates->room + 16, sizeof(*more));
		if (more == NULL)
			return -1;
		candidates->waiting = more;
		candidates->room += 16;
	}
	for (i = candidates->count; i > 0; i--) {
		if (candidates->waiting[i - 1]->order < candidate->order)
			break;
		candidates->waiting[i] = candidates->waiting[i - 1];
	}
	candidates->waiting[i] = candidate;
	candidates->count++;
	return 0;
}

/* Whether ${newer} takes the place of ${older} in the line. */
static bool
replaces(const struct candidate *newer, const struct candidate *older)
{
	if (strcmp(newer->checkpoint->name, older->checkpoint->name) == 0)
		return true;
	if (older->left > 0)
		return false;
	return same_series(newer, older) && newer->batch != older->batch;
}

uint64_t
candidates_add(struct candidates *candidates,
    struct checkpoint *checkpoint, uint64_t batch, uint64_t now,
    void (*dropped)(void *context, const struct checkpoint *checkpoint),
    void *context)
{
	struct candidate *candidate, *older;
	size_t i;

	if (need_series(candidates, checkpoint->series) == NULL ||
	    (candidate = calloc(1, sizeof(*candidate))) == NULL) {
		checkpoint_free(checkpoint);
		return 0;
	}
	candidate->checkpoint = checkpoint;
	candidate->order = candidate->since = candidates->last + 1;
	candidate->batch = batch;
	candidate->seen = now;
	if (insert(candidates, candidate) != 0) {
		candidate_free(candidate);
		return 0;
	}
	candidates->last++;
	checkpoint->order = candidate->order;
	for (i = 0; i + 1 < candidates->count; ) {
		older = candidates->waiting[i];
		if (!replaces(candidate, older)) {
			i++;
			continue;
		}
		if (older->since < candidate->since)
			candidate->since = older->since;
		remove_at(candidates, i);
		if (dropped != NULL)
			dropped(context, older->checkpoint);
		candidate_free(older);
	}
	return candidate->order;
}

/* The series that has waited longest for its turn, its oldest first. */
static bool
takes_turn_before(const struct candidates *candidates,
    const struct candidate *a, const struct candidate *b)
{
	const struct series *a_series, *b_series;

	a_series = find_series(candidates, a->checkpoint->series);
	b_series = find_series(candidates, b->checkpoint->series);
	if (a_series->served != b_series->served)
		return a_series->served < b_series->served;
	return a->order < b->order;
}

static size_t
choose(const struct candidates *candidates, uint64_t now)
{
	const struct candidate *each;
	size_t i, chosen = SIZE_MAX;

	for (i = 0; i < candidates->count; i++) {
		each = candidates->waiting[i];
		if (each->not_before > now)
			continue;
		if (chosen == SIZE_MAX || takes_turn_before(candidates, each,
		    candidates->waiting[chosen]))
			chosen = i;
	}
	return chosen;
}

/* Forget the waiting ones of a series that are older than ${order}. */
static void
drop_older(struct candidates *candidates, const char *series, uint64_t order)
{
	struct candidate *each;
	size_t i;

	for (i = 0; i < candidates->count; ) {
		each = candidates->waiting[i];
		if (each->order >= order ||
		    strcmp(each->checkpoint->series, series) != 0) {
			i++;
			continue;
		}
		remove_at(candidates, i);
		candidate_free(each);
	}
}

struct candidate *
candidates_pick(struct candidates *candidates, size_t index)
{
	struct candidate *taken = candidates_at(candidates, index);

	remove_at(candidates, index);
	find_series(candidates, taken->checkpoint->series)->served =
	    ++candidates->turn;
	return taken;
}

struct candidate *
candidates_take(struct candidates *candidates, uint64_t now)
{
	size_t index = choose(candidates, now);

	return index == SIZE_MAX ? NULL : candidates_pick(candidates, index);
}

struct candidate *
candidates_at(struct candidates *candidates, size_t index)
{
	assert(index < candidates->count);
	return candidates->waiting[index];
}

void
candidates_hold(struct candidates *candidates, struct candidate *candidate,
    uint64_t left)
{
	assert(left > 0);
	candidate->left = left;
	if (insert(candidates, candidate) != 0)
		candidates_end(candidates, candidate, CANDIDATE_LOST);
}

void
candidates_return(struct candidates *candidates, struct candidate *candidate,
    uint64_t not_before)
{
	struct candidate *each;
	size_t i;

	for (i = 0; i < candidates->count; i++) {
		each = candidates->waiting[i];
		if (each->order > candidate->order &&
		    replaces(each, candidate)) {
			if (candidate->since < each->since)
				each->since = candidate->since;
			candidate_free(candidate);
			return;
		}
	}
	candidate->not_before = not_before;
	candidate->failures++;
	if (insert(candidates, candidate) != 0)
		candidates_end(candidates, candidate, CANDIDATE_LOST);
}

void
candidates_end(struct candidates *candidates, struct candidate *candidate,
    enum candidate_end end)
{
	struct series *series;
	size_t i;
	bool successor = false;

	series = find_series(candidates, candidate->checkpoint->series);
	assert(series != NULL);
	for (i = 0; i < candidates->count; i++)
		if (same_series(candidates->waiting[i], candidate))
			successor = true;
	switch (end) {
	case CANDIDATE_DURABLE:
		series->changes = 0;
		break;
	case CANDIDATE_SNAPSHOT_DURABLE:
		/* Saves still outrun the wire while one waits already. */
		series->changes = successor ? 2 : 1;
		break;
	case CANDIDATE_CHANGED:
		series->changes++;
		break;
	case CANDIDATE_GONE:
		break;
	case CANDIDATE_LOST:
		series->lost = candidate->order;
		free(series->lost_name);
		series->lost_name = strdup(candidate->checkpoint->name);
		break;
	}
	if (end == CANDIDATE_DURABLE || end == CANDIDATE_SNAPSHOT_DURABLE) {
		if (candidate->order > series->durable)
			series->durable = candidate->order;
		/* An older one must not come after a newer one. */
		drop_older(candidates, series->name, candidate->order);
	}
	candidate_free(candidate);
}

bool
candidates_wants_snapshot(const struct candidates *candidates,
    const char *series)
{
	const struct series *found = find_series(candidates, series);

	return found != NULL && found->changes >= 2;
}

void
candidates_hurry(struct candidates *candidates)
{
	size_t i;

	for (i = 0; i < candidates->count; i++)
		candidates->waiting[i]->not_before = 0;
}

uint64_t
candidates_next(const struct candidates *candidates)
{
	uint64_t next = CLOCK_NEVER;
	size_t i;

	for (i = 0; i < candidates->count; i++)
		if (candidates->waiting[i]->not_before < next)
			next = candidates->waiting[i]->not_before;
	return next;
}

size_t
candidates_count(const struct candidates *candidates)
{
	return candidates->count;
}

uint64_t
candidates_since(const struct candidates *candidates)
{
	uint64_t since = UINT64_MAX;
	size_t i;

	for (i = 0; i < candidates->count; i++)
		if (candidates->waiting[i]->since < since)
			since = candidates->waiting[i]->since;
	return since;
}

uint64_t
candidates_last(const struct candidates *candidates)
{
	return candidates->last;
}

const char *
candidates_lost(const struct candidates *candidates)
{
	const struct series *series;

	for (series = candidates->series; series != NULL;
	    series = series->next)
		if (series->lost > series->durable)
			return series->lost_name != NULL ?
			    series->lost_name : series->name;
	return NULL;
}

void
candidates_free(struct candidates *candidates)
{
	struct series *series;
	size_t i;

	if (candidates == NULL)
		return;
	for (i = 0; i < candidates->count; i++)
		candidate_free(candidates->waiting[i]);
	while ((series = candidates->series) != NULL) {
		candidates->series = series->next;
		free(series->name);
		free(series->lost_name);
		free(series);
	}
	free(candidates->waiting);
	free(candidates);
}
