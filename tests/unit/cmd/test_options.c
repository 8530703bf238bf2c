#include "kit/kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/options.h"

static struct options options;
static struct error error;

/* Parse the words of ${line}, split at blanks. */
static int
parse(enum command command, const char *line)
{
	static char copy[512];
	static char *words[32];
	int count = 0;
	char *word, *rest;

	options_free(&options);
	error_clear(&error);
	assert_true(strlen(line) < sizeof(copy));
	strcpy(copy, line);
	for (word = strtok_r(copy, " ", &rest); word != NULL;
	    word = strtok_r(NULL, " ", &rest)) {
		assert_true(count < 31);
		words[count++] = word;
	}
	words[count] = NULL;
	return options_parse(&options, command, count, words, &error);
}

static void
refuses(enum command command, const char *line, const char *part)
{
	assert_int_equal(parse(command, line), -1);
	assert_int_equal(error.class, ERROR_USAGE);
	if (strstr(error.message, part) == NULL)
		fail_msg("'%s' says: %s", line, error.message);
}

static int
set_up(void **state)
{
	(void)state;
	unsetenv("CKPTSYNC_DIR");
	unsetenv("CKPTSYNC_REMOTE");
	return 0;
}

static void
the_defaults_are_those_of_the_manual(void **state)
{
	(void)state;
	assert_ok(parse(COMMAND_RUN, "d s3://b/r -- python train.py -q"),
	    error);
	assert_string_equal(options.settings.folder, "d");
	assert_string_equal(options.settings.url, "s3://b/r");
	assert_string_equal(options.settings.command[0], "python");
	assert_string_equal(options.settings.command[2], "-q");
	assert_null(options.settings.command[3]);
	assert_false(options.quiet);
	assert_int_equal(options.settings.rules.keep, 3);
	assert_int_equal(options.settings.grace, 25 * CLOCK_SECOND);
	assert_int_equal(options.settings.start_timeout, 600 * CLOCK_SECOND);
	assert_int_equal(options.settings.delete_delay, 900 * CLOCK_SECOND);
	assert_int_equal(options.settings.companion_limit, 64 << 20);
	assert_int_equal(options.settings.stop_signal, SIGTERM);
	assert_int_equal(options.settings.save_signal, 0);
	assert_false(options.settings.stop_on_superseded);
}

static void
the_places_come_in_either_order_or_from_the_environment(void **state)
{
	(void)state;
	assert_ok(parse(COMMAND_PUSH, "s3://b/r d"), error);
	assert_string_equal(options.settings.folder, "d");
	assert_string_equal(options.settings.url, "s3://b/r");
	setenv("CKPTSYNC_DIR", "e", 1);
	assert_ok(parse(COMMAND_RESTORE, "s3://b/r"), error);
	assert_string_equal(options.settings.folder, "e");
	setenv("CKPTSYNC_REMOTE", "file:///r", 1);
	assert_ok(parse(COMMAND_RESTORE, ""), error);
	assert_string_equal(options.settings.url, "file:///r");
	assert_ok(parse(COMMAND_PUSH, "d"), error);
	assert_string_equal(options.settings.folder, "d");
	assert_string_equal(options.settings.url, "file:///r");
	assert_ok(parse(COMMAND_SHOW, "3-1"), error);
	assert_string_equal(options.checkpoint, "3-1");
	setenv("CKPTSYNC_REMOTE", "bucket/r", 1);
	refuses(COMMAND_RESTORE, "", "CKPTSYNC_REMOTE='bucket/r'");
}

static void
a_slash_at_the_end_makes_no_other_remote(void **state)
{
	(void)state;
	assert_ok(parse(COMMAND_LIST, "s3://b/r//"), error);
	assert_string_equal(options.settings.url, "s3://b/r");
	assert_ok(parse(COMMAND_LIST, "s3://"), error);
	assert_string_equal(options.settings.url, "s3://");
	assert_ok(parse(COMMAND_LIST, "file:///"), error);
	assert_string_equal(options.settings.url, "file:///");
}

