#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/process.h"
#include "kit/kit.h"

/* Long enough for the slowest machine; no test ever waits for it. */
#define LONG (300 * CLOCK_SECOND)

static int
run_shell(const char *script, uint64_t timeout, struct buffer *buffer,
    struct error *error)
{
	char *const argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
	    (char *)(uintptr_t)script, NULL };

	return process_output(argv, timeout, buffer, error);
}

static void
check_output(const char *script, const char *expected)
{
	struct error error = ERROR_INIT;
	struct buffer buffer;

	buffer_init(&buffer, 65536);
	assert_ok(run_shell(script, LONG, &buffer, &error), error);
	assert_string_equal(buffer_text(&buffer), expected);
	buffer_free(&buffer);
}

static void
gives_the_output(void **state)
{
	struct error error = ERROR_INIT;
	struct buffer buffer;

	(void)state;
	check_output("echo one; echo two", "one\ntwo\n");
	check_output(":", "");
	check_output("echo seen; echo unseen >&2", "seen\n");

	/* It adds to what is there. */
	buffer_init(&buffer, 100);
	assert_ok(buffer_append(&buffer, "first ", 6, &error), error);
	assert_ok(run_shell("echo then", LONG, &buffer, &error), error);
	assert_string_equal(buffer_text(&buffer), "first then\n");
	buffer_free(&buffer);
}

static void
takes_more_than_a_pipe_holds(void **state)
{
	struct error error = ERROR_INIT;
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer, 1 << 20);
	assert_ok(run_shell("head -c 500000 /dev/zero", LONG, &buffer,
	    &error), error);
	assert_int_equal(buffer.length, 500000);
	buffer_free(&buffer);

	/* What is beyond the limit is dropped, and the program not stopped. */
	buffer_init(&buffer, 10);
	assert_ok(run_shell("head -c 500000 /dev/zero | tr '\\0' x", LONG,
	    &buffer, &error), error);
	assert_string_equal(buffer_text(&buffer), "xxxxxxxxxx");
	buffer_free(&buffer);
	buffer_init(&buffer, 0);
	assert_ok(run_shell("echo x", LONG, &buffer, &error), error);
	assert_string_equal(buffer_text(&buffer), "");
	buffer_free(&buffer);
}

static void
says_how_it_ended(void **state)
{
	static const struct {
		const char *script;
		const char *message;
	} cases[] = {
		{ "exit 3", "ended with exit status 3" },
		{ "echo x; exit 255", "ended with exit status 255" },
		{ "kill -TERM $$", "was ended by signal 15" },
		{ "no-such-program-anywhere", "ended with exit status 127" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = ERROR_INIT;
		struct buffer buffer;

		buffer_init(&buffer, 100);
		assert_int_equal(run_shell(cases[i].script, LONG, &buffer,
		    &error), -1);
		assert_int_equal(error.class, ERROR_FAILED);
		assert_string_equal(error.object, "sh");
		assert_string_equal(error.message, cases[i].message);
		buffer_free(&buffer);
	}
}

static void
a_missing_program_is_an_error(void **state)
{
	char *const argv[] = { (char[]){ "no-such-program-anywhere" }, NULL };
	struct error error = ERROR_INIT;
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer, 100);
	assert_int_equal(process_output(argv, LONG, &buffer, &error), -1);
	assert_int_equal(error.cause, CAUSE_NOT_FOUND);
	assert_string_equal(error.object, "no-such-program-anywhere");
	assert_non_null(strstr(error.message, "could not be started"));
	buffer_free(&buffer);
}

static void
starts_from_a_clean_state(void **state)
{
	sigset_t blocked, before;
	int fd = open("/dev/null", O_RDONLY);

	(void)state;
	assert_int_equal(dup2(fd, 57), 57);
	close(fd);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);

	check_output("cat; test ! -e /proc/self/fd/57 && echo closed",
	    "closed\n");

	/* glibc itself ignores 32 and 33, which it uses inside, in a child. */
	check_output("while read -r name set; do case $name in SigBlk:) "
	    "echo $((0x$set));; SigIgn:) echo $((0x$set & ~0x180000000));; "
	    "esac; done </proc/self/status", "0\n0\n");

	/* It leads a session: process, group and session are one number. */
	check_output("read pid name state parent group session rest "
	    "</proc/self/stat; test $pid = $group -a $pid = $session && "
	    "echo alone", "alone\n");

	signal(SIGPIPE, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(57);
}

