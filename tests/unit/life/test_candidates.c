#include "kit/kit.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/checkpoint.h"
#include "life/candidates.h"

static struct checkpoint *
make(const char *name, const char *series, enum role role)
{
	struct checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));

	assert_non_null(checkpoint);
	checkpoint->name = strdup(name);
	checkpoint->series = strdup(series);
	checkpoint->role = role;
	checkpoint->state = CHECKPOINT_COMPLETE;
	return checkpoint;
}

static void
count_dropped(void *context, const struct checkpoint *checkpoint)
{
	(void)checkpoint;
	(*(unsigned *)context)++;
}

static uint64_t
add(struct candidates *set, const char *name, const char *series,
    uint64_t batch, unsigned *dropped)
{
	enum role role = strncmp(name, "best", 4) == 0 ? ROLE_BEST :
	    ROLE_RESUME;
	uint64_t order = candidates_add(set, make(name, series, role), batch,
	    1, count_dropped, dropped);

	assert_true(order > 0);
	return order;
}

/* Take the next one, which must be ${name}. */
static struct candidate *
take(struct candidates *set, const char *name)
{
	struct candidate *candidate = candidates_take(set, 1000);

	assert_non_null(candidate);
	assert_string_equal(candidate->checkpoint->name, name);
	return candidate;
}

static void
a_newer_save_replaces_only_what_waits(void **state)
{
	struct candidates *set = candidates_new();
	struct candidate *flying;
	unsigned dropped = 0;

	(void)state;
	add(set, "last.pt", "last.pt", 1, &dropped);
	flying = take(set, "last.pt");
	add(set, "last.pt", "last.pt", 2, &dropped);
	assert_int_equal(dropped, 0);
	add(set, "last.pt", "last.pt", 3, &dropped);
	assert_int_equal(dropped, 1);
	assert_int_equal(candidates_count(set), 1);
	/* Who waits for the second waits for its successor. */
	assert_int_equal(candidates_since(set), 2);
	candidates_end(set, flying, CANDIDATE_DURABLE);
	flying = take(set, "last.pt");
	assert_int_equal(flying->order, 3);
	candidates_end(set, flying, CANDIDATE_DURABLE);
	assert_null(candidates_take(set, 1000));
	assert_int_equal(candidates_since(set), UINT64_MAX);
	candidates_free(set);
}

static void
what_one_scan_finds_goes_up_oldest_first(void **state)
{
	struct candidates *set = candidates_new();
	unsigned dropped = 0;

	(void)state;
	add(set, "checkpoint-100", "checkpoint-*", 1, &dropped);
	add(set, "checkpoint-200", "checkpoint-*", 1, &dropped);
	add(set, "checkpoint-300", "checkpoint-*", 1, &dropped);
	assert_int_equal(dropped, 0);
	candidates_end(set, take(set, "checkpoint-100"),
	    CANDIDATE_DURABLE);
	/* One that completes while training replaces the rest. */
	add(set, "checkpoint-400", "checkpoint-*", 2, &dropped);
	assert_int_equal(dropped, 2);
	candidates_end(set, take(set, "checkpoint-400"),
	    CANDIDATE_DURABLE);
	candidates_free(set);
}

static void
series_take_turns(void **state)
{
	struct candidates *set = candidates_new();
	unsigned dropped = 0, i;

	(void)state;
	add(set, "best.pt", "best*", 1, &dropped);
	for (i = 0; i < 3; i++) {
		add(set, "last.pt", "last.pt", 10 + i, &dropped);
		if (i == 0)
			candidates_end(set, take(set, "best.pt"),
			    CANDIDATE_DURABLE);
		candidates_end(set, take(set, "last.pt"),
		    CANDIDATE_DURABLE);
	}
	/* Both wait; best has waited longer for its turn. */
	add(set, "last.pt", "last.pt", 20, &dropped);
	add(set, "best.pt", "best*", 21, &dropped);
	candidates_end(set, take(set, "best.pt"), CANDIDATE_DURABLE);
	candidates_end(set, take(set, "last.pt"), CANDIDATE_DURABLE);
	candidates_free(set);
}

static void
an_older_one_never_goes_after_a_newer_one(void **state)
{
	struct candidates *set = candidates_new();
	struct candidate *older;
	unsigned dropped = 0;

	(void)state;
	add(set, "checkpoint-1", "checkpoint-*", 1, &dropped);
	add(set, "checkpoint-2", "checkpoint-*", 1, &dropped);
	older = take(set, "checkpoint-1");
	/* It failed and waits; meanwhile the newer one becomes durable. */
	candidates_return(set, older, 5000);
	candidates_end(set, take(set, "checkpoint-2"),
	    CANDIDATE_DURABLE);
	assert_int_equal(candidates_count(set), 0);
	candidates_free(set);
}