static void
what_is_missing_is_named(void **state)
{
	(void)state;
	refuses(COMMAND_PUSH, "", "no remote");
	refuses(COMMAND_PUSH, "d", "no remote");
	refuses(COMMAND_PUSH, "s3://b/r", "no directory");
	refuses(COMMAND_RUN, "d s3://b/r", "no command");
	refuses(COMMAND_RUN, "d s3://b/r --", "no command");
	refuses(COMMAND_RUN, "d s3://b/r python", "two directories");
	assert_non_null(strstr(error.cure, "--"));
	refuses(COMMAND_PUSH, "s3://b/r s3://b/s d", "two remotes");
	refuses(COMMAND_LIST, "b/r", "not a remote");
	refuses(COMMAND_PUSH, "--keep", "--keep needs a value");
}

static void
a_wrong_option_is_named(void **state)
{
	(void)state;
	refuses(COMMAND_PUSH, "--azure-ack d s3://b/r", "--azure-ack");
	refuses(COMMAND_RESTORE, "--keep 3 d s3://b/r",
	    "an option of run, agent, push, not of restore");
	refuses(COMMAND_PUSH, "--keep 1 --keep=2 d s3://b/r", "given twice");
	refuses(COMMAND_PUSH, "--json=yes d s3://b/r", "takes no value");
	refuses(COMMAND_PUSH, "--keep 1 --keep-all d s3://b/r",
	    "do not go together");
	refuses(COMMAND_RESTORE, "--all --best d s3://b/r",
	    "do not go together");
	refuses(COMMAND_PUSH, "-qv d s3://b/r", "-qv");
}

static void
a_wrong_value_is_refused_with_its_option(void **state)
{
	(void)state;
	refuses(COMMAND_PUSH, "--keep 0 d s3://b/r", "--keep: ");
	refuses(COMMAND_PUSH, "--keep -1 d s3://b/r", "--keep: ");
	refuses(COMMAND_PUSH, "--limit-rate 12 d s3://b/r", "--limit-rate: ");
	refuses(COMMAND_PUSH, "--limit-rate 0B d s3://b/r", "--limit-rate: ");
	refuses(COMMAND_RUN, "--grace 25 d s3://b/r -- x", "--grace: ");
	refuses(COMMAND_RUN, "--save-signal FOO d s3://b/r -- x",
	    "--save-signal: 'FOO'");
	refuses(COMMAND_RUN, "--stop-signal 0 d s3://b/r -- x",
	    "--stop-signal: ");
	refuses(COMMAND_RUN, "--on-superseded die d s3://b/r -- x",
	    "continue, stop");
	refuses(COMMAND_LIST, "--addressing x s3://b/r",
	    "auto, path, virtual");
	refuses(COMMAND_LIST, "--log-format xml s3://b/r", "text, json");
	refuses(COMMAND_PUSH, "--exclude /abs d s3://b/r", "--exclude: ");
}

static void
values_are_taken_in(void **state)
{
	(void)state;
	assert_ok(parse(COMMAND_RUN, "--save-signal SIGUSR1 --stop-signal=int "
	    "--on-superseded stop --grace 2m --limit-rate 10MB/s --keep-all "
	    "--companions none --include *.pt --include logs/** --exclude x "
	    "--resume-args {} --addressing path -v d s3://b/r -- x"), error);
	assert_int_equal(options.settings.save_signal, SIGUSR1);
	assert_int_equal(options.settings.stop_signal, SIGINT);
	assert_true(options.settings.stop_on_superseded);
	assert_int_equal(options.settings.grace, 120 * CLOCK_SECOND);
	assert_int_equal(options.settings.limit_rate, 10000000);
	assert_int_equal(options.settings.rules.keep, 0);
	assert_int_equal(options.settings.companion_limit, 0);
	assert_int_equal(options.settings.view.include_count, 2);
	assert_string_equal(options.settings.view.include[1], "logs/**");
	assert_int_equal(options.settings.view.exclude_count, 1);
	assert_string_equal(options.settings.resume_arguments, "{}");
	assert_int_equal(options.settings.remote.addressing,
	    S3_ADDRESSING_PATH);
	assert_true(options.settings.remote.trace);
	assert_ok(parse(COMMAND_RUN, "--stop-signal 10 d s3://b/r -- x"),
	    error);
	assert_int_equal(options.settings.stop_signal, 10);
}

