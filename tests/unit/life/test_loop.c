#include "kit/kit.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "life/loop.h"

/* What happened, in order, one letter each. */
static char told[32];
static struct loop *loop;
static struct loop_timer early, late;
static int ends[2];

static void
tell(char letter)
{
	size_t length = strlen(told);

	assert_true(length + 1 < sizeof(told));
	told[length] = letter;
	told[length + 1] = '\0';
}

static int
set_up(void **state)
{
	struct error error = ERROR_INIT;

	(void)state;
	told[0] = '\0';
	memset(&early, 0, sizeof(early));
	memset(&late, 0, sizeof(late));
	loop = loop_new(&error);
	return pipe(ends) == 0 && loop != NULL ? 0 : -1;
}

static int
tear_down(void **state)
{
	(void)state;
	loop_free(loop);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static void
at_early(void *context)
{
	(void)context;
	tell('e');
}

static void
at_late(void *context)
{
	(void)context;
	tell('l');
	loop_stop(loop);
}

static void
timers_come_in_their_order(void **state)
{
	struct error error = ERROR_INIT;
	uint64_t now = clock_monotonic();

	(void)state;
	loop_timer_set(loop, &late, now + 3 * CLOCK_MILLISECOND, at_late,
	    NULL);
	loop_timer_set(loop, &early, now + CLOCK_MILLISECOND, at_late, NULL);
	/* Set anew: the last word counts. */
	loop_timer_set(loop, &early, now + 2 * CLOCK_MILLISECOND, at_early,
	    NULL);
	assert_ok(loop_run(loop, &error), error);
	assert_string_equal(told, "el");
	assert_int_equal(late.when, 0);
}

static void
a_timer_that_was_stopped_never_comes(void **state)
{
	struct error error = ERROR_INIT;
	uint64_t now = clock_monotonic();

	(void)state;
	loop_timer_set(loop, &early, now + CLOCK_MILLISECOND, at_early, NULL);
	loop_timer_set(loop, &late, now + 2 * CLOCK_MILLISECOND, at_late,
	    NULL);
	loop_timer_stop(loop, &early);
	assert_ok(loop_run(loop, &error), error);
	assert_string_equal(told, "l");
}

static void
readable(void *context)
{
	char byte;

	(void)context;
	assert_int_equal(read(ends[0], &byte, 1), 1);
	tell(byte);
	if (byte == 'x')
		loop_stop(loop);
	if (byte == 'f') {
		/* Forget itself; the timer ends the loop. */
		loop_forget(loop, ends[0]);
		loop_timer_set(loop, &late, clock_monotonic() +
		    CLOCK_MILLISECOND, at_late, NULL);
	}
}

static void
a_descriptor_is_heard_until_it_is_forgotten(void **state)
{
	struct error error = ERROR_INIT;

	(void)state;
	assert_ok(loop_watch(loop, ends[0], POLLIN, readable, NULL, &error),
	    error);
	assert_int_equal(write(ends[1], "abx", 3), 3);
	assert_ok(loop_run(loop, &error), error);
	assert_string_equal(told, "abx");
	assert_int_equal(write(ends[1], "fg", 2), 2);
	assert_ok(loop_run(loop, &error), error);
	assert_string_equal(told, "abxfl");
}

static void
signalled(void *context, const struct signalfd_siginfo *info)
{
	(void)context;
	tell(info->ssi_signo == SIGUSR1 ? '1' : '2');
	if (info->ssi_signo == SIGUSR2)
		loop_stop(loop);
}

static void
signals_come_as_events(void **state)
{
	struct error error = ERROR_INIT;
	sigset_t set;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	assert_ok(loop_signals(loop, &set, signalled, NULL, &error), error);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	assert_int_equal(kill(getpid(), SIGUSR2), 0);
	assert_ok(loop_run(loop, &error), error);
	assert_string_equal(told, "12");
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(timers_come_in_their_order),
		TEST(a_timer_that_was_stopped_never_comes),
		TEST(a_descriptor_is_heard_until_it_is_forgotten),
		TEST(signals_come_as_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
