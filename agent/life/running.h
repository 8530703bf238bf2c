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

#endif
