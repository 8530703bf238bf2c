#include "kit/kit.h"

#include "base/clock.h"
#include "life/speed.h"

#define MB UINT64_C(1000000)
#define TICK (CLOCK_SECOND / 2)
#define START (1000 * CLOCK_SECOND)

/* ${count} samples, half a second apart, of a wire with this speed. */
static void
run(struct speed *speed, uint64_t *now, uint64_t *passed, unsigned count,
    uint64_t a_second)
{
	for (; count > 0; count--) {
		speed_sample(speed, *now, *passed);
		*now += TICK;
		*passed += a_second / 2;
	}
}

static void
it_is_unknown_until_something_was_seen(void **state)
{
	struct speed speed = { 0 };
	uint64_t now = START, passed = 0;

	(void)state;
	assert_int_equal(speed_now(&speed), 0);
	run(&speed, &now, &passed, 3, 10 * MB);
	assert_int_equal(speed_now(&speed), 0);
	run(&speed, &now, &passed, 2, 10 * MB);
	assert_in_range(speed_now(&speed), 10 * MB, 10 * MB + 1);
	assert_true(speed.fresh);
}

static void
it_follows_the_wire(void **state)
{
	struct speed speed = { 0 };
	uint64_t now = START, passed = 0;

	(void)state;
	run(&speed, &now, &passed, 20, 100 * MB);
	run(&speed, &now, &passed, SPEED_SAMPLES, 5 * MB);
	assert_in_range(speed_now(&speed), 5 * MB, 20 * MB);
	/* It stands still: that is no unknown speed. */
	run(&speed, &now, &passed, SPEED_SAMPLES + 1, 0);
	assert_in_range(speed_now(&speed), 1, MB);
}

static void
many_calls_are_one_sample(void **state)
{
	struct speed speed = { 0 };
	unsigned i;

	(void)state;
	for (i = 0; i < 1000; i++)
		speed_sample(&speed, START + i * CLOCK_MILLISECOND,
		    i * MB / 100);
	assert_in_range(speed.count, 2, 4);
}

static void
a_short_upload_counts_as_a_whole(void **state)
{
	struct speed speed = { 0 };
	uint64_t now = START, passed = 0;

	(void)state;
	speed_ended(&speed, 1000, CLOCK_SECOND);
	assert_int_equal(speed_now(&speed), 0);
	speed_ended(&speed, 20 * MB, 2 * CLOCK_SECOND);
	assert_int_equal(speed_now(&speed), 10 * MB);
	/* One with samples does not: it took time to read and to commit. */
	run(&speed, &now, &passed, 8, 50 * MB);
	speed_ended(&speed, 200 * MB, 20 * CLOCK_SECOND);
	assert_in_range(speed_now(&speed), 50 * MB, 50 * MB + 1);
	assert_false(speed.fresh);
	speed_forget(&speed);
	assert_int_equal(speed_now(&speed), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_unknown_until_something_was_seen),
		cmocka_unit_test(it_follows_the_wire),
		cmocka_unit_test(many_calls_are_one_sample),
		cmocka_unit_test(a_short_upload_counts_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