static void
works_without_standard_descriptors(void **state)
{
	struct error error = ERROR_INIT;
	struct buffer buffer;
	int saved[3], result;

	(void)state;
	buffer_init(&buffer, 100);
	for (int i = 0; i < 3; i++) {
		saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
		close(i);
	}
	result = run_shell("cat; echo out; echo error >&2", LONG, &buffer,
	    &error);
	for (int i = 0; i < 3; i++) {
		if (saved[i] >= 0)
			dup2(saved[i], i);
		close(saved[i]);
	}
	assert_ok(result, error);
	assert_string_equal(buffer_text(&buffer), "out\n");
	buffer_free(&buffer);
}

/* Wait for a process that became ours, and say which signal ended it. */
static int
signal_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void
kills_the_whole_group_in_the_end(void **state)
{
	struct error error = ERROR_INIT;
	struct buffer buffer;
	pid_t pid;

	(void)state;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	buffer_init(&buffer, 100);
	assert_int_equal(run_shell("trap '' TERM; sleep 1000 & echo $!; wait",
	    CLOCK_SECOND, &buffer, &error), -1);
	assert_string_equal(error.object, "sh");
	assert_string_equal(error.message, "took longer than 1.0 s");
	pid = (pid_t)atol(buffer_text(&buffer));
	assert_true(pid > 1);
	assert_int_equal(signal_of(pid), SIGKILL);
	buffer_free(&buffer);

	/* No time at all. */
	buffer_init(&buffer, 100);
	assert_int_equal(run_shell("sleep 1000", 0, &buffer, &error), -1);
	assert_non_null(strstr(error.message, "took longer than"));
	buffer_free(&buffer);
}

static void
does_not_wait_for_what_was_left_running(void **state)
{
	struct error error = ERROR_INIT;
	struct buffer buffer;

	(void)state;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	buffer_init(&buffer, 100);
	assert_ok(run_shell("sleep 1000 & echo $!", CLOCK_NEVER, &buffer,
	    &error), error);
	assert_int_equal(signal_of((pid_t)atol(buffer_text(&buffer))),
	    SIGKILL);
	buffer_free(&buffer);

	/* And waits for a program that has only closed its output. */
	buffer_init(&buffer, 100);
	assert_int_equal(run_shell("echo x; exec >&-; sleep 0.1; exit 9",
	    LONG, &buffer, &error), -1);
	assert_string_equal(error.message, "ended with exit status 9");
	buffer_free(&buffer);
}

static void
does_not_need_the_test_clock_to_turn(void **state)
{
	struct error error = ERROR_INIT;
	struct buffer buffer;
	struct timespec start = { 1, 0 };

	(void)state;
	clock_test_start(start);
	buffer_init(&buffer, 100);
	assert_int_equal(run_shell("sleep 1000", CLOCK_MILLISECOND, &buffer,
	    &error), -1);
	buffer_free(&buffer);
	clock_test_stop();
}

static void *
run_often(void *argument)
{
	(void)argument;
	for (int i = 0; i < 5; i++) {
		struct error error = ERROR_INIT;
		struct buffer buffer;
		bool fine;

		buffer_init(&buffer, 100);
		fine = run_shell("echo $$; echo x", LONG, &buffer,
		    &error) == 0 && buffer.length > 2;
		buffer_free(&buffer);
		if (!fine)
			return (void *)1;
	}
	return NULL;
}

static void
any_thread_may_run_one(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run_often, NULL);
	for (int i = 0; i < 4; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_the_output),
		cmocka_unit_test(takes_more_than_a_pipe_holds),
		cmocka_unit_test(says_how_it_ended),
		cmocka_unit_test(a_missing_program_is_an_error),
		cmocka_unit_test(starts_from_a_clean_state),
		cmocka_unit_test(works_without_standard_descriptors),
		cmocka_unit_test(kills_the_whole_group_in_the_end),
		cmocka_unit_test(does_not_wait_for_what_was_left_running),
		cmocka_unit_test(does_not_need_the_test_clock_to_turn),
		cmocka_unit_test(any_thread_may_run_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
