#include "cmd/options_private.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/unit.h"

#define AGENTS (COMMAND_RUN | COMMAND_AGENT | COMMAND_PUSH)
#define ASK (COMMAND_NOTICE | COMMAND_FLUSH | COMMAND_STATUS)
#define REMOTE (AGENTS | COMMAND_RESTORE | COMMAND_LIST | COMMAND_SHOW | \
    COMMAND_DOCTOR | COMMAND_WEIGHTS)
#define ALL (REMOTE | ASK)

/* An option that only sets a text or a switch. */
#define TAKE_TEXT(name, field) \
	static int \
	name(struct options *options, const char *value, struct error *error) \
	{ \
		(void)error; \
		options->field = value; \
		return 0; \
	}
#define TAKE_SWITCH(name, field) \
	static int \
	name(struct options *options, const char *value, struct error *error) \
	{ \
		(void)value; \
		(void)error; \
		options->field = true; \
		return 0; \
	}

TAKE_TEXT(take_endpoint, settings.remote.endpoint_url)
TAKE_TEXT(take_region, settings.remote.region)
TAKE_TEXT(take_profile, settings.remote.profile)
TAKE_TEXT(take_ca_bundle, settings.remote.ca_bundle)
TAKE_TEXT(take_socket, settings.socket)
TAKE_TEXT(take_spool, settings.spool)
TAKE_TEXT(take_env_command, settings.shell_command)
TAKE_TEXT(take_checkpoint, settings.checkpoint)
TAKE_TEXT(take_resume_args, settings.resume_arguments)
TAKE_TEXT(take_notice_file, settings.notice_file)
TAKE_TEXT(take_on_commit, settings.on_commit)
TAKE_TEXT(take_on_notice, settings.on_notice)
TAKE_TEXT(take_on_error, settings.on_error)
TAKE_TEXT(take_reason, reason)
TAKE_SWITCH(take_wait, wait)
TAKE_SWITCH(take_azure_ack, settings.notice.azure_acknowledge)
TAKE_SWITCH(take_no_environment, settings.no_environment)
TAKE_SWITCH(take_no_restore, settings.no_restore)
TAKE_SWITCH(take_json, json)
TAKE_SWITCH(take_quiet, quiet)
TAKE_SWITCH(take_verbose, verbose)
TAKE_SWITCH(take_help, help)
TAKE_SWITCH(take_version, version)
TAKE_SWITCH(take_all, all)
TAKE_SWITCH(take_best, best)
TAKE_SWITCH(take_dry_run, dry_run)
TAKE_SWITCH(take_if_exists, if_exists)
TAKE_SWITCH(take_if_empty, if_empty)
TAKE_SWITCH(take_fallback, fallback)
TAKE_SWITCH(take_force, force)
TAKE_SWITCH(take_latest, latest)
TAKE_SWITCH(take_list_keys, list_keys)
TAKE_SWITCH(take_tensors, tensors)
TAKE_SWITCH(take_ema, ema)
TAKE_SWITCH(take_strip_prefix, strip_prefix)
TAKE_TEXT(take_key, key)

/* The index of ${value} among ${words}, or -1 with the choice in the error. */
static int
choose(const char *value, const char *const *words, struct error *error)
{
	char text[128] = "";
	int i;

	for (i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], value) == 0)
			return i;
		strncat(text, i == 0 ? "" : ", ",
		    sizeof(text) - strlen(text) - 1);
		strncat(text, words[i], sizeof(text) - strlen(text) - 1);
	}
	return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
	    "'%s' is not one of: %s", value, text);
}

static int
take_format(struct options *options, const char *value, struct error *error)
{
	static const char *const words[] = { "safetensors", "pt", NULL };
	int index = choose(value, words, error);

	if (index < 0)
		return -1;
	options->has_format = true;
	options->format = index == 0 ? MODEL_OUTPUT_SAFETENSORS :
	    MODEL_OUTPUT_TORCH;
	return 0;
}

