#ifndef LIFE_STATE_H
#define LIFE_STATE_H

#include <stdbool.h>
#include <time.h>

#include "store/key.h"

/*
 * What this directory's agent remembers from one life to the next: the last
 * term that it opened.  It is a cache: when it is lost, the order of unknown
 * local content is told by steps and times alone (precedence.h).
 */
struct state {
	struct term term;
	struct timespec opened;		/* this machine's clock, when that term began */
};

/**
 * state_load(path, folder, remote, state):
 * Read what was remembered for ${folder} and ${remote}.  Return whether there
 * is any; whatever else lies in ${path} (NULL: nothing) counts as lost.
 */
bool state_load(const char *path, const char *folder, const char *remote,
    struct state *state);

/**
 * state_save(path, folder, remote, state):
 * Remember.  A failure is logged, once a process, and does no harm.
 */
void state_save(const char *path, const char *folder, const char *remote,
    const struct state *state);

#endif