static void
those_who_ask_agents_need_no_places(void **state)
{
	(void)state;
	assert_ok(parse(COMMAND_STATUS, ""), error);
	assert_null(options.settings.folder);
	assert_ok(parse(COMMAND_FLUSH, "d --timeout 2m"), error);
	assert_string_equal(options.settings.folder, "d");
	assert_true(options.has_time);
	assert_int_equal(options.time, 120 * CLOCK_SECOND);
	assert_ok(parse(COMMAND_NOTICE, "--in 500ms --reason why --wait "
	    "--socket /s"), error);
	assert_int_equal(options.time, CLOCK_SECOND / 2);
	assert_string_equal(options.reason, "why");
	assert_true(options.wait);
	setenv("CKPTSYNC_DIR", "e", 1);
	/* Not a remote: it is nobody's that is running. */
	setenv("CKPTSYNC_REMOTE", "no remote", 1);
	assert_ok(parse(COMMAND_NOTICE, ""), error);
	assert_string_equal(options.settings.folder, "e");
	unsetenv("CKPTSYNC_DIR");
	unsetenv("CKPTSYNC_REMOTE");
	refuses(COMMAND_STATUS, "s3://b/r", "agents are found by their DIR");
	refuses(COMMAND_NOTICE, "d e", "two directories");
	refuses(COMMAND_FLUSH, "--in 5s", "--in is an option of notice");
}

static void
a_deadline_is_a_time_within_reason(void **state)
{
	const struct timespec noon = { .tv_sec = 1700000000 };	/* 22:13:20Z */

	(void)state;
	clock_test_start(noon);
	assert_ok(parse(COMMAND_AGENT, "d s3://b/r --deadline "
	    "2023-11-14T23:13:30+01:00"), error);
	assert_int_equal(options.settings.deadline,
	    clock_monotonic() + 10 * CLOCK_SECOND);
	refuses(COMMAND_AGENT, "d s3://b/r --deadline 2023-11-14T22:13:20Z",
	    "over already");
	refuses(COMMAND_AGENT, "d s3://b/r --deadline 2033-11-14T22:13:20Z",
	    "more than a year");
	refuses(COMMAND_AGENT, "d s3://b/r --deadline 25s", "not a time");
	clock_test_stop();
}

static void
help_and_version_need_nothing_else(void **state)
{
	(void)state;
	assert_ok(parse(COMMAND_RUN, "--help"), error);
	assert_true(options.help);
	assert_ok(parse(COMMAND_SHOW, "-h --nonsense"), error);
	assert_true(options.help);
	assert_ok(parse(COMMAND_PUSH, "--version"), error);
	assert_true(options.version);
}

static void
a_name_that_begins_with_a_dash_can_be_given(void **state)
{
	(void)state;
	assert_ok(parse(COMMAND_PUSH, "s3://b/r -- -odd"), error);
	assert_string_equal(options.settings.folder, "-odd");
}

static void
the_usage_names_every_option_of_its_command(void **state)
{
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	(void)state;
	assert_non_null(stream);
	options_usage(stream, COMMAND_RESTORE);
	assert_int_equal(fclose(stream), 0);
	assert_non_null(strstr(text, "ckptsync restore [options]"));
	assert_non_null(strstr(text, "--fallback"));
	assert_non_null(strstr(text, "--ca-bundle FILE"));
	assert_null(strstr(text, "--keep"));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_defaults_are_those_of_the_manual,
		    set_up),
		cmocka_unit_test_setup(
		    the_places_come_in_either_order_or_from_the_environment,
		    set_up),
		cmocka_unit_test_setup(
		    a_slash_at_the_end_makes_no_other_remote, set_up),
		cmocka_unit_test_setup(what_is_missing_is_named, set_up),
		cmocka_unit_test_setup(a_wrong_option_is_named, set_up),
		cmocka_unit_test_setup(
		    a_wrong_value_is_refused_with_its_option, set_up),
		cmocka_unit_test_setup(values_are_taken_in, set_up),
		cmocka_unit_test_setup(those_who_ask_agents_need_no_places,
		    set_up),
		cmocka_unit_test_setup(a_deadline_is_a_time_within_reason,
		    set_up),
		cmocka_unit_test_setup(help_and_version_need_nothing_else,
		    set_up),
		cmocka_unit_test_setup(
		    a_name_that_begins_with_a_dash_can_be_given, set_up),
		cmocka_unit_test_setup(
		    the_usage_names_every_option_of_its_command, set_up),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	options_free(&options);
	return failed;
}
