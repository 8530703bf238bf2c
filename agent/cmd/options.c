#include "cmd/options_private.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/remote.h"

static const struct command_words {
	enum command command;
	const char *name;
	const char *operands;
	const char *what;
} commands[] = {
	{ COMMAND_RUN, "run", "[DIR] [REMOTE] -- COMMAND [ARG...]",
	    "Restore the resume point if needed, start COMMAND, upload every "
	    "complete\ncheckpoint that it saves in DIR, flush at the end." },
	{ COMMAND_AGENT, "agent", "[DIR] [REMOTE]",
	    "The same without a trainer: a daemon beside it.  SIGTERM or "
	    "SIGINT ends it\nwhen all is durable." },
	{ COMMAND_PUSH, "push", "[DIR] [REMOTE]",
	    "Make durable what is complete in DIR now, then exit.  Asks the "
	    "agent of DIR\nwhen one is running." },
	{ COMMAND_RESTORE, "restore", "[REMOTE] [DIR]",
	    "Bring back the resume point and its pointers." },
	{ COMMAND_LIST, "list", "[REMOTE]",
	    "Print the valid checkpoints, newest first." },
	{ COMMAND_SHOW, "show", "[REMOTE] [CHECKPOINT]",
	    "Print one checkpoint: the resume point, or a name or an id of "
	    "`list`.  With\n--tensors, what is inside; then a FILE or DIR "
	    "of this machine does as well." },
	{ COMMAND_NOTICE, "notice", "[DIR]",
	    "Tell the agent of DIR, or without DIR and --socket all agents of "
	    "this user, that\nthis machine is about to go: for preStop hooks "
	    "and scripts.  Returns at once, or\nwith --wait when what is "
	    "complete is durable (0) or cannot be (6).  7 when there\nis no "
	    "agent." },
	{ COMMAND_FLUSH, "flush", "[DIR]",
	    "Wait until what is complete now is durable.  Asks the agent of "
	    "DIR, or without\nDIR and --socket all agents of this user.  6 when "
	    "it is not, 7 when there is no\nagent." },
	{ COMMAND_STATUS, "status", "[DIR]",
	    "Say how far the agent of DIR is, or without DIR and --socket all "
	    "agents of this\nuser, and whether a flush would fit the notice "
	    "that is given here.  6 when the\nremote is behind, 7 when there "
	    "is no agent." },
	{ COMMAND_WEIGHTS, "weights", "[REMOTE|FILE|DIR] OUT",
	    "Bring the model of a checkpoint, without optimizer, schedulers "
	    "and random states,\nto OUT: a file (its name ends in "
	    ".safetensors, .pt and so on) or a directory.\nOf a REMOTE, or "
	    "of a DIR of checkpoints, the final one, else the best one, "
	    "else\nthe resume point.  Nothing that is in it is executed." },
	{ COMMAND_DOCTOR, "doctor", "[DIR] [REMOTE]",
	    "Check this machine before a long run: name what is wrong, why, "
	    "and what to do.\nWhat needs a DIR or REMOTE that is missing is "
	    "left out.  Takes at most 30 s and\nsends at most 33 MiB, which "
	    "it deletes again.  Ends with 1 when something is\nwrong; a hint "
	    "is not wrong." },
};

/* Commands that ask agents which run already. */
#define ASK (COMMAND_NOTICE | COMMAND_FLUSH | COMMAND_STATUS)

static const struct command_words *
words_of(enum command command)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].command == command)
			return &commands[i];
	assert(!"a command that is not in the table");
	return &commands[0];
}

const char *
options_name(enum command command)
{
	return words_of(command)->name;
}

/* Somebody sits before it and waits. */
#define ANSWER_WITHIN (30 * CLOCK_SECOND)

static void
set_defaults(struct options *options, enum command command)
{
	struct settings *settings = &options->settings;

	memset(options, 0, sizeof(*options));
	options->command = command;
	settings->view.include = options->include;
	settings->view.exclude = options->exclude;
	settings->rules.keep = 3;
	settings->delete_delay = 15 * 60 * CLOCK_SECOND;
	settings->companion_limit = UINT64_C(64) << 20;
	settings->grace = 25 * CLOCK_SECOND;
	settings->start_timeout = 10 * 60 * CLOCK_SECOND;
	settings->stop_signal = SIGTERM;
	if (command & (COMMAND_LIST | COMMAND_SHOW | COMMAND_RESTORE |
	    COMMAND_WEIGHTS))
		settings->remote.answer_within = ANSWER_WITHIN;
	/* For tests: another address of the clouds' metadata servers. */
	settings->notice.endpoint = getenv("CKPTSYNC_METADATA_ENDPOINT");
}

