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
	/* In time for a last look, and that in time for close.json. */
	assert_int_equal(deadline_kill_time(&deadline), START + 23 * S);
	assert_int_equal(deadline_step(&deadline, START + 23 * S - 1, &facts),
	    0);
	assert_int_equal(deadline_step(&deadline, START + 23 * S, &facts),
	    DEADLINE_KILL);
	assert_int_equal(deadline_step(&deadline, START + 24 * S - 1, &facts),
	    0);
	assert_int_equal(deadline_step(&deadline, START + 24 * S, &facts),
	    DEADLINE_END);
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
	/* What cannot make it in any case is no reason to stop early. */
	facts.bytes = UINT64_C(1) << 50;
	assert_int_equal(deadline_stop_time(&deadline, &facts),
	    START + 115 * S);
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
there_is_time_for_one_more_save(void **state)
{
	struct deadline deadline = { 0 };
	struct deadline_facts facts = { .trainer = true, .asked = true,
	    .saved = true, .round = 8 * S };

	(void)state;
	deadline_notice(&deadline, START, START + 120 * S);
	(void)deadline_step(&deadline, START, &facts);
	/* 8 s and a quarter more, and 5 s in reserve. */
	assert_int_equal(deadline_step(&deadline, START + 8 * S, &facts), 0);
	assert_int_equal(deadline_step(&deadline, START + 105 * S - 1, &facts),
	    0);
	assert_int_equal(deadline_step(&deadline, START + 105 * S, &facts),
	    DEADLINE_SAVE);
	facts.saved = false;
	assert_int_equal(deadline_step(&deadline, START + 110 * S, &facts), 0);
	facts.saved = true;
	assert_int_equal(deadline_step(&deadline, START + 112 * S, &facts),
	    DEADLINE_STOP);
}

static void
a_second_save_must_be_worth_it(void **state)
{
	struct deadline deadline = { 0 };
	struct deadline_facts facts = { .trainer = true, .asked = true,
	    .saved = true, .round = 8 * S };

	(void)state;
	deadline_notice(&deadline, START, START + 25 * S);
	(void)deadline_step(&deadline, START, &facts);
	assert_int_equal(deadline.said & DEADLINE_STOP, DEADLINE_STOP);
	assert_int_equal(deadline_step(&deadline, START + 8 * S, &facts), 0);
}

static void
beside_a_trainer_that_is_not_ours_it_stays(void **state)
{
	struct deadline deadline = { 0 };
	struct deadline_facts facts = { .stays = true, .flushed = true };

	(void)state;
	deadline_notice(&deadline, START, START + 30 * S);
	assert_int_equal(deadline_step(&deadline, START, &facts),
	    DEADLINE_LIFT);
	assert_int_equal(deadline_step(&deadline, START + 28 * S, &facts), 0);
	assert_int_equal(deadline_step(&deadline, START + 29 * S, &facts),
	    DEADLINE_END);
}

static void
a_notice_that_is_withdrawn_brings_back_normal(void **state)
{
	struct deadline deadline = { 0 };
	struct deadline_facts facts = { .trainer = true };

	(void)state;
	deadline_notice(&deadline, START, START + 10 * S);
	assert_int_equal(deadline_step(&deadline, START, &facts),
	    DEADLINE_LIFT);
	deadline_withdraw(&deadline);
	assert_int_equal(deadline.state, DEADLINE_NORMAL);
	assert_int_equal(deadline_step(&deadline, START + 60 * S, &facts), 0);
	/* The next one begins anew. */
	deadline_notice(&deadline, START + 70 * S, START + 95 * S);
	assert_int_equal(deadline_step(&deadline, START + 70 * S, &facts),
	    DEADLINE_LIFT);
	assert_int_equal(deadline_step(&deadline, START + 94 * S, &facts) &
	    DEADLINE_END, DEADLINE_END);
	deadline_withdraw(&deadline);
	assert_int_equal(deadline.state, DEADLINE_DONE);
}

