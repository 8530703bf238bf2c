#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "kit/kit.h"
#include "notice/ledger.h"
#include "notice/outbox.h"
#include "notice/sight.h"

static struct outbox *outbox;
static struct ledger *ledger;
static struct timespec start = { .tv_sec = 1796040000 };

static int
set_up(void **state)
{
	struct error error = ERROR_INIT;

	(void)state;
	clock_test_start(start);
	outbox = outbox_new(&error);
	ledger = ledger_new(outbox, &error);
	assert_non_null(ledger);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	ledger_free(ledger);
	outbox_free(outbox);
	clock_test_stop();
	return 0;
}

static void
tell(enum notice_kind kind, const char *id, const struct timespec *stated)
{
	struct ledger_word word = { .kind = kind, .source = "test",
	    .id = id, .reason = "because", .stated = stated,
	    .usual = 30 * CLOCK_SECOND };

	ledger_tell(ledger, &word);
}

/* What a document that says one thing tells. */
static void
read_one(enum notice_kind kind, const char *id, const struct timespec *stated)
{
	ledger_begin(ledger, 0);
	tell(kind, id, stated);
	ledger_end(ledger, true);
}

static void
expect(enum notice_kind kind, const char *id)
{
	struct notice notice;

	assert_true(outbox_take(outbox, &notice));
	assert_int_equal(notice.kind, kind);
	assert_string_equal(notice.id, id);
}

static void
expect_nothing(void)
{
	struct notice notice;

	assert_false(outbox_take(outbox, &notice));
}

static void
documents_do_not_disturb_each_other(void **state)
{
	(void)state;
	read_one(NOTICE_DEADLINE, "a", NULL);
	expect(NOTICE_DEADLINE, "a");
	ledger_begin(ledger, 1);
	tell(NOTICE_HINT, "b", NULL);
	ledger_end(ledger, true);
	expect(NOTICE_HINT, "b");
	ledger_begin(ledger, 1);
	ledger_end(ledger, true);
	expect(NOTICE_WITHDRAWN, "b");
	expect_nothing();
	assert_true(ledger_holds(ledger, "a"));
	assert_false(ledger_holds(ledger, "b"));
	ledger_begin(ledger, 0);
	ledger_end(ledger, true);
	expect(NOTICE_WITHDRAWN, "a");
	assert_false(ledger_holds(ledger, "a"));
}

/* The machine's clock is set while the countdown runs: it does not move. */
static void
a_stated_time_is_turned_once(void **state)
{
	struct timespec when = { .tv_sec = start.tv_sec + 100 };
	struct notice notice;
	uint64_t deadline;

	(void)state;
	read_one(NOTICE_DEADLINE, "a", &when);
	assert_true(outbox_take(outbox, &notice));
	deadline = notice.deadline;
	assert_int_equal(deadline, clock_monotonic() + 100 * CLOCK_SECOND);
	clock_test_start((struct timespec){ .tv_sec = start.tv_sec + 90 });
	read_one(NOTICE_DEADLINE, "a", &when);
	expect_nothing();
	when.tv_sec--;
	read_one(NOTICE_DEADLINE, "a", &when);
	assert_true(outbox_take(outbox, &notice));
	assert_int_equal(notice.deadline,
	    clock_monotonic() + 9 * CLOCK_SECOND);
}

static void
an_unstated_time_does_not_slide(void **state)
{
	struct timespec when = { .tv_sec = start.tv_sec + 40 };

	(void)state;
	read_one(NOTICE_DEADLINE, "a", NULL);
	expect(NOTICE_DEADLINE, "a");
	clock_test_turn(10 * CLOCK_SECOND);
	read_one(NOTICE_DEADLINE, "a", NULL);
	expect_nothing();

	/* Stated, but later than what was told. */
	read_one(NOTICE_DEADLINE, "a", &when);
	expect_nothing();
	when.tv_sec = start.tv_sec + 20;
	read_one(NOTICE_DEADLINE, "a", &when);
	expect(NOTICE_DEADLINE, "a");
	read_one(NOTICE_DEADLINE, "a", NULL);
	expect_nothing();
}

