#ifndef LIFE_COURTESY_H
#define LIFE_COURTESY_H

/*
 * Standing back behind the trainer (DESIGN 10).
 */

/**
 * courtesy_begin():
 * Return the niceness that this process had, for courtesy_end.
 * Put this process into a low scheduling class: SCHED_BATCH and the lowest
 * priority of the disk, and nice 10 where that can be taken back (it needs
 * CAP_SYS_NICE or RLIMIT_NICE); not SCHED_IDLE, under which a machine whose
 * data loaders use every processor would upload nothing.  Before threads
 * start; they inherit it.
 */
int courtesy_begin(void);

/**
 * courtesy_end(usual):
 * Take all of that back for every thread of this process: a deadline runs.
 */
void courtesy_end(int usual);

/**
 * courtesy_again(usual): what courtesy_end lifted holds again.
 */
void courtesy_again(int usual);

/**
 * courtesy_descriptors():
 * Raise the soft limit of open descriptors to the hard one.
 */
void courtesy_descriptors(void);

#endif
