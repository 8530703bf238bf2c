#ifndef S3_TRANSFER_H
#define S3_TRANSFER_H

struct error;
struct pool;
struct service;

/*
 * One transfer thread: it runs the calls of its seat on a multi handle of its
 * own, and tries again what deserves it.
 */
struct transfer;

/**
 * transfer_new(service, pool, seat, error):
 * A transfer that takes its seat; its thread does not run yet.
 */
struct transfer *transfer_new(struct service *service, struct pool *pool,
    unsigned seat, struct error *error);

/**
 * transfer_start(transfer, error):
 * Start the thread.
 */
int transfer_start(struct transfer *transfer, struct error *error);

/**
 * transfer_free(transfer):
 * Wait for the end of the thread (the pool is closed) and free all.  Behave
 * consistently with free(NULL).
 */
void transfer_free(struct transfer *transfer);

#endif
