#ifndef CMD_OPTIONS_H
#define CMD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "format/model.h"
#include "life/settings.h"

struct error;

/*
 * The command line.  One table (options.c) says of every option its name,
 * argument, commands and help; usage texts come from it.
 */

enum command {
	COMMAND_RUN = 1,
	COMMAND_AGENT = 2,
	COMMAND_PUSH = 4,
	COMMAND_RESTORE = 8,
	COMMAND_LIST = 16,
	COMMAND_SHOW = 32,
	COMMAND_NOTICE = 64,
	COMMAND_FLUSH = 128,
	COMMAND_STATUS = 256,
	COMMAND_DOCTOR = 512,
	COMMAND_WEIGHTS = 1024
};

#define OPTIONS_GLOBS_MAXIMUM 256

struct options {
	enum command command;
	struct settings settings;
	bool json;
	bool quiet;
	bool verbose;
	enum log_format log_format;
	bool help;
	bool version;

	/* restore (with settings.checkpoint), show */
	const char *checkpoint;		/* show's argument; NULL: the resume point */
	bool all;
	bool best;
	bool dry_run;
	bool if_exists;
	bool if_empty;
	bool fallback;
	bool force;

	/* weights (with checkpoint, best, dry_run, force, and include and
	 * exclude for names of tensors), show --tensors */
	const char *input;		/* FILE or DIR; NULL: the remote */
	const char *out;
	bool latest;
	bool list_keys;
	bool tensors;
	bool ema;
	bool strip_prefix;
	const char *key;
	bool has_format;
	enum model_output format;
	bool has_dtype;
	enum tensor_type dtype;

	/* notice, flush */
	bool has_time;
	uint64_t time;			/* ns: --in, --timeout */
	const char *reason;		/* NULL: none */
	bool wait;

	/* What the settings point to. */
	const char *paths[2];		/* operands that are no remote */
	unsigned path_count;
	const char *include[OPTIONS_GLOBS_MAXIMUM];
	const char *exclude[OPTIONS_GLOBS_MAXIMUM];
	char *url;
	bool given[96];			/* by row of the table */
};

/**
 * options_parse(options, command, count, arguments, error):
 * Read ${arguments} (without the program's and the command's name) for
 * ${command}.  The texts stay the caller's.  DIR and REMOTE, in either order,
 * come from CKPTSYNC_DIR and CKPTSYNC_REMOTE when they are missing; `doctor`
 * can do without.  Return 0, or -1 with ERROR_USAGE.  With help or version nothing else is checked.
 */
int options_parse(struct options *options, enum command command, int count,
    char *const *arguments, struct error *error);

/**
 * options_usage(stream, command):
 * Print the usage of ${command}.
 */
void options_usage(FILE *stream, enum command command);

/**
 * options_name(command): "run", ...
 */
const char *options_name(enum command command);

/**
 * options_free(options): give back what options_parse took.
 */
void options_free(struct options *options);

#endif