/* The row of "--name", "--name=value" or "-n"; NULL: none. */
static const struct option_row *
find_row(const char *argument)
{
	const struct option_row *row;
	size_t i, length;

	for (i = 0; i < option_row_count; i++) {
		row = &option_rows[i];
		if (argument[1] != '-') {
			if (row->letter != '\0' && argument[1] == row->letter &&
			    argument[2] == '\0')
				return row;
			continue;
		}
		length = strlen(row->name);
		if (strncmp(argument + 2, row->name, length) == 0 &&
		    (argument[2 + length] == '\0' ||
		    argument[2 + length] == '='))
			return row;
	}
	return NULL;
}

static int
refuse_unknown(enum command command, const char *argument,
    const struct option_row *row, struct error *error)
{
	char text[128] = "";
	size_t i;

	if (row == NULL) {
		error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "unknown option %s", argument);
	} else {
		for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
			if (!(row->commands & commands[i].command))
				continue;
			if (text[0] != '\0')
				strncat(text, ", ",
				    sizeof(text) - strlen(text) - 1);
			strncat(text, commands[i].name,
			    sizeof(text) - strlen(text) - 1);
		}
		error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "--%s is an option of %s, not of %s", row->name, text,
		    options_name(command));
	}
	return error_cure(error, "see ckptsync %s --help",
	    options_name(command));
}

/*
 * Take the option at ${arguments}[*${at}], and its value; *${at} moves on to
 * the last argument used.
 */
static int
take_option(struct options *options, int count, char *const *arguments,
    int *at, struct error *error)
{
	const char *argument = arguments[*at], *value = NULL, *equals;
	const struct option_row *row = find_row(argument);
	size_t index;

	if (row == NULL || !(row->commands & options->command))
		return refuse_unknown(options->command, argument, row, error);
	index = (size_t)(row - option_rows);
	assert(index < sizeof(options->given) / sizeof(options->given[0]));
	if (options->given[index] && !row->again)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "--%s is given twice", row->name);
	options->given[index] = true;
	equals = argument[1] == '-' ? strchr(argument, '=') : NULL;
	if (row->argument == NULL && equals != NULL)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "--%s takes no value", row->name);
	if (row->argument != NULL) {
		if (equals != NULL)
			value = equals + 1;
		else if (*at + 1 < count)
			value = arguments[++*at];
		else
			return error_set(error, ERROR_USAGE, CAUSE_OTHER,
			    NULL, "--%s needs a value: --%s %s", row->name,
			    row->name, row->argument);
	}
	if (row->take(options, value, error) == 0)
		return 0;
	return error_prefix(error, "--%s", row->name);
}

static int
take_operand(struct options *options, char *operand, struct error *error)
{
	struct settings *settings = &options->settings;
	const char **place, *what;

	if (remote_is_url(operand) && (options->command & ASK))
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "'%s' is a remote: agents are found by their DIR",
		    operand);
	if (remote_is_url(operand)) {
		place = &settings->url;
		what = "remotes";
	} else if (options->command == COMMAND_SHOW ||
	    options->command == COMMAND_WEIGHTS) {
		/* What they are depends on what else is there. */
		place = &options->paths[options->path_count != 0];
		what = options->command == COMMAND_SHOW ? "checkpoints" :
		    "outputs";
		options->path_count++;
	} else {
		place = &settings->folder;
		what = "directories";
	}
	if (operand[0] == '\0')
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "an argument is empty");
	if (options->command == COMMAND_LIST && !remote_is_url(operand))
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "'%s' is not a remote (s3://bucket/prefix or "
		    "file:///path)", operand);
	if (*place != NULL) {
		error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "two %s: %s and %s", what, *place, operand);
		if (options->command == COMMAND_RUN)
			return error_cure(error,
			    "put -- before the trainer's command");
		return -1;
	}
	*place = operand;
	return 0;
}

