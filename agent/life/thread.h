#ifndef LIFE_THREAD_H
#define LIFE_THREAD_H

#include <pthread.h>
#include <stdint.h>

struct error;

/**
 * thread_start(thread, run, context, error):
 * pthread_create with every signal blocked in the new thread, so that signals
 * reach the event loop alone.  Return 0 or -1.
 */
int thread_start(pthread_t *thread, void *(*run)(void *context),
    void *context, struct error *error);

/**
 * thread_join_until(thread, until):
 * Join, waiting until ${until} (clock_monotonic).  Return 0, or -1 when it is
 * still running.
 */
int thread_join_until(pthread_t thread, uint64_t until);

#endif
