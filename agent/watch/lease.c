#include "watch/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The default action of SIGIO ends the process (signal(7)). */
static void
ignore_signal(void)
{
	struct sigaction action;

	if (sigaction(SIGIO, NULL, &action) == 0 &&
	    !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL) {
		action.sa_handler = SIG_IGN;
		sigaction(SIGIO, &action, NULL);
	}
}

enum lease_answer
lease_look(int fd)
{
	pthread_once(&once, ignore_signal);
	if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
		return errno == EAGAIN ? LEASE_WRITTEN : LEASE_UNKNOWN;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return LEASE_FREE;
}
