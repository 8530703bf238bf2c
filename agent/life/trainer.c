#include "life/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

static void
child_setup(const struct trainer *trainer, const sigset_t *mask,
    const char *restored)
{
	sigset_t terminal_output;

	setpgid(0, 0);
	if (trainer->handed) {
		/* Not yet in the foreground: asking for it would stop us. */
		sigemptyset(&terminal_output);
		sigaddset(&terminal_output, SIGTTOU);
		sigprocmask(SIG_BLOCK, &terminal_output, NULL);
		tcsetpgrp(trainer->terminal, getpgrp());
	}
	/* The only one that this program changes; nohup's stay. */
	signal(SIGPIPE, SIG_DFL);
	setenv("CKPTSYNC_RESTORED", restored, 1);
	sigprocmask(SIG_SETMASK, mask, NULL);
}

static void
open_terminal(struct trainer *trainer)
{
	int fd;

	trainer->terminal = -1;
	if ((fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) < 0)
		return;
	trainer->terminal = fd;
	trainer->handed = tcgetpgrp(fd) == getpgrp();
}

int
trainer_start(struct trainer *trainer, char *const *arguments,
    const char *restored, const sigset_t *mask, struct error *error)
{
	int ends[2], number = 0, status;
	pid_t pid;

	memset(trainer, 0, sizeof(*trainer));
	trainer->status = 126;
	open_terminal(trainer);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_set_errno(error, errno, arguments[0],
		    "could not start the trainer");
	if ((pid = fork()) == 0) {
		child_setup(trainer, mask, restored);
		execvp(arguments[0], arguments);
		number = errno;
		(void)!write(ends[1], &number, sizeof(number));
		_exit(number == ENOENT ? 127 : 126);
	}
	close(ends[1]);
	if (pid < 0) {
		error_set_errno(error, errno, arguments[0],
		    "could not start the trainer");
		close(ends[0]);
		return -1;
	}
	setpgid(pid, pid);
	/* The pipe closes by itself when exec has worked. */
	while (read(ends[0], &number, sizeof(number)) < 0 && errno == EINTR)
		;
	close(ends[0]);
	if (number == 0) {
		trainer->pid = pid;
		trainer->status = 0;
		return 0;
	}
	waitpid(pid, &status, 0);
	if (trainer->handed)
		tcsetpgrp(trainer->terminal, getpgrp());
	trainer->status = number == ENOENT ? 127 : 126;
	return error_set_errno(error, number, arguments[0],
	    "could not start the trainer");
}

void
trainer_signal_group(const struct trainer *trainer, int number)
{
	if (trainer->pid > 0)
		kill(-trainer->pid, number);
}

void
trainer_signal(const struct trainer *trainer, int number)
{
	if (trainer->pid > 0 && !trainer->ended)
		kill(trainer->pid, number);
	else
		trainer_signal_group(trainer, number);
}

bool
trainer_lingers(const struct trainer *trainer)
{
	return trainer->pid > 0 && kill(-trainer->pid, 0) == 0;
}

void
trainer_continue(struct trainer *trainer)
{
	if (trainer->pid == 0 || trainer->ended)
		return;
	if (trainer->terminal >= 0 &&
	    tcgetpgrp(trainer->terminal) == getpgrp())
		trainer->handed =
		    tcsetpgrp(trainer->terminal, trainer->pid) == 0;
	trainer_signal_group(trainer, SIGCONT);
}

/* Whether a shell would continue this process after it was stopped. */
static bool
is_job(void)
{
	pid_t parent = getppid();

	return getsid(parent) == getsid(0) && getpgid(parent) != getpgrp();
}

/* Stop with it, as one job of a shell that can continue both. */
static void
stopped(struct trainer *trainer, int number)
{
	bool foreground;

	if (trainer->terminal < 0 || (number != SIGTSTP &&
	    number != SIGTTIN && number != SIGTTOU))
		return;
	if (trainer->handed && tcgetpgrp(trainer->terminal) == trainer->pid)
		tcsetpgrp(trainer->terminal, getpgrp());
	trainer->handed = false;
	foreground = tcgetpgrp(trainer->terminal) == getpgrp();
	/* In the background it waits for the terminal; when we have that by
	 * now, it gets it. */
	if (is_job() && (number == SIGTSTP || !foreground))
		raise(SIGSTOP);
	else if (!foreground)
		return;
	trainer_continue(trainer);
}

void
trainer_changed(struct trainer *trainer, int status)
{
	if (WIFSTOPPED(status)) {
		stopped(trainer, WSTOPSIG(status));
		return;
	}
	trainer->ended = true;
	trainer->status = WIFEXITED(status) ? WEXITSTATUS(status) :
	    128 + WTERMSIG(status);
	if (trainer->handed) {
		tcsetpgrp(trainer->terminal, getpgrp());
		trainer->handed = false;
	}
}

void
trainer_free(struct trainer *trainer)
{
	if (trainer->pid > 0 && trainer->terminal >= 0)
		close(trainer->terminal);
	trainer->terminal = -1;
}
