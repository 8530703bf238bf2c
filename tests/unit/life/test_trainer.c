#include "kit/kit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "life/launcher.h"
#include "life/supervisor.h"
#include "life/trainer.h"

static char *const command[] = { "python", "train.py", "--from={restored}",
    NULL };

static void
the_path_replaces_its_marks(void **state)
{
	struct error error = ERROR_INIT;
	char **arguments = trainer_arguments(command, "/d/last.pt",
	    "--resume  '{}' --note \"a b\" c\\ d", &error);

	(void)state;
	assert_non_null(arguments);
	assert_string_equal(arguments[2], "--from=/d/last.pt");
	assert_string_equal(arguments[3], "--resume");
	assert_string_equal(arguments[4], "/d/last.pt");
	assert_string_equal(arguments[5], "--note");
	assert_string_equal(arguments[6], "a b");
	assert_string_equal(arguments[7], "c d");
	assert_null(arguments[8]);
	trainer_arguments_free(arguments);
}

static void
a_first_start_adds_nothing(void **state)
{
	struct error error = ERROR_INIT;
	char **arguments = trainer_arguments(command, "", "--resume {}",
	    &error);

	(void)state;
	assert_non_null(arguments);
	assert_string_equal(arguments[2], "--from=");
	assert_null(arguments[3]);
	trainer_arguments_free(arguments);
}

static void
a_path_with_blanks_stays_one_word(void **state)
{
	struct error error = ERROR_INIT;
	char **arguments = trainer_arguments(command, "/my dir/{}.pt",
	    "--resume={}", &error);

	(void)state;
	assert_string_equal(arguments[3], "--resume=/my dir/{}.pt");
	assert_null(arguments[4]);
	trainer_arguments_free(arguments);
}

static void
an_open_quote_is_refused_at_the_first_start_too(void **state)
{
	struct error error = ERROR_INIT;

	(void)state;
	assert_null(trainer_arguments(command, "", "--resume '{}", &error));
	assert_int_equal(error.class, ERROR_USAGE);
	assert_string_equal(error.message, "a quote is not closed");
}

static int
run(char *const *arguments, struct error *error)
{
	struct trainer trainer;
	sigset_t mask;
	int status;

	sigemptyset(&mask);
	if (trainer_start(&trainer, arguments, "/x", &mask, error) == 0) {
		assert_int_equal(waitpid(trainer.pid, &status, 0),
		    trainer.pid);
		trainer_changed(&trainer, status);
		assert_true(trainer.ended);
	}
	trainer_free(&trainer);
	return trainer.status;
}

static void
its_status_is_that_of_a_shell(void **state)
{
	struct error error = ERROR_INIT;
	char *exits[] = { "sh", "-c", "test \"$CKPTSYNC_RESTORED\" = /x && "
	    "exit 7", NULL };
	char *dies[] = { "sh", "-c", "kill -9 $$", NULL };
	char *missing[] = { "/no/such/program", NULL };
	char *data[] = { "/etc/passwd", NULL };

	(void)state;
	assert_int_equal(run(exits, &error), 7);
	assert_int_equal(run(dies, &error), 128 + 9);
	assert_int_equal(error.class, ERROR_NONE);
	assert_int_equal(run(missing, &error), 127);
	assert_int_equal(error.cause, CAUSE_NOT_FOUND);
	assert_int_equal(run(data, &error), 126);
	assert_int_equal(error.cause, CAUSE_DENIED);
}

static void
the_exit_code_says_how_the_run_ended(void **state)
{
	static const struct {
		struct supervisor_end end;
		int status;
	} cases[] = {
		{ { .trainer = 0, .class = 0 }, 0 },
		{ { .trainer = 0, .class = ERROR_NOT_DURABLE }, 6 },
		{ { .trainer = 0, .class = ERROR_SUPERSEDED }, 5 },
		{ { .trainer = 3, .class = ERROR_NOT_DURABLE }, 3 },
		{ { .trainer = 137, .class = 0 }, 137 },
		/* Never started. */
		{ { .class = ERROR_FAILED }, 1 },
		{ { .class = ERROR_DAMAGED }, 4 },
		/* Whatever became of the agent beside a trainer. */
		{ { .began = true, .class = ERROR_FAILED }, 6 },
		{ { .began = true, .class = ERROR_SUPERSEDED }, 5 },
		{ { .noticed = true, .trainer = 143, .class = 0 }, 75 },
		{ { .noticed = true, .trainer = 0, .class = 6 }, 6 },
		{ { .noticed = true, .trainer = 0, .class = 5 }, 6 },
		{ { .interrupted = true, .class = 6 }, 130 },
		{ { .stopped = true, .trainer = 143, .class = 5 }, 5 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(supervisor_status(&cases[i].end),
		    cases[i].status);
}

static void
more_than_one_node_is_refused(void **state)
{
	static const struct {
		const char *name, *value, *beside, *number;
		int result;
	} cases[] = {
		{ "NNODES", "1", NULL, NULL, 0 },
		{ "NNODES", "2", NULL, NULL, -1 },
		{ "WORLD_SIZE", "8", "LOCAL_WORLD_SIZE", "8", 0 },
		{ "WORLD_SIZE", "16", "LOCAL_WORLD_SIZE", "8", -1 },
		{ "WORLD_SIZE", "1", NULL, NULL, 0 },
		{ "WORLD_SIZE", "2", NULL, NULL, -1 },
		{ "SLURM_NNODES", "4", NULL, NULL, -1 },
		{ "SLURM_NNODES", "4", "SLURM_STEP_NUM_NODES", "1", 0 },
		{ "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_SIZE",
		    "4", 0 },
		{ "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_SIZE",
		    "2", -1 },
		{ "WORLD_SIZE", "many", NULL, NULL, 0 },
	};
	struct error error = ERROR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setenv(cases[i].name, cases[i].value, 1);
		if (cases[i].beside != NULL)
			setenv(cases[i].beside, cases[i].number, 1);
		error_clear(&error);
		assert_int_equal(launcher_check(&error), cases[i].result);
		if (cases[i].result != 0) {
			assert_int_equal(error.class, ERROR_USAGE);
			assert_non_null(strstr(error.message, cases[i].name));
		}
		unsetenv(cases[i].name);
		if (cases[i].beside != NULL)
			unsetenv(cases[i].beside);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_path_replaces_its_marks),
		cmocka_unit_test(a_first_start_adds_nothing),
		cmocka_unit_test(a_path_with_blanks_stays_one_word),
		cmocka_unit_test(
		    an_open_quote_is_refused_at_the_first_start_too),
		cmocka_unit_test(its_status_is_that_of_a_shell),
		cmocka_unit_test(the_exit_code_says_how_the_run_ended),
		cmocka_unit_test(more_than_one_node_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
