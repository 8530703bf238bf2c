#include "life/thread.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"

int
thread_start(pthread_t *thread, void *(*run)(void *context), void *context,
    struct error *error)
{
	sigset_t all, before;
	int result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (result != 0)
		return error_set_errno(error, result, NULL,
		    "could not start a thread");
	return 0;
}

int
thread_join_until(pthread_t thread, uint64_t until)
{
	uint64_t now = clock_monotonic();
	struct timespec limit;

	/* pthread_timedjoin_np wants the wall clock. */
	clock_gettime(CLOCK_REALTIME, &limit);
	if (until > now) {
		limit.tv_sec += (time_t)((until - now) / CLOCK_SECOND);
		limit.tv_nsec += (long)((until - now) % CLOCK_SECOND);
		if (limit.tv_nsec >= (long)CLOCK_SECOND) {
			limit.tv_sec++;
			limit.tv_nsec -= (long)CLOCK_SECOND;
		}
	}
	return pthread_timedjoin_np(thread, NULL, &limit) == 0 ? 0 : -1;
}
