#include "kit/kit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "store/manifest.h"
#include "store/retention.h"

/*
 * A history in short: one word a checkpoint, oldest first.  "r10" is a resume
 * point of step 10, "r" one of unknown step, b and f a best and a final one;
 * signs behind: a adopted, c the resume point then, u unproven, p present, *
 * pointed, and /x the series x.  What is to stay is in capitals.
 */
struct history {
	struct manifest manifests[32];
	struct retention_item items[32];
	char names[32][16];
	bool expected[32];
	size_t count;
};

static void
take_signs(struct history *history, const char *signs)
{
	struct retention_item *item = &history->items[history->count];
	struct manifest *manifest = &history->manifests[history->count];

	for (; *signs != '\0'; signs++) {
		item->adopted |= *signs == 'a' || *signs == 'c';
		item->resume |= *signs == 'c';
		item->present |= *signs == 'p';
		item->pointed |= *signs == '*';
		if (*signs == 'u')
			manifest->proven = false;
		if (*signs == '/') {
			manifest->series = (char *)signs + 1;
			break;
		}
	}
}

static void
parse(const char *text, struct history *history)
{
	static char words[32][16];
	unsigned step;
	int used;

	memset(history, 0, sizeof(*history));
	for (; sscanf(text, "%15s%n", words[history->count], &used) == 1;
	    text += used) {
		struct manifest *manifest =
		    &history->manifests[history->count];
		char *word = words[history->count];

		history->expected[history->count] = *word < 'a';
		manifest->role = (*word | 32) == 'r' ? ROLE_RESUME :
		    (*word | 32) == 'b' ? ROLE_BEST : ROLE_FINAL;
		manifest->proven = true;
		manifest->series = (char *)"s";
		snprintf(history->names[history->count], 16, "n%zu",
		    history->count);
		manifest->name = history->names[history->count];
		manifest->completed.tv_sec = (time_t)history->count;
		manifest->has_step = sscanf(word + 1, "%u%n", &step, &used) ==
		    1;
		manifest->step = manifest->has_step ? step : 0;
		history->items[history->count].manifest = manifest;
		take_signs(history, word + 1 +
		    strspn(word + 1, "0123456789"));
		history->count++;
		sscanf(text, "%*s%n", &used);
	}
}

/* Decide, compare, and tell which is the resume point. */
static size_t
decide(const char *text, uint64_t keep)
{
	const struct retention_rules rules = { keep };
	struct history history;
	size_t i;

	parse(text, &history);
	retention_decide(history.items, history.count, &rules);
	for (i = 0; i < history.count; i++) {
		if (history.items[i].keep != history.expected[i])
			fail_msg("\"%s\": number %zu is %s", text, i,
			    history.items[i].keep ? "kept" : "dropped");
	}
	return retention_resume(history.items, history.count);
}

static void
test_newest_stay(void **state)
{
	(void)state;
	assert_int_equal(decide("r1 r2 R3 R4 R5", 3), 4);
	assert_int_equal(decide("r1 r2 r3 r4 R5", 1), 4);
	assert_int_equal(decide("R1 R2 R3", 0), 2);
	assert_int_equal(decide("R1", 3), 0);
	assert_int_equal(decide("r1 R2p R3p", 1) , 2);
}

static void
test_best_and_final_have_their_own(void **state)
{
	(void)state;
	assert_int_equal(decide("b1 R1 B2 R2 R3", 3), 4);
	assert_int_equal(decide("B1/x b1 B2 F3 R3", 1), 4);
	assert_int_equal(decide("b1 B2", 3), 1);
	/* A best that is committed last does not push a resume point out. */
	assert_int_equal(decide("r1 R2 b2 B3", 1), 1);
	assert_int_equal(decide("B5 F1", 1), 0);
}

static void
test_unproven_displaces_nothing_proven(void **state)
{
	(void)state;
	assert_int_equal(decide("r1 R2 r3u R4u R5u", 2), 4);
	assert_int_equal(decide("b1 B2 b3u B4u R1", 1), 4);
	assert_int_equal(decide("r1u R2", 1), 1);
}

static void
test_present_stays(void **state)
{
	(void)state;
	assert_int_equal(decide("R1p r2 R3p r4 R5", 1), 4);
	assert_int_equal(decide("B1p b2 B3 R1", 1), 3);
}

static void
test_adopted_stays_until_it_is_passed(void **state)
{
	(void)state;
	assert_int_equal(decide("r900a R1000a r0 r1 R2", 1), 4);
	assert_int_equal(decide("r900a r1000a r0 r1 R1001", 1), 4);
	assert_int_equal(decide("r900a R1000a r0 r1 R1000", 1), 4);
	/* What was adopted passes nothing, however far it went. */
	assert_int_equal(decide("R1000a B2000a B3 R5", 1), 3);
	/* Unknown step: for the whole term. */
	assert_int_equal(decide("ra Ra r5000 R6000", 1), 3);
	/* Nothing adopted has passed it. */
	assert_int_equal(decide("R100c R90a r1 R2", 1), 3);
	/* The best of before outlives a worse one from zero. */
	assert_int_equal(decide("B900a R1000a b5 B6 R7", 1), 4);
	assert_int_equal(decide("b900a r1000a b5 B1001 R1001", 1), 4);
}

static void
test_resume_point(void **state)
{
	(void)state;
	/* Own before adopted, even when that went further. */
	assert_int_equal(decide("R1000c R5", 3), 1);
	/* Pointed, then step, then time. */
	assert_int_equal(decide("R7* R9 R8", 3), 0);
	assert_int_equal(decide("R7 R9 R8", 3), 1);
	assert_int_equal(decide("R7 R R8", 3), 2);
	assert_int_equal(decide("R8 R8 R8", 3), 2);
	/* Only best commits so far: what was adopted, as it was then. */
	assert_int_equal(decide("R10c R1000a B5", 3), 0);
	assert_int_equal(decide("R10a R1000a B5", 3), 1);
	/* Nothing but best and final. */
	assert_int_equal(decide("B10c B1000a/x B5/y", 3), 1);
	assert_int_equal(decide("R5* B9", 3), 0);
}

static void
test_resume_by_time_and_name(void **state)
{
	struct history history;

	(void)state;
	parse("R5 R5 R5", &history);
	history.items[0].keep = history.items[1].keep = true;
	history.items[2].keep = false;
	assert_int_equal(retention_resume(history.items, 3), 1);
	history.manifests[0].completed.tv_nsec = 1;
	history.manifests[0].completed.tv_sec = 1;
	assert_int_equal(retention_resume(history.items, 3), 0);
	history.manifests[1].completed = history.manifests[0].completed;
	assert_int_equal(retention_resume(history.items, 3), 1);
	history.manifests[0].name = (char *)"zebra";
	assert_int_equal(retention_resume(history.items, 3), 0);
	assert_true(retention_resume(history.items, 0) == SIZE_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_stay),
		cmocka_unit_test(test_best_and_final_have_their_own),
		cmocka_unit_test(test_unproven_displaces_nothing_proven),
		cmocka_unit_test(test_present_stays),
		cmocka_unit_test(test_adopted_stays_until_it_is_passed),
		cmocka_unit_test(test_resume_point),
		cmocka_unit_test(test_resume_by_time_and_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
