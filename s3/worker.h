#ifndef S3_WORKER_H
#define S3_WORKER_H

#include <pthread.h>

struct error;

/**
 * worker_start(thread, main, context, what, error):
 * Start a thread in which every signal is blocked: they are the program's,
 * and a closed connection raises SIGPIPE.  ${what} names it in the error.
 * Return 0 or -1.
 */
int worker_start(pthread_t *thread, void *(*main)(void *context),
    void *context, const char *what, struct error *error);

#endif
