#include "kit/kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "life/hooks.h"
#include "life/loop.h"

static char *folder, *output;
static size_t length;	/* of a file that was read */
static struct loop *loop;
static struct hooks *hooks;
static struct loop_timer timer;

static int
set_up(void **state)
{
	struct error error = ERROR_INIT;

	(void)state;
	folder = kit_scratch();
	output = path_join(folder, "output");
	memset(&timer, 0, sizeof(timer));
	loop = loop_new(&error);
	hooks = hooks_new(loop, &error);
	setenv("OUTPUT", output, 1);
	return loop == NULL || hooks == NULL;
}

static int
tear_down(void **state)
{
	(void)state;
	hooks_free(hooks);
	loop_free(loop);
	kit_scratch_remove(folder);
	free(output);
	free(folder);
	return 0;
}

static void
look(void *context)
{
	(void)context;
	if (!hooks_busy(hooks)) {
		loop_stop(loop);
		return;
	}
	loop_timer_set(loop, &timer, clock_monotonic() +
	    10 * CLOCK_MILLISECOND, look, NULL);
}

/* Until none runs. */
static void
run_loop(void)
{
	struct error error = ERROR_INIT;

	loop_timer_set(loop, &timer, clock_monotonic() + 1, look, NULL);
	assert_ok(loop_run(loop, &error), error);
}

static void
it_finds_the_facts_in_its_environment(void **state)
{
	char *text;

	(void)state;
	setenv("CKPTSYNC_ID", "of another event", 1);
	setenv("CKPTSYNC_IDENTITY", "stays", 1);
	hooks_run(hooks, "commit", "printf '%s|%s|%s|%s' \"$CKPTSYNC_EVENT\" "
	    "\"$CKPTSYNC_CHECKPOINT\" \"$CKPTSYNC_ID\" \"$CKPTSYNC_IDENTITY\" "
	    "> $OUTPUT", HOOK_FACTS({ "CHECKPOINT", "a; rm -rf \"$HOME\"" },
	    { "ID", NULL }));
	assert_true(hooks_busy(hooks));
	run_loop();
	text = kit_read_file(output, &length);
	assert_string_equal(text, "commit|a; rm -rf \"$HOME\"||stays");
	free(text);
}

static void
one_that_hangs_is_killed_with_its_children(void **state)
{
	uint64_t began = clock_monotonic();
	char *text;

	(void)state;
	hooks_run(hooks, "notice", "trap '' TERM; sleep 1000 & echo $! > "
	    "$OUTPUT; wait", NULL, 0);
	while (access(output, F_OK) != 0)
		clock_sleep(CLOCK_MILLISECOND);
	hooks_deadline(hooks, began + CLOCK_SECOND);
	run_loop();
	assert_true(clock_monotonic() >= began + CLOCK_SECOND);
	assert_true(clock_monotonic() < began + 20 * CLOCK_SECOND);
	text = kit_read_file(output, &length);
	/* It is gone, or waits for whoever reaps it. */
	while (kill(atoi(text), 0) == 0 &&
	    clock_monotonic() < began + 20 * CLOCK_SECOND) {
		char state_path[64], *status;

		snprintf(state_path, sizeof(state_path), "/proc/%d/stat",
		    atoi(text));
		if (access(state_path, R_OK) != 0)
			break;
		status = kit_read_file(state_path, &length);
		if (strstr(status, ") Z ") != NULL) {
			free(status);
			break;
		}
		free(status);
		clock_sleep(10 * CLOCK_MILLISECOND);
	}
	assert_true(clock_monotonic() < began + 20 * CLOCK_SECOND);
	free(text);
}

static void
too_many_are_skipped(void **state)
{
	unsigned i;
	char *text;

	(void)state;
	for (i = 0; i < 20; i++)
		hooks_run(hooks, "error", "echo x >> $OUTPUT; "
		    "while [ ! -e $OUTPUT.go ]; do sleep 0.01; done", NULL, 0);
	text = path_join(folder, "output.go");
	kit_write_file(text, "", 0);
	free(text);
	run_loop();
	text = kit_read_file(output, &length);
	assert_int_equal(strlen(text), 2 * 8);
	free(text);
	/* There is room again. */
	hooks_run(hooks, "error", "echo y >> $OUTPUT", NULL, 0);
	assert_true(hooks_busy(hooks));
	run_loop();
}

static void
none_is_none(void **state)
{
	(void)state;
	hooks_run(hooks, "commit", NULL, NULL, 0);
	assert_false(hooks_busy(hooks));
}

#define HOOK_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		HOOK_TEST(it_finds_the_facts_in_its_environment),
		HOOK_TEST(one_that_hangs_is_killed_with_its_children),
		HOOK_TEST(too_many_are_skipped),
		HOOK_TEST(none_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
