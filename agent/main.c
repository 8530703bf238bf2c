#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "cmd/apart.h"
#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/output.h"

static const struct row {
	enum command command;
	int (*run)(const struct options *options);
	const char *what;
} table[] = {
	{ COMMAND_RUN, command_run,
	    "restore if needed, start a trainer, sync, flush at the end" },
	{ COMMAND_AGENT, command_agent,
	    "the same without a trainer: a daemon beside it" },
	{ COMMAND_PUSH, command_push,
	    "make durable what is complete now, then exit" },
	{ COMMAND_RESTORE, command_restore,
	    "bring back the resume point" },
	{ COMMAND_LIST, command_list,
	    "the valid checkpoints, newest first" },
	{ COMMAND_SHOW, command_show,
	    "one checkpoint: files, sizes, environment" },
	{ COMMAND_WEIGHTS, command_weights,
	    "bring down the model alone, or take it from a file" },
	{ COMMAND_STATUS, command_status,
	    "how far the agent is, and whether a flush would make it" },
	{ COMMAND_FLUSH, command_flush,
	    "wait until what is complete now is durable" },
	{ COMMAND_NOTICE, command_notice,
	    "tell the agent that this machine is about to go" },
	{ COMMAND_DOCTOR, command_doctor,
	    "check this machine before a long run" },
};

#define ROWS (sizeof(table) / sizeof(table[0]))

static void
usage(FILE *stream)
{
	size_t i;

	fputs("Usage: ckptsync COMMAND [options] [DIR] [REMOTE]\n\n"
	    "Keeps the checkpoints of a training run on a machine that may "
	    "vanish.\n\nCommands:\n", stream);
	for (i = 0; i < ROWS; i++)
		fprintf(stream, "  %-9s %s\n", options_name(table[i].command),
		    table[i].what);
	fputs("\nckptsync COMMAND --help says more.  REMOTE is "
	    "s3://bucket/prefix or file:///path.\n", stream);
}

static const struct row *
find(const char *name)
{
	size_t i;

	for (i = 0; i < ROWS; i++)
		if (strcmp(options_name(table[i].command), name) == 0)
			return &table[i];
	return NULL;
}

static int
run(const struct row *row, int count, char **arguments)
{
	struct options options;
	struct error error = ERROR_INIT;
	int status, i;

	if (options_parse(&options, row->command, count, arguments,
	    &error) != 0) {
		/* Where it stopped, --json may not have been read yet. */
		for (i = 0; i < count && strcmp(arguments[i], "--") != 0; i++)
			options.json |= strcmp(arguments[i], "--json") == 0;
		options.log_format = LOG_TEXT;
		status = output_failure(&options, &error);
		options_free(&options);
		return status;
	}
	if (options.help) {
		options_usage(stdout, row->command);
		status = ERROR_NONE;
	} else if (options.version) {
		puts("ckptsync " CKPTSYNC_VERSION);
		status = ERROR_NONE;
	} else if (apart_check(&options, &error) != 0) {
		status = output_failure(&options, &error);
	} else {
		log_setup(options.log_format, options.quiet ? LOG_WARNING :
		    options.verbose ? LOG_DEBUG : LOG_INFO);
		status = row->run(&options);
	}
	options_free(&options);
	return status;
}

int
main(int argc, char **argv)
{
	const struct row *row;
	const char *name = argc > 1 ? argv[1] : NULL;

	/* A parent that ignores it hands that on, and then no child of ours
	 * could be waited for.  What nohup ignores stays ignored. */
	signal(SIGCHLD, SIG_DFL);
	if (name == NULL) {
		usage(stderr);
		return ERROR_USAGE;
	}
	if (strcmp(name, "--version") == 0) {
		puts("ckptsync " CKPTSYNC_VERSION);
		return ERROR_NONE;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
	    strcmp(name, "help") == 0) {
		usage(stdout);
		return ERROR_NONE;
	}
	if ((row = find(name)) == NULL) {
		fprintf(stderr, "ckptsync: unknown command '%s'\n\n", name);
		usage(stderr);
		return ERROR_USAGE;
	}
	return run(row, argc - 2, argv + 2);
}