static bool
has_remote(const struct options *options)
{
	const char *url = getenv("CKPTSYNC_REMOTE");

	return options->settings.url != NULL || (url != NULL && *url != '\0');
}

/* Tell apart the operands of `weights`: [REMOTE|FILE|DIR] OUT. */
static int
settle_weights(struct options *options, struct error *error)
{
	bool aside = options->list_keys || options->dry_run;
	const char *const *paths = options->paths;

	options->checkpoint = options->settings.checkpoint;
	if (options->settings.url != NULL && options->path_count == 2)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "two outputs: %s and %s", paths[0], paths[1]);
	if (options->path_count == 2) {
		options->input = paths[0];
		options->out = paths[1];
	} else if (options->path_count == 1) {
		if (options->settings.url == NULL && (options->list_keys ||
		    (aside && !has_remote(options))))
			options->input = paths[0];
		else
			options->out = paths[0];
	}
	if (options->out == NULL && !aside)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "no output: ckptsync weights REMOTE OUT");
	if (options->input == NULL && !has_remote(options))
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "nothing to take the weights from: give a remote, a file "
		    "or a directory, and then the output");
	return 0;
}

/* The same for `show`: [REMOTE|FILE|DIR] [CHECKPOINT]. */
static int
settle_show(struct options *options, struct error *error)
{
	const char *const *paths = options->paths;

	if (options->tensors && options->settings.url == NULL &&
	    options->path_count > 0 && (options->path_count == 2 ||
	    !has_remote(options) || access(paths[0], F_OK) == 0)) {
		options->input = paths[0];
		options->checkpoint = paths[1];
		return 0;
	}
	if (options->path_count == 2)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "two checkpoints: %s and %s", paths[0], paths[1]);
	options->checkpoint = paths[0];
	return 0;
}

static int
settle_paths(struct options *options, struct error *error)
{
	if (options->command == COMMAND_WEIGHTS)
		return settle_weights(options, error);
	if (options->command == COMMAND_SHOW)
		return settle_show(options, error);
	return 0;
}

/* What was not said comes from the environment. */
static int
fill_places(struct options *options, struct error *error)
{
	struct settings *settings = &options->settings;
	bool needs_folder = options->command != COMMAND_LIST &&
	    options->command != COMMAND_SHOW &&
	    options->command != COMMAND_WEIGHTS;
	bool may_lack = options->command == COMMAND_DOCTOR ||
	    (options->command & ASK);
	size_t length, shortest;

	if (settings->folder == NULL && needs_folder)
		settings->folder = getenv("CKPTSYNC_DIR");
	if (settings->folder != NULL && settings->folder[0] == '\0')
		settings->folder = NULL;
	if (settings->url == NULL && !(options->command & ASK))
		settings->url = getenv("CKPTSYNC_REMOTE");
	if (settings->url != NULL && settings->url[0] == '\0')
		settings->url = NULL;
	if (settings->url == NULL && may_lack)
		return 0;
	if (settings->url == NULL)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "no remote: give one (s3://bucket/prefix or "
		    "file:///path) or set CKPTSYNC_REMOTE");
	if (!remote_is_url(settings->url))
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "CKPTSYNC_REMOTE='%s' is not a remote "
		    "(s3://bucket/prefix or file:///path)", settings->url);
	if ((options->url = strdup(settings->url)) == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the remote's name");
	/* One name for one place, whether a slash was typed or not. */
	/* Never more than "scheme://" and a character. */
	shortest = (size_t)(strstr(options->url, "://") - options->url) + 4;
	length = strlen(options->url);
	while (length > shortest && options->url[length - 1] == '/')
		options->url[--length] = '\0';
	settings->url = options->url;
	if (settings->folder == NULL && needs_folder && !may_lack)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "no directory: give one or set CKPTSYNC_DIR");
	return 0;
}