static void
one_that_failed_waits_or_gives_way(void **state)
{
	struct candidates *set = candidates_new();
	struct candidate *candidate;
	unsigned dropped = 0;

	(void)state;
	add(set, "last.pt", "last.pt", 1, &dropped);
	candidate = take(set, "last.pt");
	candidates_return(set, candidate, 2000);
	assert_null(candidates_take(set, 1999));
	assert_int_equal(candidates_next(set), 2000);
	candidate = candidates_take(set, 2000);
	assert_non_null(candidate);
	assert_int_equal(candidate->failures, 1);
	add(set, "last.pt", "last.pt", 2, &dropped);
	candidates_return(set, candidate, 9000);
	assert_int_equal(candidates_count(set), 1);
	assert_int_equal(candidates_since(set), 1);
	candidate = take(set, "last.pt");
	assert_int_equal(candidate->order, 2);
	candidates_return(set, candidate, 9000);
	candidates_hurry(set);
	assert_int_equal(candidates_next(set), 0);
	candidates_free(set);
}

static void
what_gave_way_stays_until_something_newer_is_durable(void **state)
{
	struct candidates *set = candidates_new();
	struct candidate *older, *newer;
	unsigned dropped = 0;

	(void)state;
	add(set, "checkpoint-1", "checkpoint-*", 1, &dropped);
	older = take(set, "checkpoint-1");
	add(set, "checkpoint-2", "checkpoint-*", 2, &dropped);
	candidates_hold(set, older, 500);
	assert_int_equal(candidates_count(set), 2);
	/* Nor does the next save take its place. */
	add(set, "checkpoint-3", "checkpoint-*", 3, &dropped);
	assert_int_equal(dropped, 1);
	assert_int_equal(candidates_count(set), 2);
	assert_int_equal(candidates_at(set, 0)->left, 500);
	newer = candidates_pick(set, 1);
	assert_string_equal(newer->checkpoint->name, "checkpoint-3");
	candidates_end(set, newer, CANDIDATE_DURABLE);
	assert_int_equal(candidates_count(set), 0);
	candidates_free(set);
}

static void
what_gave_way_is_replaced_when_it_is_overwritten(void **state)
{
	struct candidates *set = candidates_new();
	unsigned dropped = 0;

	(void)state;
	add(set, "last.pt", "last.pt", 1, &dropped);
	candidates_hold(set, take(set, "last.pt"), 500);
	add(set, "last.pt", "last.pt", 2, &dropped);
	assert_int_equal(dropped, 1);
	assert_int_equal(candidates_count(set), 1);
	assert_int_equal(candidates_at(set, 0)->left, 0);
	assert_int_equal(candidates_since(set), 1);
	candidates_free(set);
}

static void
a_snapshot_comes_after_two_overwritten_uploads(void **state)
{
	struct candidates *set = candidates_new();
	unsigned dropped = 0, i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_false(candidates_wants_snapshot(set, "last.pt"));
		add(set, "last.pt", "last.pt", i, &dropped);
		candidates_end(set, take(set, "last.pt"),
		    CANDIDATE_CHANGED);
	}
	assert_true(candidates_wants_snapshot(set, "last.pt"));
	/* Saves still outrun the wire: the next one too. */
	add(set, "last.pt", "last.pt", 5, &dropped);
	{
		struct candidate *flying = take(set, "last.pt");

		add(set, "last.pt", "last.pt", 6, &dropped);
		candidates_end(set, flying, CANDIDATE_SNAPSHOT_DURABLE);
	}
	assert_true(candidates_wants_snapshot(set, "last.pt"));
	candidates_end(set, take(set, "last.pt"),
	    CANDIDATE_SNAPSHOT_DURABLE);
	assert_false(candidates_wants_snapshot(set, "last.pt"));
	assert_false(candidates_wants_snapshot(set, "other"));
	candidates_free(set);
}

static void
a_loss_is_made_up_for_by_a_newer_one(void **state)
{
	struct candidates *set = candidates_new();
	unsigned dropped = 0;

	(void)state;
	add(set, "last.pt", "last.pt", 1, &dropped);
	candidates_end(set, take(set, "last.pt"), CANDIDATE_LOST);
	assert_string_equal(candidates_lost(set), "last.pt");
	add(set, "last.pt", "last.pt", 2, &dropped);
	assert_non_null(candidates_lost(set));
	candidates_end(set, take(set, "last.pt"), CANDIDATE_DURABLE);
	assert_null(candidates_lost(set));
	add(set, "last.pt", "last.pt", 3, &dropped);
	candidates_end(set, take(set, "last.pt"), CANDIDATE_GONE);
	assert_null(candidates_lost(set));
	candidates_free(set);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_newer_save_replaces_only_what_waits),
		cmocka_unit_test(what_one_scan_finds_goes_up_oldest_first),
		cmocka_unit_test(series_take_turns),
		cmocka_unit_test(an_older_one_never_goes_after_a_newer_one),
		cmocka_unit_test(one_that_failed_waits_or_gives_way),
		cmocka_unit_test(
		    what_gave_way_stays_until_something_newer_is_durable),
		cmocka_unit_test(
		    what_gave_way_is_replaced_when_it_is_overwritten),
		cmocka_unit_test(
		    a_snapshot_comes_after_two_overwritten_uploads),
		cmocka_unit_test(a_loss_is_made_up_for_by_a_newer_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