static int
take_dtype(struct options *options, const char *value, struct error *error)
{
	static const char *const words[] = { "bf16", "f16", "f32", NULL };
	static const enum tensor_type types[] = { TENSOR_BF16, TENSOR_F16,
	    TENSOR_F32 };
	int index = choose(value, words, error);

	if (index < 0)
		return -1;
	options->has_dtype = true;
	options->dtype = types[index];
	return 0;
}

static int
take_addressing(struct options *options, const char *value,
    struct error *error)
{
	static const char *const words[] = { "auto", "path", "virtual", NULL };
	static const enum s3_addressing kinds[] = { S3_ADDRESSING_AUTO,
	    S3_ADDRESSING_PATH, S3_ADDRESSING_VIRTUAL };
	int index = choose(value, words, error);

	if (index < 0)
		return -1;
	options->settings.remote.addressing = kinds[index];
	return 0;
}

static int
take_store(struct options *options, const char *value, struct error *error)
{
	static const char *const words[] = { "weak", "strong", NULL };
	int index = choose(value, words, error);

	if (index < 0)
		return -1;
	options->settings.remote.strength = index == 0 ? REMOTE_WEAK :
	    REMOTE_STRONG;
	return 0;
}

static int
take_log_format(struct options *options, const char *value,
    struct error *error)
{
	static const char *const words[] = { "text", "json", NULL };
	int index = choose(value, words, error);

	if (index < 0)
		return -1;
	options->log_format = index == 0 ? LOG_TEXT : LOG_JSON;
	return 0;
}

static int
take_keep(struct options *options, const char *value, struct error *error)
{
	return unit_parse_number(value, 1, 1000000,
	    &options->settings.rules.keep, error);
}

static int
take_keep_all(struct options *options, const char *value, struct error *error)
{
	(void)value;
	(void)error;
	options->settings.rules.keep = 0;
	return 0;
}

static int
add_glob(const char **globs, size_t *count, const char *value,
    struct error *error)
{
	if (*value == '\0' || *value == '/')
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "'%s' can match nothing: globs are relative to DIR",
		    value);
	if (!glob_is_sound(value)) {
		error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "not a glob: a [ is not closed, or it is too long: "
		    "'%s'", value);
		return error_cure(error, "write \\[ for a [ in a name");
	}
	if (*count == OPTIONS_GLOBS_MAXIMUM)
		return error_set(error, ERROR_USAGE, CAUSE_LIMIT, NULL,
		    "more than %d globs", OPTIONS_GLOBS_MAXIMUM);
	globs[(*count)++] = value;
	return 0;
}

static int
take_include(struct options *options, const char *value, struct error *error)
{
	return add_glob(options->include,
	    &options->settings.view.include_count, value, error);
}

static int
take_exclude(struct options *options, const char *value, struct error *error)
{
	return add_glob(options->exclude,
	    &options->settings.view.exclude_count, value, error);
}

static int
take_companions(struct options *options, const char *value,
    struct error *error)
{
	if (strcmp(value, "none") == 0) {
		options->settings.companion_limit = 0;
		return 0;
	}
	return unit_parse_size(value, &options->settings.companion_limit,
	    error);
}

static int
take_limit_rate(struct options *options, const char *value,
    struct error *error)
{
	char size[64];
	size_t length = strlen(value);

	/* "10MB/s" says the same as "10MB". */
	if (length > 2 && strcmp(value + length - 2, "/s") == 0)
		length -= 2;
	if (length >= sizeof(size))
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "'%s' is not a size", value);
	memcpy(size, value, length);
	size[length] = '\0';
	if (unit_parse_size(size, &options->settings.limit_rate, error) != 0)
		return -1;
	if (options->settings.limit_rate == 0)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "nothing could ever be sent; leave it out for no limit");
	return 0;
}

static int
take_delete_delay(struct options *options, const char *value,
    struct error *error)
{
	return unit_parse_duration(value, &options->settings.delete_delay,
	    error);
}

static int
take_grace(struct options *options, const char *value, struct error *error)
{
	return unit_parse_duration(value, &options->settings.grace, error);
}

