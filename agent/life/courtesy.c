#include "life/courtesy.h"

#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NICE 10

/* linux/ioprio.h: class best effort, its lowest and its middle level. */
#define IO_WHO_PROCESS 1
#define IO_BEST_EFFORT(level) ((2 << 13) | (level))
#define IO_LOWEST IO_BEST_EFFORT(7)
#define IO_MIDDLE IO_BEST_EFFORT(4)

static void
set_thread(pid_t thread, int policy, int nice_level, int io)
{
	struct sched_param parameter = { 0 };

	/* Each is a wish; a container may refuse any of them. */
	(void)sched_setscheduler(thread, policy, &parameter);
	(void)setpriority(PRIO_PROCESS, (id_t)thread, nice_level);
	(void)syscall(SYS_ioprio_set, IO_WHO_PROCESS, thread, io);
}

/* Whether niceness can be taken back: tried in a process of its own. */
static bool
can_lift(int before)
{
	pid_t child;
	int status;

	if ((child = fork()) < 0)
		return false;
	if (child == 0)
		_exit(setpriority(PRIO_PROCESS, 0, before + NICE) == 0 &&
		    setpriority(PRIO_PROCESS, 0, before) == 0 ? 0 : 1);
	return waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	    WEXITSTATUS(status) == 0;
}

int
courtesy_begin(void)
{
	int usual = getpriority(PRIO_PROCESS, 0);

	set_thread(0, SCHED_BATCH,
	    can_lift(usual) ? usual + NICE : usual, IO_LOWEST);
	return usual;
}

static void
set_all_threads(int policy, int nice_level, int io)
{
	DIR *threads;
	struct dirent *entry;
	pid_t thread;

	if ((threads = opendir("/proc/self/task")) == NULL) {
		set_thread(0, policy, nice_level, io);
		return;
	}
	while ((entry = readdir(threads)) != NULL)
		if ((thread = atoi(entry->d_name)) > 0)
			set_thread(thread, policy, nice_level, io);
	closedir(threads);
}

void
courtesy_end(int usual)
{
	set_all_threads(SCHED_OTHER, usual, IO_MIDDLE);
}

void
courtesy_again(int usual)
{
	set_all_threads(SCHED_BATCH,
	    can_lift(usual) ? usual + NICE : usual, IO_LOWEST);
}

void
courtesy_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}