static int
check_together(const struct options *options, struct error *error)
{
	static const char *const exclusive[][2] = {
		{ "keep", "keep-all" }, { "quiet", "verbose" },
		{ "all", "best" }, { "all", "checkpoint" },
		{ "best", "checkpoint" }, { "no-restore", "checkpoint" },
		{ "env-command", "no-environment" }, { "all", "fallback" },
		{ "checkpoint", "fallback" }, { "latest", "best" },
		{ "latest", "checkpoint" },
	};
	bool given[2];
	size_t i, j, side;

	for (i = 0; i < sizeof(exclusive) / sizeof(exclusive[0]); i++) {
		given[0] = given[1] = false;
		for (side = 0; side < 2; side++)
			for (j = 0; j < option_row_count; j++)
				if (strcmp(option_rows[j].name,
				    exclusive[i][side]) == 0)
					given[side] = options->given[j];
		if (given[0] && given[1])
			return error_set(error, ERROR_USAGE, CAUSE_OTHER,
			    NULL, "--%s and --%s do not go together",
			    exclusive[i][0], exclusive[i][1]);
	}
	return 0;
}

int
options_parse(struct options *options, enum command command, int count,
    char *const *arguments, struct error *error)
{
	bool plain = false;
	int i;

	set_defaults(options, command);
	for (i = 0; i < count; i++) {
		if (!plain && strcmp(arguments[i], "--") == 0) {
			plain = true;
			if (command != COMMAND_RUN)
				continue;
			options->settings.command = arguments + i + 1;
			break;
		}
		if (!plain && arguments[i][0] == '-' &&
		    arguments[i][1] != '\0') {
			if (take_option(options, count, arguments, &i,
			    error) != 0)
				return -1;
		} else if (take_operand(options, arguments[i], error) != 0) {
			return -1;
		}
		if (options->help || options->version)
			return 0;
	}
	options->settings.remote.trace = options->verbose;
	if (command == COMMAND_RUN && (options->settings.command == NULL ||
	    options->settings.command[0] == NULL))
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "no command to run: put it behind --, as in "
		    "ckptsync run DIR REMOTE -- python train.py");
	if (check_together(options, error) != 0)
		return -1;
	if (settle_paths(options, error) != 0)
		return -1;
	return options->input != NULL ? 0 : fill_places(options, error);
}

/* Print ${text} from column ${column} on, broken at blanks. */
static void
print_wrapped(FILE *stream, const char *text, int column, int width)
{
	int at = column, length;
	const char *end;

	while (*text != '\0') {
		end = strchr(text, ' ');
		length = end == NULL ? (int)strlen(text) : (int)(end - text);
		if (at > column && at + 1 + length > width) {
			fprintf(stream, "\n%*s", column, "");
			at = column;
		} else if (at > column) {
			fputc(' ', stream);
			at++;
		}
		fprintf(stream, "%.*s", length, text);
		at += length;
		text += length + (end != NULL);
	}
	fputc('\n', stream);
}

void
options_usage(FILE *stream, enum command command)
{
	const struct command_words *words = words_of(command);
	const struct option_row *row;
	char left[64];
	size_t i;
	int length;

	fprintf(stream, "Usage: ckptsync %s [options] %s\n\n%s\n\nOptions:\n",
	    words->name, words->operands, words->what);
	for (i = 0; i < option_row_count; i++) {
		row = &option_rows[i];
		if (!(row->commands & command))
			continue;
		length = snprintf(left, sizeof(left), "  %c%c%s--%s%s%s",
		    row->letter != '\0' ? '-' : ' ',
		    row->letter != '\0' ? row->letter : ' ',
		    row->letter != '\0' ? ", " : "  ", row->name,
		    row->argument != NULL ? " " : "",
		    row->argument != NULL ? row->argument : "");
		if (length > 30)
			fprintf(stream, "%s\n%*s", left, 32, "");
		else
			fprintf(stream, "%-32s", left);
		print_wrapped(stream, row->help, 32, 79);
	}
	if (command & ASK)
		fputs("\nDIR may come from CKPTSYNC_DIR.\nDurations are 25s, "
		    "5m, 2h, 7d.\n", stream);
	else if (command & (COMMAND_LIST | COMMAND_SHOW | COMMAND_WEIGHTS))
		fputs("\nREMOTE may come from CKPTSYNC_REMOTE.\n", stream);
	else
		fputs("\nDIR and REMOTE, in either order, may come from "
		    "CKPTSYNC_DIR and CKPTSYNC_REMOTE.\nDurations are 25s, "
		    "5m, 2h, 7d; sizes are 64MiB, 10GB.\n", stream);
}

void
options_free(struct options *options)
{
	free(options->url);
	options->url = NULL;
}
