#include <signal.h>

#include "base/error.h"
#include "s3/worker.h"

int
worker_start(pthread_t *thread, void *(*main)(void *context), void *context,
    const char *what, struct error *error)
{
	sigset_t all;
	sigset_t before;
	int number;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	number = pthread_create(thread, NULL, main, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (number != 0)
		return error_set_errno(error, number, NULL, "starting %s",
		    what);
	return 0;
}