static int
take_cloud(struct options *options, const char *value, struct error *error)
{
	if (notice_cloud_parse(value, &options->settings.notice.cloud) == 0)
		return 0;
	return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
	    "'%s' is not one of: auto, none, aws, google, azure, alibaba, "
	    "tencent", value);
}

static int
take_gcp_notice(struct options *options, const char *value,
    struct error *error)
{
	return unit_parse_duration(value,
	    &options->settings.notice.google_notice, error);
}

/* Farther away than this it is a slip of the pen. */
#define DEADLINE_MAXIMUM (366 * 24 * 3600)

static int
take_deadline(struct options *options, const char *value,
    struct error *error)
{
	struct timespec when, now = clock_wall();
	double left;

	if (clock_parse(value, &when) != 0)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    "'%s' is not a time (2026-11-30T18:00:00Z, "
		    "2026-11-30T19:00:00+01:00)", value);
	left = (double)(when.tv_sec - now.tv_sec) +
	    (double)(when.tv_nsec - now.tv_nsec) / 1e9;
	if (left <= 0 || left > DEADLINE_MAXIMUM)
		return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
		    left <= 0 ? "%s is over already by this machine's clock" :
		    "%s is more than a year away", value);
	options->settings.deadline = clock_monotonic() +
	    (uint64_t)(left * (double)CLOCK_SECOND);
	return 0;
}

static int
take_time(struct options *options, const char *value, struct error *error)
{
	options->has_time = true;
	return unit_parse_duration(value, &options->time, error);
}

static int
take_start_timeout(struct options *options, const char *value,
    struct error *error)
{
	return unit_parse_duration(value, &options->settings.start_timeout,
	    error);
}

static int
parse_signal(const char *value, int *number, struct error *error)
{
	const char *name = strncasecmp(value, "SIG", 3) == 0 ? value + 3 :
	    value;
	const char *known;
	uint64_t parsed;
	int i;

	for (i = 1; i < NSIG; i++) {
		known = sigabbrev_np(i);
		if (known != NULL && strcasecmp(known, name) == 0) {
			*number = i;
			return 0;
		}
	}
	if (isdigit((unsigned char)*value) && unit_parse_number(value, 1,
	    NSIG - 1, &parsed, error) == 0) {
		*number = (int)parsed;
		return 0;
	}
	return error_set(error, ERROR_USAGE, CAUSE_OTHER, NULL,
	    "'%s' is not a signal (TERM, USR1, 15)", value);
}

static int
take_save_signal(struct options *options, const char *value,
    struct error *error)
{
	return parse_signal(value, &options->settings.save_signal, error);
}

static int
take_stop_signal(struct options *options, const char *value,
    struct error *error)
{
	return parse_signal(value, &options->settings.stop_signal, error);
}

static int
take_on_superseded(struct options *options, const char *value,
    struct error *error)
{
	static const char *const words[] = { "continue", "stop", NULL };
	int index = choose(value, words, error);

	if (index < 0)
		return -1;
	options->settings.stop_on_superseded = index == 1;
	return 0;
}

