#include "life/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "life/loop.h"

#define RUNNING_MAXIMUM 8
#define TIME_MAXIMUM (30 * CLOCK_SECOND)

/* How often those that run are looked at; nothing is while none runs. */
#define LOOK_EVERY (CLOCK_SECOND / 10)

extern char **environ;

struct hook {
	pid_t pid;		/* 0: free; also its session and group */
	uint64_t until;
	char event[16];
};

struct hooks {
	struct loop *loop;
	struct loop_timer look_at;
	uint64_t deadline;	/* 0: none */
	struct hook running[RUNNING_MAXIMUM];
};

struct hooks *
hooks_new(struct loop *loop, struct error *error)
{
	struct hooks *hooks = calloc(1, sizeof(*hooks));

	if (hooks == NULL)
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the hooks");
	else
		hooks->loop = loop;
	return hooks;
}

static bool
is_fact(const char *variable, const struct hook_fact *facts, size_t count)
{
	size_t i, length;

	if (strncmp(variable, "CKPTSYNC_", 9) != 0)
		return false;
	for (i = 0; i < count; i++) {
		length = strlen(facts[i].name);
		if (strncmp(variable + 9, facts[i].name, length) == 0 &&
		    variable[9 + length] == '=')
			return true;
	}
	return strncmp(variable + 9, "EVENT=", 6) == 0;
}

/* The environment of a hook; what is in it from ${*own} on is to be freed. */
static char **
make_environment(const char *event, const struct hook_fact *facts,
    size_t count, size_t *own)
{
	size_t i, usual = 0, filled = 0;
	char **variables;

	while (environ[usual] != NULL)
		usual++;
	if ((variables = calloc(usual + count + 2, sizeof(*variables))) == NULL)
		return NULL;
	for (i = 0; i < usual; i++)
		if (!is_fact(environ[i], facts, count))
			variables[filled++] = environ[i];
	*own = filled;
	if (asprintf(&variables[filled], "CKPTSYNC_EVENT=%s", event) >= 0)
		filled++;
	for (i = 0; i < count; i++)
		if (facts[i].value != NULL && asprintf(&variables[filled],
		    "CKPTSYNC_%s=%s", facts[i].name, facts[i].value) >= 0)
			filled++;
	variables[filled] = NULL;
	return variables;
}

static int
spawn(pid_t *pid, const char *command, char **environment)
{
	char *arguments[] = { "sh", "-c", (char *)command, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	int number;

	sigfillset(&all);
	sigemptyset(&none);
	if ((number = posix_spawn_file_actions_init(&actions)) != 0)
		return number;
	if ((number = posix_spawnattr_init(&attributes)) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return number;
	}
	if ((number = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
	    "/dev/null", O_RDONLY, 0)) == 0 &&
	    (number = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO,
	    STDOUT_FILENO)) == 0 &&
	    (number = posix_spawn_file_actions_addclosefrom_np(&actions,
	    STDERR_FILENO + 1)) == 0 &&
	    (number = posix_spawnattr_setsigdefault(&attributes, &all)) == 0 &&
	    (number = posix_spawnattr_setsigmask(&attributes, &none)) == 0 &&
	    (number = posix_spawnattr_setflags(&attributes,
	    POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
	    POSIX_SPAWN_SETSIGMASK)) == 0)
		number = posix_spawn(pid, "/bin/sh", &actions, &attributes,
		    arguments, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return number;
}

static uint64_t
end_of(const struct hooks *hooks, const struct hook *hook)
{
	return hooks->deadline != 0 && hooks->deadline < hook->until ?
	    hooks->deadline : hook->until;
}

/* Whether it runs no more. */
static bool
look_at(const struct hooks *hooks, struct hook *hook)
{
	int status;
	pid_t got;

	if (clock_monotonic() >= end_of(hooks, hook)) {
		log_line(LOG_WARNING, "hook_killed", "the command of "
		    "--on-%s takes too long; killing it", hook->event);
		kill(-hook->pid, SIGKILL);
		kill(hook->pid, SIGKILL);
		(void)waitpid(hook->pid, NULL, 0);
		return true;
	}
	if ((got = waitpid(hook->pid, &status, WNOHANG)) == 0)
		return false;
	if (got == hook->pid && status != 0)
		log_line(LOG_WARNING, "hook_failed", "the command of --on-%s "
		    "ended with %s %d", hook->event,
		    WIFSIGNALED(status) ? "signal" : "status",
		    WIFSIGNALED(status) ? WTERMSIG(status) :
		    WEXITSTATUS(status));
	return true;
}

static void
look(void *context)
{
	struct hooks *hooks = context;
	size_t i;

	for (i = 0; i < RUNNING_MAXIMUM; i++)
		if (hooks->running[i].pid != 0 &&
		    look_at(hooks, &hooks->running[i]))
			hooks->running[i].pid = 0;
	if (hooks_busy(hooks))
		loop_timer_set(hooks->loop, &hooks->look_at,
		    clock_monotonic() + LOOK_EVERY, look, hooks);
}

void
hooks_run(struct hooks *hooks, const char *event, const char *command,
    const struct hook_fact *facts, size_t count)
{
	struct hook *hook = NULL;
	char **environment;
	size_t i, own = 0;
	int number = ENOMEM;

	if (command == NULL)
		return;
	for (i = 0; i < RUNNING_MAXIMUM && hook == NULL; i++)
		if (hooks->running[i].pid == 0)
			hook = &hooks->running[i];
	if (hook == NULL) {
		log_line(LOG_WARNING, "hook_skipped", "%d hooks run already; "
		    "--on-%s is not run this time", RUNNING_MAXIMUM, event);
		return;
	}
	environment = make_environment(event, facts, count, &own);
	if (environment != NULL)
		number = spawn(&hook->pid, command, environment);
	if (number != 0) {
		hook->pid = 0;
		log_line(LOG_WARNING, "hook_failed", "the command of --on-%s "
		    "could not be started: %s", event, strerror(number));
	}
	for (i = own; environment != NULL && environment[i] != NULL; i++)
		free(environment[i]);
	free(environment);
	if (number != 0)
		return;
	hook->until = clock_monotonic() + TIME_MAXIMUM;
	snprintf(hook->event, sizeof(hook->event), "%s", event);
	loop_timer_set(hooks->loop, &hooks->look_at,
	    clock_monotonic() + LOOK_EVERY, look, hooks);
}

void
hooks_deadline(struct hooks *hooks, uint64_t when)
{
	hooks->deadline = when;
}

bool
hooks_busy(const struct hooks *hooks)
{
	size_t i;

	for (i = 0; i < RUNNING_MAXIMUM; i++)
		if (hooks->running[i].pid != 0)
			return true;
	return false;
}

void
hooks_free(struct hooks *hooks)
{
	size_t i;

	if (hooks == NULL)
		return;
	loop_timer_stop(hooks->loop, &hooks->look_at);
	for (i = 0; i < RUNNING_MAXIMUM; i++) {
		if (hooks->running[i].pid == 0)
			continue;
		kill(-hooks->running[i].pid, SIGKILL);
		kill(hooks->running[i].pid, SIGKILL);
		(void)waitpid(hooks->running[i].pid, NULL, 0);
	}
	free(hooks);
}
