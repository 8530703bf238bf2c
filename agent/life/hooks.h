#ifndef LIFE_HOOKS_H
#define LIFE_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct loop;

/*
 * The user's commands (--on-commit, --on-notice, --on-error): started and
 * forgotten; one that hangs is killed, with all that it started.
 */
struct hooks;

/* A fact in a command's environment: CKPTSYNC_ and its name. */
struct hook_fact {
	const char *name;	/* "CHECKPOINT" */
	const char *value;	/* NULL: the fact is left out */
};

#define HOOK_FACTS(...) \
	(const struct hook_fact[]){ __VA_ARGS__ }, \
	sizeof((const struct hook_fact[]){ __VA_ARGS__ }) / \
	sizeof(struct hook_fact)

/**
 * hooks_new(loop, error): none yet, run by ${loop}.  NULL on failure.
 */
struct hooks *hooks_new(struct loop *loop, struct error *error);

/**
 * hooks_run(hooks, event, command, facts, count):
 * Start ${command} (sh -c; NULL: nothing) with CKPTSYNC_EVENT=${event} and
 * the ${facts}, without input, its output on standard error.  At most 8 run at
 * a time; what is more is skipped, and said.
 */
void hooks_run(struct hooks *hooks, const char *event, const char *command,
    const struct hook_fact *facts, size_t count);

/**
 * hooks_deadline(hooks, when):
 * None may run longer than until ${when} (clock_monotonic; 0: no such end), or
 * than 30 s.
 */
void hooks_deadline(struct hooks *hooks, uint64_t when);

/**
 * hooks_busy(hooks): whether one runs.
 */
bool hooks_busy(const struct hooks *hooks);

/**
 * hooks_free(hooks): kill what runs, free all.  NULL is fine.
 */
void hooks_free(struct hooks *hooks);

#endif
