#ifndef STORE_ENVIRONMENT_H
#define STORE_ENVIRONMENT_H

#include <jansson.h>

struct error;

/*
 * The environment record (DESIGN 4): on what a checkpoint was made.
 */

struct environment_options {
	const char *folder;		/* where the git commit is looked up;
					 * NULL: the working directory */
	char *const *command;		/* the trainer's command line; NULL: none */
	const char *shell_command;	/* --env-command, run by sh -c; NULL: none */
};

/**
 * environment_gather(options):
 * A JSON object: host, kernel, cloud and machine type (from DMI), GPU model
 * and driver (nvidia-smi, /proc/driver/nvidia), git commit and whether the
 * tree is dirty, command line with secrets masked, the output of the user's
 * command (at most 256 KiB, 30 s), and a short allow-list of variables
 * (environment.c).  What cannot be learnt is left out.  Waits for the
 * commands.  NULL only when out of memory.
 */
json_t *environment_gather(const struct environment_options *options);

/**
 * environment_identity():
 * The short form for open.json and `list`: host, cloud, machine_type, pid,
 * version, time.  Starts no command.  NULL when out of memory.
 */
json_t *environment_identity(void);

/**
 * environment_mask(text):
 * A copy of one argument with what looks like a secret replaced by "***":
 * --api-key=..., token=..., password, secret, URL credentials, AWS keys, hf_
 * and similar tokens.  ${previous} is the argument before it (may be NULL):
 * "--token" masks the next one.  NULL when out of memory.
 */
char *environment_mask(const char *text, const char *previous);

#endif
