#ifndef LIFE_RUNNING_H
#define LIFE_RUNNING_H

struct error;
struct place;
struct settings;

/**
 * running_lock(settings, error):
 * The place of the directory, locked for this process, which becomes its
 * agent.  A push that runs there is waited for.  NULL with CAUSE_EXISTS when
 * there is an agent already; the message says which.
 */
struct place *running_lock(const struct settings *settings,
    struct error *error);

/**
 * running_prepare(settings, place, error):
 * Fill in what depends on the machine and the place: the end of a Slurm job
 * when no deadline is given, and the path of the notice file (for a trainer of
 * our own always one; in its environment as CKPTSYNC_NOTICE_FILE).  Before
 * threads start; the paths live as long as ${place}.  Return 0 or -1.
 */
int running_prepare(struct settings *settings, struct place *place,
    struct error *error);

#endif
