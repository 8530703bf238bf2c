#ifndef LIFE_LAUNCHER_H
#define LIFE_LAUNCHER_H

struct error;

/**
 * launcher_check(error):
 * Look at the variables of launchers (torchrun, Slurm, Open MPI).  Return 0
 * when they show one node or nothing, -1 with ERROR_USAGE, naming the
 * variable, when they show more: several nodes that write into one remote
 * would fence each other off.
 */
int launcher_check(struct error *error);

#endif
