#include "kit/kit.h"

#include "format/checkpoint.h"
#include "life/precedence.h"
#include "store/manifest.h"

static struct checkpoint
local(long completed, long step)
{
	struct checkpoint checkpoint = { .name = "last.pt",
	    .role = ROLE_RESUME, .completed = { .tv_sec = completed },
	    .has_step = step >= 0, .step = (uint64_t)(step < 0 ? 0 : step) };

	return checkpoint;
}

static struct manifest
remote(long completed, long step)
{
	struct manifest manifest = { .role = ROLE_RESUME,
	    .completed = { .tv_sec = completed }, .has_step = step >= 0,
	    .step = (uint64_t)(step < 0 ? 0 : step) };

	return manifest;
}

static void
anything_is_newer_than_nothing(void **state)
{
	struct precedence precedence = { 0 };
	struct checkpoint here = local(0, -1);

	(void)state;
	assert_true(precedence_newer(&precedence, &here));
}

static void
this_machines_clock_orders_what_nobody_else_wrote(void **state)
{
	struct manifest there = remote(100, 1000);
	struct precedence precedence = { .resume = &there, .mine = true,
	    .own = true };
	struct checkpoint rolled_back = local(101, 10);
	struct checkpoint skipped = local(99, 900);
	struct checkpoint clock_went_back = local(50, 1001);

	(void)state;
	assert_true(precedence_newer(&precedence, &rolled_back));
	assert_false(precedence_newer(&precedence, &skipped));
	assert_true(precedence_newer(&precedence, &clock_went_back));
}

static void
against_what_was_adopted_the_opening_counts(void **state)
{
	/* Another machine's clock, far ahead. */
	struct manifest there = remote(1000000, -1);
	struct precedence precedence = { .resume = &there, .mine = true,
	    .opened = { .tv_sec = 100 } };
	struct checkpoint made_after = local(101, -1);
	struct checkpoint lay_there = local(99, -1);

	(void)state;
	assert_true(precedence_newer(&precedence, &made_after));
	assert_false(precedence_newer(&precedence, &lay_there));
}

static void
steps_decide_between_machines(void **state)
{
	struct manifest there = remote(100, 1000);
	struct precedence precedence = { .resume = &there };
	struct checkpoint later_but_behind = local(999, 10);
	struct checkpoint earlier_but_ahead = local(1, 1001);
	struct checkpoint same_step_later = local(101, 1000);
	struct checkpoint same_step_earlier = local(99, 1000);

	(void)state;
	assert_false(precedence_newer(&precedence, &later_but_behind));
	assert_true(precedence_newer(&precedence, &earlier_but_ahead));
	assert_true(precedence_newer(&precedence, &same_step_later));
	assert_false(precedence_newer(&precedence, &same_step_earlier));
}

static void
times_are_the_last_resort(void **state)
{
	struct manifest there = remote(100, 1000);
	struct precedence precedence = { .resume = &there };
	struct checkpoint later = local(101, -1), earlier = local(99, -1);

	(void)state;
	assert_true(precedence_newer(&precedence, &later));
	assert_false(precedence_newer(&precedence, &earlier));
}

static void
what_is_only_best_stands_in_nobodys_way(void **state)
{
	struct manifest there = remote(1000, 1000);
	struct precedence precedence = { .resume = &there };
	struct checkpoint here = local(1, 1);

	(void)state;
	there.role = ROLE_BEST;
	assert_true(precedence_newer(&precedence, &here));
}

static void
a_trainer_goes_on_from_what_a_pointer_names(void **state)
{
	struct checkpoint a = local(10, 100), b = local(20, 200);
	struct checkpoint c = local(99, 999), d = local(99, -1);
	struct checkpoint *list[] = { &a, &b, &c };
	char *pointed[] = { "checkpoint-100" };

	(void)state;
	a.name = "checkpoint-100";
	b.name = "checkpoint-200";
	c.name = "best.pt";
	c.role = ROLE_BEST;
	assert_int_equal(precedence_best(list, 3, pointed, 1), 0);
	assert_int_equal(precedence_best(list, 3, NULL, 0), 1);
	assert_int_equal(precedence_best(list + 2, 1, NULL, 0), 0);
	assert_int_equal(precedence_best(list, 0, NULL, 0), SIZE_MAX);
	/* Without a step on both sides the time decides. */
	list[2] = &d;
	assert_int_equal(precedence_best(list, 3, NULL, 0), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(anything_is_newer_than_nothing),
		cmocka_unit_test(
		    this_machines_clock_orders_what_nobody_else_wrote),
		cmocka_unit_test(against_what_was_adopted_the_opening_counts),
		cmocka_unit_test(steps_decide_between_machines),
		cmocka_unit_test(times_are_the_last_resort),
		cmocka_unit_test(what_is_only_best_stands_in_nobodys_way),
		cmocka_unit_test(a_trainer_goes_on_from_what_a_pointer_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