static void
foreign_bytes_are_made_harmless(void **state)
{
	char id[200], reason[400];
	struct ledger_word word = { .kind = NOTICE_HINT,
	    .source = "a source with a name that is far too long for its place",
	    .id = id, .reason = reason };
	struct notice notice;

	(void)state;
	memset(id, 'x', sizeof(id));
	memset(reason, '\x1b', sizeof(reason));
	memcpy(reason, "a\nb\xc3\xa4", 5);
	id[sizeof(id) - 1] = '\0';
	reason[sizeof(reason) - 1] = '\0';
	ledger_begin(ledger, 0);
	ledger_tell(ledger, &word);
	ledger_end(ledger, true);
	assert_true(outbox_take(outbox, &notice));
	assert_int_equal(strlen(notice.id), sizeof(notice.id) - 1);
	assert_int_equal(strlen(notice.reason), sizeof(notice.reason) - 1);
	assert_memory_equal(notice.reason, "a?b???", 6);
	assert_int_equal(strlen(notice.source), sizeof(notice.source) - 1);

	/* The id that was cut is still the same. */
	ledger_begin(ledger, 0);
	ledger_tell(ledger, &word);
	ledger_end(ledger, true);
	expect_nothing();
}

/* A flood of hints does not keep the one that counts away, nor grow. */
static void
a_flood_does_not_hide_a_deadline(void **state)
{
	struct notice notice;
	char id[32];
	int count = 0;

	(void)state;
	ledger_begin(ledger, 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(id, sizeof(id), "hint-%d", i);
		tell(NOTICE_HINT, id, NULL);
	}
	ledger_end(ledger, true);
	while (outbox_take(outbox, &notice))
		count++;
	assert_true(count <= 64);
	ledger_begin(ledger, 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(id, sizeof(id), "hint-%d", i);
		tell(NOTICE_HINT, id, NULL);
	}
	tell(NOTICE_DEADLINE, "the end", NULL);
	ledger_end(ledger, true);
	expect(NOTICE_DEADLINE, "the end");
	expect_nothing();
}

/* Nobody takes notices out: what does not fit comes at a later poll. */
static void
what_does_not_fit_is_offered_again(void **state)
{
	struct notice notice = { .kind = NOTICE_SEEING };

	(void)state;
	while (outbox_put(outbox, &notice) == 0)
		;
	read_one(NOTICE_DEADLINE, "a", NULL);
	assert_false(ledger_holds(ledger, "a"));
	assert_true(outbox_take(outbox, &notice));
	read_one(NOTICE_DEADLINE, "a", NULL);
	assert_true(ledger_holds(ledger, "a"));
	while (outbox_take(outbox, &notice) && notice.kind == NOTICE_SEEING)
		;
	assert_int_equal(notice.kind, NOTICE_DEADLINE);
}

static void
sight_is_said_when_it_changes(void **state)
{
	struct error error = ERROR_INIT;
	struct sight *sight = sight_new(outbox, &error);
	struct notice notice;

	(void)state;
	error_set(&error, ERROR_FAILED, CAUSE_UNREACHABLE, "there", "gone");
	sight_name(sight, "cloud", 60 * CLOCK_SECOND);
	sight_fails(sight, "silent", false, &error);
	expect_nothing();
	clock_test_turn(3 * CLOCK_SECOND);
	sight_fails(sight, "silent", false, &error);
	assert_true(outbox_take(outbox, &notice));
	assert_int_equal(notice.kind, NOTICE_BLIND);
	assert_string_equal(notice.error.message, "gone");
	sight_fails(sight, "silent", false, &error);
	expect_nothing();
	sight_fails(sight, "blocked", true, &error);
	expect(NOTICE_BLIND, "");
	sight_works(sight);
	sight_works(sight);
	expect(NOTICE_SEEING, "");
	expect_nothing();

	/* Who has answered is given time; the same cause is not said again
	 * within ten minutes, and then it is. */
	sight_fails(sight, "silent", true, &error);
	clock_test_turn(61 * CLOCK_SECOND);
	sight_fails(sight, "silent", true, &error);
	expect_nothing();
	clock_test_turn(600 * CLOCK_SECOND);
	sight_fails(sight, "silent", true, &error);
	expect(NOTICE_BLIND, "");
	sight_works(sight);
	expect(NOTICE_SEEING, "");
	expect_nothing();
	sight_free(sight);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(documents_do_not_disturb_each_other),
		TEST(a_stated_time_is_turned_once),
		TEST(an_unstated_time_does_not_slide),
		TEST(foreign_bytes_are_made_harmless),
		TEST(a_flood_does_not_hide_a_deadline),
		TEST(what_does_not_fit_is_offered_again),
		TEST(sight_is_said_when_it_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
