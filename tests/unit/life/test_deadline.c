#include "kit/kit.h"

#include "base/clock.h"
#include "life/deadline.h"

#define S CLOCK_SECOND
#define START (1000 * S)

static void
nothing_happens_without_a_notice(void **state)
{
	struct deadline deadline = { 0 };
	struct deadline_facts facts = { .trainer = true };

	(void)state;
	assert_int_equal(deadline_step(&deadline, START, &facts), 0);
	deadline_hint(&deadline);
	assert_int_equal(deadline.state, DEADLINE_HINT);
	assert_int_equal(deadline_step(&deadline, START, &facts), 0);
}

static void
each_action_is_said_once_and_in_order(void **state)
{
	struct deadline deadline = { 0 };
	struct deadline_facts facts = { .trainer = true };
	uint64_t stop;

	(void)state;
	deadline_notice(&deadline, START, START + 25 * S);
	assert_int_equal(deadline_step(&deadline, START, &facts),
	    DEADLINE_LIFT);
	assert_int_equal(deadline_step(&deadline, START + S, &facts), 0);
	stop = deadline_stop_time(&deadline, &facts);
	assert_int_equal(stop, START + 20 * S);
	assert_int_equal(deadline_step(&deadline, stop - 1, &facts), 0);
	assert_int_equal(deadline_step(&deadline, stop, &facts),
	    DEADLINE_STOP);
	assert_int_equal(deadline_step(&deadline, stop, &facts), 0);
	assert_int_equal(deadline_step(&deadline, START + 25 * S, &facts),
	    DEADLINE_KILL | DEADLINE_END);
	assert_int_equal(deadline.state, DEADLINE_DONE);
	assert_int_equal(deadline_step(&deadline, START + 26 * S, &facts), 0);
}

static void
the_stop_signal_leaves_time_for_the_upload(void **state)
{
	struct deadline deadline = { 0 };
	struct deadline_facts facts = { .trainer = true,
	    .bytes = UINT64_C(800) << 20, .rate = UINT64_C(100) << 20 };

	(void)state;
	deadline_notice(&deadline, START, START + 120 * S);
	/* 8 s at the measured speed, a quarter more, and 5 s in reserve. */
	assert_int_equal(deadline_stop_time(&deadline, &facts),
	    START + 105 * S);
	facts.bytes = UINT64_C(1) << 50;
	assert_int_equal(deadline_stop_time(&deadline, &facts), START);
	facts.rate = 0;
	assert_int_equal(deadline_stop_time(&deadline, &facts),
	    START + 85 * S);
}

static void
a_save_that_was_asked_for_and_is_durable_ends_the_wait(void **state)
{
	struct deadline deadline = { 0 };
	struct deadline_facts facts = { .trainer = true, .saved = true };

	(void)state;
	deadline_notice(&deadline, START, START + 25 * S);
	(void)deadline_step(&deadline, START, &facts);
	assert_int_equal(deadline_step(&deadline, START + 2 * S, &facts), 0);
	facts.asked = true;
	assert_int_equal(deadline_step(&deadline, START + 2 * S, &facts),
	    DEADLINE_STOP);
}

static void
it_ends_when_the_trainer_has_ended_and_all_is_durable(void **state)
{
	struct deadline deadline = { 0 };
	struct deadline_facts facts = { .trainer = true, .flushed = true };

	(void)state;
	deadline_notice(&deadline, START, START + 25 * S);
	assert_int_equal(deadline_step(&deadline, START, &facts),
	    DEADLINE_LIFT);
	facts.trainer = false;
	facts.flushed = false;
	assert_int_equal(deadline_step(&deadline, START + S, &facts), 0);
	facts.flushed = true;
	assert_int_equal(deadline_step(&deadline, START + S, &facts),
	    DEADLINE_END);
}

static void
only_an_earlier_end_moves_it(void **state)
{
	struct deadline deadline = { 0 };

	(void)state;
	deadline_notice(&deadline, START, START + 25 * S);
	deadline_notice(&deadline, START + S, START + 60 * S);
	assert_int_equal(deadline.when, START + 25 * S);
	deadline_notice(&deadline, START + S, START + 10 * S);
	assert_int_equal(deadline.when, START + 10 * S);
	assert_int_equal(deadline.began, START);
}

static void
an_end_that_is_over_already_is_now(void **state)
{
	struct deadline deadline = { 0 };
	struct deadline_facts facts = { .trainer = true };

	(void)state;
	deadline_notice(&deadline, START, START - 5 * S);
	assert_int_equal(deadline_step(&deadline, START, &facts),
	    DEADLINE_LIFT | DEADLINE_STOP | DEADLINE_KILL | DEADLINE_END);
}

static void
the_last_upload_leaves_time_to_close(void **state)
{
	struct deadline deadline = { 0 };

	(void)state;
	deadline_notice(&deadline, START, START + 60 * S);
	assert_int_equal(deadline_last_upload(&deadline), START + 59 * S);
	deadline = (struct deadline){ 0 };
	deadline_notice(&deadline, START, START + 2 * S);
	assert_int_equal(deadline_last_upload(&deadline),
	    START + 2 * S - S / 10);
}

static void
what_is_in_flight_gives_way_only_when_that_helps(void **state)
{
	uint64_t rate = 100;	/* bytes a second; times are 1.25 longer */

	(void)state;
	assert_int_equal(deadline_plan(100 * S, rate, 1000, 1000),
	    DEADLINE_PLAN_BOTH);
	assert_int_equal(deadline_plan(15 * S, rate, 1000, 1000),
	    DEADLINE_PLAN_NEWEST);
	/* The newest cannot make it, what is in flight can. */
	assert_int_equal(deadline_plan(15 * S, rate, 100, 100000),
	    DEADLINE_PLAN_FLYING);
	/* Neither can: try the shorter way. */
	assert_int_equal(deadline_plan(S, rate, 1000, 2000),
	    DEADLINE_PLAN_FLYING);
	assert_int_equal(deadline_plan(S, rate, 2000, 1000),
	    DEADLINE_PLAN_NEWEST);
	/* Nothing is known: nothing is given up. */
	assert_int_equal(deadline_plan(S, 0, UINT64_MAX, UINT64_MAX),
	    DEADLINE_PLAN_BOTH);
	assert_int_equal(deadline_plan(S, 1, UINT64_MAX, UINT64_MAX),
	    DEADLINE_PLAN_FLYING);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_happens_without_a_notice),
		cmocka_unit_test(each_action_is_said_once_and_in_order),
		cmocka_unit_test(the_stop_signal_leaves_time_for_the_upload),
		cmocka_unit_test(
		    a_save_that_was_asked_for_and_is_durable_ends_the_wait),
		cmocka_unit_test(
		    it_ends_when_the_trainer_has_ended_and_all_is_durable),
		cmocka_unit_test(only_an_earlier_end_moves_it),
		cmocka_unit_test(an_end_that_is_over_already_is_now),
		cmocka_unit_test(the_last_upload_leaves_time_to_close),
		cmocka_unit_test(
		    what_is_in_flight_gives_way_only_when_that_helps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
