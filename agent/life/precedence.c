#include "life/precedence.h"

#include <stdint.h>
#include <string.h>

#include "format/checkpoint.h"
#include "store/manifest.h"

static int
compare_times(struct timespec a, struct timespec b)
{
	if (a.tv_sec != b.tv_sec)
		return a.tv_sec < b.tv_sec ? -1 : 1;
	return a.tv_nsec < b.tv_nsec ? -1 : a.tv_nsec > b.tv_nsec;
}

bool
precedence_newer(const struct precedence *precedence,
    const struct checkpoint *local)
{
	const struct manifest *resume = precedence->resume;
	bool steps;

	if (resume == NULL)
		return true;
	/* What is only best or final never stands in a trainer's way. */
	if (resume->role != ROLE_RESUME && local->role == ROLE_RESUME)
		return true;
	steps = resume->has_step && local->has_step;
	if (precedence->mine) {
		if (compare_times(local->completed, precedence->own ?
		    resume->completed : precedence->opened) > 0)
			return true;
		return steps && local->step > resume->step;
	}
	if (precedence->local_first)
		return true;
	if (steps && local->step != resume->step)
		return local->step > resume->step;
	return compare_times(local->completed, resume->completed) > 0;
}

static bool
is_pointed(const char *name, char *const *pointed, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (strcmp(pointed[i], name) == 0)
			return true;
	return false;
}

static int
compare(const struct checkpoint *a, const struct checkpoint *b,
    char *const *pointed, size_t count)
{
	bool a_pointed, b_pointed;
	int order;

	if ((a->role == ROLE_RESUME) != (b->role == ROLE_RESUME))
		return a->role == ROLE_RESUME ? 1 : -1;
	a_pointed = is_pointed(a->name, pointed, count);
	b_pointed = is_pointed(b->name, pointed, count);
	if (a_pointed != b_pointed)
		return a_pointed ? 1 : -1;
	if (a->has_step && b->has_step && a->step != b->step)
		return a->step > b->step ? 1 : -1;
	if ((order = compare_times(a->completed, b->completed)) != 0)
		return order;
	return strcmp(a->name, b->name);
}

size_t
precedence_best(struct checkpoint *const *locals, size_t count,
    char *const *pointed, size_t pointed_count)
{
	size_t i, best = SIZE_MAX;

	for (i = 0; i < count; i++)
		if (best == SIZE_MAX || compare(locals[i], locals[best],
		    pointed, pointed_count) > 0)
			best = i;
	return best;
}
