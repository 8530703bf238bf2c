#include "kit/kit.h"

#include "base/clock.h"
#include "life/flush.h"

#define S CLOCK_SECOND
#define NOW (1000 * S)

static void
it_is_over_when_all_that_was_found_has_been_dealt_with(void **state)
{
	struct flush flush = { 0 };
	struct flush_facts facts = { .last = 7, .pending = 5 };

	(void)state;
	flush_begin(&flush, NOW, 3);
	assert_false(flush_over(&flush, &facts));
	flush_scanned(&flush, NOW, 2, &facts);
	assert_int_equal(flush.state, FLUSH_SCANNING);
	flush_scanned(&flush, NOW, 3, &facts);
	assert_false(flush_over(&flush, &facts));
	/* What completes later does not count. */
	facts.pending = 8;
	facts.last = 9;
	assert_true(flush_over(&flush, &facts));
	facts.pending = 1;
	assert_true(flush_over(&flush, &facts));
}

static void
nothing_found_is_over_at_once(void **state)
{
	struct flush flush = { 0 };
	struct flush_facts facts = { .last = 0, .pending = UINT64_MAX };

	(void)state;
	flush_begin(&flush, NOW, 1);
	flush_scanned(&flush, NOW, 1, &facts);
	assert_true(flush_over(&flush, &facts));
}

static void
files_that_were_just_written_are_waited_for(void **state)
{
	struct flush flush = { 0 };
	struct flush_facts facts = { .pending = UINT64_MAX,
	    .unsettled = true };
	uint64_t now = NOW;
	unsigned scans = 0;

	(void)state;
	flush_begin(&flush, now, 1);
	flush_scanned(&flush, now, 1, &facts);
	while (flush.state != FLUSH_DRAINING) {
		assert_int_equal(flush.state, FLUSH_SETTLING);
		assert_false(flush_over(&flush, &facts));
		assert_false(flush_wants_scan(&flush, now));
		now = flush.again;
		assert_true(flush_wants_scan(&flush, now));
		flush_begin_scan(&flush, 2 + scans);
		flush_scanned(&flush, now, 2 + scans++, &facts);
		assert_true(scans < 100);
	}
	/* Not for ever: what is never complete does not hold up the end. */
	assert_true(now >= NOW + FLUSH_SETTLE_SECONDS * S);
	assert_true(flush_over(&flush, &facts));
}

static void
it_goes_on_as_soon_as_they_have_settled(void **state)
{
	struct flush flush = { 0 };
	struct flush_facts facts = { .pending = UINT64_MAX,
	    .unsettled = true };

	(void)state;
	flush_begin(&flush, NOW, 1);
	flush_scanned(&flush, NOW, 1, &facts);
	flush_begin_scan(&flush, 2);
	facts = (struct flush_facts){ .last = 1, .pending = 1 };
	flush_scanned(&flush, NOW + S, 2, &facts);
	assert_int_equal(flush.state, FLUSH_DRAINING);
	assert_false(flush_over(&flush, &facts));
	facts.pending = UINT64_MAX;
	assert_true(flush_over(&flush, &facts));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    it_is_over_when_all_that_was_found_has_been_dealt_with),
		cmocka_unit_test(nothing_found_is_over_at_once),
		cmocka_unit_test(files_that_were_just_written_are_waited_for),
		cmocka_unit_test(it_goes_on_as_soon_as_they_have_settled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
