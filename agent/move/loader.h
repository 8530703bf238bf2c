#ifndef MOVE_LOADER_H
#define MOVE_LOADER_H

struct error;
struct filler;
struct jobs;
struct restore;
struct staging;

/**
 * loader_run(restore, jobs, filler, staging, error):
 * Fetch everything in ${jobs}, check it while it streams, and write it
 * straight to its places; what is right goes into the journal.  A chunk that
 * is wrong is fetched a second time before it is called damaged.  Return 0,
 * or -1: ERROR_DAMAGED names checkpoint and chunk, CAUSE_CANCELLED, ...
 */
int loader_run(struct restore *restore, const struct jobs *jobs,
    struct filler *filler, struct staging *staging, struct error *error);

#endif
