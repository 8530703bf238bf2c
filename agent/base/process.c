#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"

extern char **environ;

/*
 * The real clock, also where a test has replaced it: the program that we wait
 * for lives in real time.
 */
static uint64_t
real_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CLOCK_SECOND + (uint64_t)now.tv_nsec;
}

/*
 * posix_spawn rather than fork: it is safe in a process with threads, does not
 * copy page tables, and says when the program cannot be started.
 */
static int
start(char *const argv[], int output, pid_t *child, struct error *error)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	int number;

	sigfillset(&all);
	sigemptyset(&none);
	if ((number = posix_spawn_file_actions_init(&actions)) != 0)
		return error_set_errno(error, number, argv[0],
		    "could not be started");
	if ((number = posix_spawnattr_init(&attributes)) != 0)
		goto free_actions;

	/* The output first: its descriptor may be one of the other two. */
	if ((number = posix_spawn_file_actions_adddup2(&actions, output,
	    STDOUT_FILENO)) != 0 ||
	    (number = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
	    "/dev/null", O_RDONLY, 0)) != 0 ||
	    (number = posix_spawn_file_actions_addopen(&actions,
	    STDERR_FILENO, "/dev/null", O_WRONLY, 0)) != 0 ||
	    (number = posix_spawn_file_actions_addclosefrom_np(&actions,
	    STDERR_FILENO + 1)) != 0 ||
	    (number = posix_spawnattr_setsigdefault(&attributes, &all)) != 0 ||
	    (number = posix_spawnattr_setsigmask(&attributes, &none)) != 0 ||
	    (number = posix_spawnattr_setflags(&attributes,
	    POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
	    POSIX_SPAWN_SETSIGMASK)) != 0)
		goto free_both;
	number = posix_spawnp(child, argv[0], &actions, &attributes, argv,
	    environ);

free_both:
	posix_spawnattr_destroy(&attributes);
free_actions:
	posix_spawn_file_actions_destroy(&actions);
	return number == 0 ? 0 :
	    error_set_errno(error, number, argv[0], "could not be started");
}

/* Whether the child has ended; it stays a zombie, so its number stays ours. */
static bool
has_ended(pid_t child)
{
	siginfo_t info = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
		return errno != EINTR;
	return info.si_pid == child;
}

enum progress { BROKEN = -1, ENDED, SOME, NONE_NOW };

/* Take at most one run of bytes from the pipe, without waiting. */
static enum progress
read_some(const char *name, int input, struct buffer *buffer,
    struct error *error)
{
	char chunk[16384];
	size_t room = buffer->limit - buffer->length;
	ssize_t got;

	do {
		got = read(input, chunk, sizeof(chunk));
	} while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return NONE_NOW;
	if (got < 0) {
		error_set_errno(error, errno, name,
		    "could not read its output");
		return BROKEN;
	}
	if (got == 0)
		return ENDED;
	if (room > (size_t)got)
		room = (size_t)got;
	return buffer_append(buffer, chunk, room, error) == 0 ? SOME : BROKEN;
}

/* Sleep until the pipe or the child has news, or ${remaining} is over. */
static void
wait_for_news(int input, int child_fd, uint64_t remaining)
{
	struct pollfd news[] = {
		{ .fd = input, .events = POLLIN },
		{ .fd = child_fd, .events = POLLIN },
	};
	uint64_t longest = 60 * CLOCK_SECOND;

	/* Before Linux 5.3 there is no pidfd: look again and again. */
	if (child_fd < 0)
		longest = 10 * CLOCK_MILLISECOND;
	if (remaining > longest)
		remaining = longest;
	(void)poll(news, 2, (int)(remaining / CLOCK_MILLISECOND) + 1);
}

/*
 * Read until the child has ended; what it left running may keep the pipe
 * open, so its end is not waited for.  Return 0, or -1 when it took too long
 * or something failed.
 */
static int
follow(const char *name, pid_t child, int input, uint64_t timeout,
    struct buffer *buffer, struct error *error)
{
	uint64_t begun = real_now(), passed;
	int child_fd = pidfd_open(child, 0);
	enum progress progress = SOME;
	int result = -1;

	for (;;) {
		/* First this: all that it wrote is then in the pipe. */
		bool ended = has_ended(child);

		if (progress != ENDED)
			progress = read_some(name, input, buffer, error);
		if (progress == BROKEN)
			break;
		if (ended && progress != SOME) {
			result = 0;
			break;
		}
		passed = real_now() - begun;
		if (passed >= timeout) {
			error_set(error, ERROR_FAILED, CAUSE_OTHER, name,
			    "took longer than %.1f s",
			    (double)timeout / (double)CLOCK_SECOND);
			break;
		}
		if (progress != SOME)
			wait_for_news(progress == ENDED ? -1 : input,
			    child_fd, timeout - passed);
	}
	if (child_fd >= 0)
		close(child_fd);
	return result;
}

/* Take the child's end; ${result} is what came before. */
static int
finish(const char *name, pid_t child, int result, struct error *error)
{
	int status = 0;
	pid_t got;

	/*
	 * Its session is its process group.  Before it is waited for, so
	 * that the number cannot be another's.
	 */
	kill(-child, SIGKILL);
	do {
		got = waitpid(child, &status, 0);
	} while (got < 0 && errno == EINTR);
	if (result != 0)
		return -1;
	if (got < 0)
		return error_set_errno(error, errno, name,
		    "its exit status was lost");
	if (WIFSIGNALED(status))
		return error_set(error, ERROR_FAILED, CAUSE_OTHER, name,
		    "was ended by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) != 0)
		return error_set(error, ERROR_FAILED, CAUSE_OTHER, name,
		    "ended with exit status %d", WEXITSTATUS(status));
	return 0;
}

int
process_output(char *const argv[], uint64_t timeout, struct buffer *buffer,
    struct error *error)
{
	int ends[2];
	pid_t child;
	int result;

	/* Only our end does not block: the other one is the program's. */
	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_set_errno(error, errno, argv[0],
		    "could not make a pipe");
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
	result = start(argv, ends[1], &child, error);
	close(ends[1]);
	if (result == 0) {
		result = follow(argv[0], child, ends[0], timeout, buffer,
		    error);
		result = finish(argv[0], child, result, error);
	}
	close(ends[0]);
	return result;
}
