#ifndef LIFE_LAUNCHER_H
#define LIFE_LAUNCHER_H

#include <stdint.h>

struct error;

/**
 * launcher_check(error):
 * Look at the variables of launchers (torchrun, Slurm, Open MPI).  Return 0
 * when they show one node or nothing, -1 with ERROR_USAGE, naming the
 * variable, when they show more: several nodes that write into one remote
 * would fence each other off.
 */
int launcher_check(struct error *error);

/**
 * launcher_job_end(now, error):
 * When the job ends, in seconds since 1970, by Slurm's SLURM_JOB_END_TIME; 0
 * when it does not say.  One that is before ${now} or more than a year after
 * it is not believed: 0, with ${error} filled.
 */
int64_t launcher_job_end(int64_t now, struct error *error);

#endif
