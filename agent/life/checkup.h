#ifndef LIFE_CHECKUP_H
#define LIFE_CHECKUP_H

#include <stdbool.h>

struct error;
struct finding;
struct settings;

/*
 * `doctor`: whether this machine, its directory and its remote are fit for a
 * long run.  The parts (directory, remote, notices) run side by side on
 * threads of their own, each within a time of its own; what needs several of
 * them comes last.
 */

/* Told of each finding, in a fixed order of the parts, as soon as known. */
typedef void (*checkup_tell)(void *context, const struct finding *finding);

/**
 * checkup_run(settings, tell, context, error):
 * Check what ${settings} name: folder, url (both may be NULL), remote, view,
 * notice and grace.  At most 30 s.  What was written into the remote is
 * deleted again, also when SIGINT, SIGTERM or SIGHUP came.  Return 0, the
 * number of that signal, or -1 when it could not even begin.
 *
 * When a system call hangs, *${hangs} is set: the process is left with a thread
 * that uses memory which is not freed.  End it with _exit.
 */
int checkup_run(const struct settings *settings, checkup_tell tell,
    void *context, bool *hangs, struct error *error);

#endif