#define RATE 100	/* bytes a second */

static size_t
choose(const struct deadline_item *items, size_t count, uint64_t seconds)
{
	return deadline_choose(items, count, seconds * S, RATE);
}

static void
nothing_is_chosen_of_nothing(void **state)
{
	(void)state;
	assert_int_equal(deadline_choose(NULL, 0, S, RATE), DEADLINE_NONE);
}

static void
the_newest_that_can_make_it_is_chosen(void **state)
{
	const struct deadline_item items[] = {
		{ .order = 1, .left = 100, .resumes = true },
		{ .order = 2, .left = 1000, .resumes = true },
		{ .order = 3, .left = 3000, .resumes = true },
		{ .order = 4, .left = 1, .resumes = false },
	};

	(void)state;
	assert_int_equal(choose(items, 4, 60), 2);
	/* The newest cannot make it: an older one can. */
	assert_int_equal(choose(items, 4, 20), 1);
	assert_int_equal(choose(items, 4, 5), 0);
	/* Only what nobody goes on from. */
	assert_int_equal(choose(items + 1, 3, 1), 2);
	assert_int_equal(choose(items + 1, 2, 1), DEADLINE_NONE);
}

static void
what_is_in_flight_is_finished_first_if_both_can(void **state)
{
	const struct deadline_item items[] = {
		{ .order = 1, .left = 1000, .resumes = true, .flying = true },
		{ .order = 2, .left = 1000, .resumes = true },
	};

	(void)state;
	assert_int_equal(choose(items, 2, 100), 0);
	assert_int_equal(choose(items, 2, 15), 1);
}

static void
an_older_one_that_is_nearly_there_beats_a_newer_one_that_is_not(void **state)
{
	const struct deadline_item items[] = {
		{ .order = 1, .left = 100, .resumes = true },
		{ .order = 2, .left = 100000, .resumes = true, .flying = true },
	};

	(void)state;
	assert_int_equal(choose(items, 2, 15), 0);
}

static void
nothing_is_spent_on_what_cannot_make_it(void **state)
{
	const struct deadline_item items[] = {
		{ .order = 1, .left = 1500, .resumes = true, .flying = true },
	};
	const struct deadline_item huge[] = {
		{ .order = 1, .left = UINT64_MAX, .resumes = true,
		    .flying = true },
		{ .order = 2, .left = UINT64_MAX, .resumes = true },
	};

	(void)state;
	assert_int_equal(choose(items, 1, 10), DEADLINE_NONE);
	/* An estimate is no proof: nearly is worth trying. */
	assert_int_equal(choose(items, 1, 14), 0);
	assert_int_equal(choose(huge, 2, 14), DEADLINE_NONE);
}

static void
without_a_speed_nothing_is_given_up(void **state)
{
	const struct deadline_item items[] = {
		{ .order = 1, .left = UINT64_MAX, .resumes = true,
		    .flying = true },
		{ .order = 2, .left = UINT64_MAX, .resumes = true },
	};

	(void)state;
	assert_int_equal(deadline_choose(items, 2, S, 0), 0);
	assert_int_equal(deadline_choose(items + 1, 1, S, 0), 0);
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
		cmocka_unit_test(there_is_time_for_one_more_save),
		cmocka_unit_test(a_second_save_must_be_worth_it),
		cmocka_unit_test(beside_a_trainer_that_is_not_ours_it_stays),
		cmocka_unit_test(a_notice_that_is_withdrawn_brings_back_normal),
		cmocka_unit_test(nothing_is_chosen_of_nothing),
		cmocka_unit_test(the_newest_that_can_make_it_is_chosen),
		cmocka_unit_test(
		    what_is_in_flight_is_finished_first_if_both_can),
		cmocka_unit_test(
		    an_older_one_that_is_nearly_there_beats_a_newer_one_that_is_not),
		cmocka_unit_test(nothing_is_spent_on_what_cannot_make_it),
		cmocka_unit_test(without_a_speed_nothing_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