const struct option_row option_rows[] = {
	{ "start-timeout", 0, "TIME", COMMAND_RUN, false,
	    "how long to wait for a remote that cannot be read before giving "
	    "up without starting COMMAND (10m)", take_start_timeout },
	{ "no-restore", 0, NULL, COMMAND_RUN, false,
	    "bring nothing from the remote", take_no_restore },
	{ "checkpoint", 0, "C",
	    COMMAND_RUN | COMMAND_RESTORE | COMMAND_WEIGHTS, false,
	    "take this one, a name or an id of `list`, not the resume point",
	    take_checkpoint },
	{ "resume-args", 0, "ARGS", COMMAND_RUN, false,
	    "add ARGS to COMMAND when something was restored, {} replaced by "
	    "its path", take_resume_args },
	{ "grace", 0, "TIME", COMMAND_RUN | COMMAND_AGENT | COMMAND_DOCTOR,
	    false, "time from SIGTERM to the end (25s)", take_grace },
	{ "cloud", 0, "NAME", COMMAND_RUN | COMMAND_AGENT | COMMAND_DOCTOR,
	    false,
	    "whose notices to look for: auto, none, aws, google, azure, "
	    "alibaba, tencent (auto)", take_cloud },
	{ "gcp-notice", 0, "TIME",
	    COMMAND_RUN | COMMAND_AGENT | COMMAND_DOCTOR, false,
	    "how long before the end Google Cloud was asked to say so (25s)",
	    take_gcp_notice },
	{ "azure-ack", 0, NULL, COMMAND_RUN | COMMAND_AGENT, false,
	    "tell Azure to go on once all is durable", take_azure_ack },
	{ "deadline", 0, "TIME", COMMAND_RUN | COMMAND_AGENT, false,
	    "when this machine or job ends, as in 2026-11-30T18:00:00Z (under "
	    "Slurm the end of the job)", take_deadline },
	{ "notice-file", 0, "PATH", COMMAND_RUN | COMMAND_AGENT, false,
	    "a file outside DIR that is there, with the deadline in it, while "
	    "a notice holds", take_notice_file },
	{ "on-commit", 0, "COMMAND", AGENTS, false,
	    "a shell command, run whenever a checkpoint is durable",
	    take_on_commit },
	{ "on-notice", 0, "COMMAND", COMMAND_RUN | COMMAND_AGENT, false,
	    "a shell command, run at a notice", take_on_notice },
	{ "on-error", 0, "COMMAND", AGENTS, false,
	    "a shell command, run when an upload fails or something is lost",
	    take_on_error },
	{ "in", 0, "TIME", COMMAND_NOTICE, false,
	    "how long this machine still has (the agent's grace time)",
	    take_time },
	{ "reason", 0, "TEXT", COMMAND_NOTICE, false,
	    "why, for the log and the trainer", take_reason },
	{ "wait", 0, NULL, COMMAND_NOTICE, false,
	    "return when what is complete is durable, or cannot be",
	    take_wait },
	{ "timeout", 0, "TIME", COMMAND_FLUSH, false,
	    "end with 6 when it takes longer (no limit)", take_time },
	{ "save-signal", 0, "SIG", COMMAND_RUN, false,
	    "sent to the trainer at once on a notice (none)",
	    take_save_signal },
	{ "stop-signal", 0, "SIG", COMMAND_RUN, false,
	    "sent to the trainer when its time is up (TERM)",
	    take_stop_signal },
	{ "on-superseded", 0, "stop|continue", COMMAND_RUN, false,
	    "what becomes of the trainer when a newer agent takes over "
	    "(continue)", take_on_superseded },

	{ "all", 0, NULL, COMMAND_RESTORE, false,
	    "every valid checkpoint and companion", take_all },
	{ "best", 0, NULL, COMMAND_RESTORE | COMMAND_WEIGHTS, false,
	    "the newest best one, not the resume point", take_best },
	{ "latest", 0, NULL, COMMAND_WEIGHTS, false,
	    "the resume point, also when there is a final or best one",
	    take_latest },
	{ "format", 0, "safetensors|pt", COMMAND_WEIGHTS, false,
	    "what one file becomes (by the name of OUT, else safetensors)",
	    take_format },
	{ "key", 0, "PATH", COMMAND_WEIGHTS, false,
	    "which part of the file is the model: state_dict, ema.module; . "
	    "is all of it", take_key },
	{ "list-keys", 0, NULL, COMMAND_WEIGHTS, false,
	    "print what there is to choose from", take_list_keys },
	{ "ema", 0, NULL, COMMAND_WEIGHTS, false,
	    "the averaged weights", take_ema },
	{ "strip-prefix", 0, NULL, COMMAND_WEIGHTS, false,
	    "take module., _orig_mod. and model. from the names",
	    take_strip_prefix },
	{ "dtype", 0, "bf16|f16|f32", COMMAND_WEIGHTS, false,
	    "convert floating numbers, rounding to nearest, ties to even",
	    take_dtype },
	{ "tensors", 0, NULL, COMMAND_SHOW, false,
	    "print the tensors: name, type, shape, bytes", take_tensors },
	{ "dry-run", 0, NULL, COMMAND_RESTORE | COMMAND_WEIGHTS, false,
	    "say what would come down, and change nothing", take_dry_run },
	{ "if-exists", 0, NULL, COMMAND_RESTORE, false,
	    "when there is nothing yet, that is a success", take_if_exists },
	{ "if-empty", 0, NULL, COMMAND_RESTORE, false,
	    "do nothing when DIR holds a complete checkpoint",
	    take_if_empty },
	{ "fallback", 0, NULL, COMMAND_RESTORE, false,
	    "take the next older one when the newest is damaged",
	    take_fallback },
	{ "force", 0, NULL, COMMAND_RESTORE | COMMAND_WEIGHTS, false,
	    "replace files that are there: complete ones that the remote "
	    "does not know, an OUT",
	    take_force },

	{ "keep", 0, "N", AGENTS, false,
	    "keep the newest N resume points (3)", take_keep },
	{ "keep-all", 0, NULL, AGENTS, false, "keep all of everything",
	    take_keep_all },
	{ "include", 0, "GLOB", AGENTS | COMMAND_RESTORE | COMMAND_DOCTOR |
	    COMMAND_WEIGHTS, true,
	    "only paths (weights: names of tensors) that match; may be given "
	    "several times", take_include },
	{ "exclude", 0, "GLOB", AGENTS | COMMAND_RESTORE | COMMAND_DOCTOR |
	    COMMAND_WEIGHTS, true,
	    "no paths (weights: names of tensors) that match; may be given "
	    "several times", take_exclude },
	{ "companions", 0, "none|SIZE", AGENTS, false,
	    "take other files along up to this size each (64MiB)",
	    take_companions },
	{ "limit-rate", 0, "SIZE", AGENTS, false,
	    "send at most SIZE a second (no limit; lifted at a notice)",
	    take_limit_rate },
	{ "spool", 0, "FOLDER", AGENTS, false,
	    "where copies may be made of files that are overwritten during "
	    "their upload (the file system of DIR)", take_spool },
	{ "delete-delay", 0, "TIME", AGENTS, false,
	    "how long what was dropped stays for readers on their way (15m)",
	    take_delete_delay },
	{ "env-command", 0, "COMMAND", AGENTS, false,
	    "a shell command whose output goes into the environment record",
	    take_env_command },
	{ "no-environment", 0, NULL, AGENTS, false,
	    "write no environment record", take_no_environment },
	{ "socket", 0, "PATH", AGENTS | ASK, false,
	    "the control socket; its lock is beside it", take_socket },
	{ "store", 0, "weak|strong", AGENTS | COMMAND_DOCTOR, false,
	    "whether a listing shows every earlier write (found out by "
	    "itself)", take_store },

	{ "endpoint-url", 0, "URL", REMOTE, false,
	    "the S3 server (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the AWS "
	    "files, or AWS)", take_endpoint },
	{ "region", 0, "NAME", REMOTE, false,
	    "its region (AWS_REGION, the AWS files)", take_region },
	{ "profile", 0, "NAME", REMOTE, false,
	    "a profile of the AWS files (AWS_PROFILE)", take_profile },
	{ "addressing", 0, "path|virtual|auto", REMOTE, false,
	    "where the bucket's name goes (auto)", take_addressing },
	{ "ca-bundle", 0, "FILE", REMOTE, false,
	    "certificates to trust (AWS_CA_BUNDLE, the system's)",
	    take_ca_bundle },

	{ "json", 0, NULL, ALL, false,
	    "print the result as JSON", take_json },
	{ "log-format", 0, "text|json", ALL, false,
	    "how events are logged on standard error (text)",
	    take_log_format },
	{ "quiet", 'q', NULL, ALL, false, "log warnings and errors only",
	    take_quiet },
	{ "verbose", 'v', NULL, ALL, false, "log every request",
	    take_verbose },
	{ "help", 'h', NULL, ALL, true, "print this", take_help },
	{ "version", 0, NULL, ALL, true, "print the version", take_version },
};

const size_t option_row_count = sizeof(option_rows) / sizeof(option_rows[0]);
