#ifndef LIFE_CHECKUP_TRIAL_H
#define LIFE_CHECKUP_TRIAL_H

#include <stdbool.h>

struct backend;
struct checkup_part;

/**
 * checkup_trial(part, backend):
 * Write, read, list and delete objects of our own; what listings are worth;
 * how fast bytes go up.  Deletes all that it wrote.  Return whether it could
 * read and list.
 */
bool checkup_trial(struct checkup_part *part, struct backend *backend);

#endif
