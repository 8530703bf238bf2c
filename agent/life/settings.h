#ifndef LIFE_SETTINGS_H
#define LIFE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "notice/notice.h"
#include "store/remote.h"
#include "store/retention.h"
#include "watch/view.h"

/*
 * What the user asked for.  Filled in by the command, then only read; the
 * texts live as long as the process.
 */
struct settings {
	const char *folder;	/* the trainer's directory, DIR */
	const char *url;	/* REMOTE */
	const char *socket;	/* --socket; NULL: found by the rules of place.h */
	struct remote_options remote;
	struct notice_options notice;

	/* What goes up, and what stays. */
	struct view_options view;
	struct retention_rules rules;
	uint64_t delete_delay;		/* ns */
	uint64_t companion_limit;	/* bytes each; 0: none */
	uint64_t limit_rate;		/* bytes a second; 0: none */
	const char *spool;		/* NULL: the directory's file system */
	const char *shell_command;	/* --env-command; NULL: none */
	bool no_environment;
	uint64_t grace;			/* ns from SIGTERM to the end */
	uint64_t deadline;		/* of the machine, known beforehand:
					 * clock_monotonic(); 0: none */
	const char *notice_file;	/* for the trainer; NULL: none */
	const char *on_commit;		/* hooks: shell commands; NULL: none */
	const char *on_notice;
	const char *on_error;

	/* `run` alone. */
	uint64_t start_timeout;		/* ns */
	bool no_restore;
	const char *checkpoint;		/* what to restore; NULL: the resume point */
	int save_signal;		/* 0: none */
	int stop_signal;
	bool stop_on_superseded;
	const char *resume_arguments;	/* --resume-args; NULL: none */
	char *const *command;		/* the trainer, NULL at the end */
};

#endif
