#include "store/retention.h"

#include <string.h>

#include "store/manifest.h"

/* Which items a rule is about. */
typedef bool (*condition)(const struct retention_item *item);

static bool
is_resume(const struct retention_item *item)
{
	return item->manifest->role == ROLE_RESUME;
}

static bool
is_proven_resume(const struct retention_item *item)
{
	return is_resume(item) && item->manifest->proven;
}

static bool
is_special(const struct retention_item *item)
{
	return !is_resume(item);
}

static bool
is_proven_special(const struct retention_item *item)
{
	return is_special(item) && item->manifest->proven;
}

static bool
is_own_resume(const struct retention_item *item)
{
	return !item->adopted && is_resume(item);
}

static bool
is_adopted_resume(const struct retention_item *item)
{
	return item->adopted && is_resume(item);
}

static bool
is_adopted_special(const struct retention_item *item)
{
	return item->adopted && is_special(item);
}

static bool
is_any(const struct retention_item *item)
{
	(void)item;
	return true;
}

/* Keep the newest ${number} that meet ${meets}. */
static void
keep_newest(struct retention_item *items, size_t count, condition meets,
    uint64_t number)
{
	size_t i;

	for (i = count; i > 0 && number > 0; i--) {
		if (meets(&items[i - 1])) {
			items[i - 1].keep = true;
			number--;
		}
	}
}

static bool
same_series(const struct retention_item *a, const struct retention_item *b)
{
	return a->manifest->role == b->manifest->role &&
	    strcmp(a->manifest->series, b->manifest->series) == 0;
}

/* Whether item ${index} is the newest of its series that meets ${meets}. */
static bool
is_newest_of_series(const struct retention_item *items, size_t count,
    size_t index, condition meets)
{
	size_t i;

	if (!meets(&items[index]))
		return false;
	for (i = index + 1; i < count; i++) {
		if (meets(&items[i]) && same_series(&items[i], &items[index]))
			return false;
	}
	return true;
}

static void
keep_newest_of_series(struct retention_item *items, size_t count,
    condition meets)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (is_newest_of_series(items, count, i, meets))
			items[i].keep = true;
	}
}

/* Whether a commit of this term has come further than ${item}. */
static bool
is_passed(const struct retention_item *items, size_t count,
    const struct retention_item *item)
{
	size_t i;

	for (i = 0; item->manifest->has_step && i < count; i++) {
		if (!items[i].adopted && items[i].manifest->has_step &&
		    items[i].manifest->step > item->manifest->step)
			return true;
	}
	return false;
}

/* No trainer that starts from zero makes what was adopted go away. */
static void
protect_adopted(struct retention_item *items, size_t count)
{
	bool newest_seen = false, resume_seen = false;
	size_t i;

	for (i = count; i > 0; i--) {
		struct retention_item *item = &items[i - 1];
		bool protect = false;

		if (!item->adopted)
			continue;
		protect |= !newest_seen;
		newest_seen = true;
		if (is_resume(item)) {
			protect |= !resume_seen;
			resume_seen = true;
		}
		protect |= item->resume;
		protect |= is_newest_of_series(items, count, i - 1,
		    is_adopted_special);
		if (protect && !is_passed(items, count, item))
			item->keep = true;
	}
}

void
retention_decide(struct retention_item *items, size_t count,
    const struct retention_rules *rules)
{
	size_t i;

	for (i = 0; i < count; i++)
		items[i].keep = rules->keep == 0 || items[i].present ||
		    i == count - 1;
	keep_newest(items, count, is_resume, rules->keep);
	keep_newest(items, count, is_proven_resume, 1);
	keep_newest_of_series(items, count, is_special);
	keep_newest_of_series(items, count, is_proven_special);
	protect_adopted(items, count);
}

static int
compare_times(const struct timespec *a, const struct timespec *b)
{
	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

/* Whether ${a} is the better one to go on from. */
static bool
is_better(const struct retention_item *a, const struct retention_item *b,
    bool by_step)
{
	const struct manifest *of_a = a->manifest, *of_b = b->manifest;
	int order;

	if (a->pointed != b->pointed)
		return a->pointed;
	if (by_step && of_a->step != of_b->step)
		return of_a->step > of_b->step;
	order = compare_times(&of_a->completed, &of_b->completed);
	if (order != 0)
		return order > 0;
	/* Of equal names the later commit, which is looked at later. */
	return strcmp(of_a->name, of_b->name) >= 0;
}

/* The best of those kept that meet ${meets}. */
static size_t
choose(const struct retention_item *items, size_t count, condition meets)
{
	size_t i, best = SIZE_MAX;
	bool by_step = true;

	for (i = 0; i < count; i++) {
		if (items[i].keep && meets(&items[i]))
			by_step &= items[i].manifest->has_step;
	}
	for (i = 0; i < count; i++) {
		if (items[i].keep && meets(&items[i]) && (best == SIZE_MAX ||
		    is_better(&items[i], &items[best], by_step)))
			best = i;
	}
	return best;
}

size_t
retention_resume(const struct retention_item *items, size_t count)
{
	size_t i, best = choose(items, count, is_own_resume);

	for (i = 0; i < count && best == SIZE_MAX; i++) {
		if (items[i].keep && items[i].resume &&
		    is_adopted_resume(&items[i]))
			best = i;
	}
	if (best == SIZE_MAX)
		best = choose(items, count, is_adopted_resume);
	if (best == SIZE_MAX)
		best = choose(items, count, is_any);
	return best;
}
