#ifndef LIFE_MANAGER_H
#define LIFE_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Who started us and will stop us: systemd.
 */
struct manager {
	char unit[256];		/* "train.service" */
	bool of_user;		/* of the user's own systemd */
	uint64_t stop;		/* ns from SIGTERM to SIGKILL, CLOCK_NEVER */
	char kill_mode[32];	/* "control-group", "mixed", ... */
};

/**
 * manager_unit(text, manager):
 * The service in which ${text}, as /proc/self/cgroup reads (cgroups(7)),
 * says that we are.  Return 0, or -1 when it is none (a login session).
 */
int manager_unit(const char *text, struct manager *manager);

/**
 * manager_properties(text, manager):
 * What `systemctl show` printed of it.  Return 0, or -1 when the stop timeout
 * is not among it.
 */
int manager_properties(const char *text, struct manager *manager);

/**
 * manager_find(manager):
 * Both, for this process.  At most 3 s.  Return 0, or -1 when it is no
 * service or systemd does not answer.
 */
int manager_find(struct manager *manager);

#endif
