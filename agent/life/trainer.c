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
	if (trainer->terminal >= 0) {
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
	if (tcgetpgrp(fd) == getpgrp()) {
		trainer->terminal = fd;
		trainer->handed = true;
	} else {
		close(fd);
	}
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

/* As a shell does with a job that was stopped from the terminal. */
static void
stop_with_it(struct trainer *trainer)
{
	if (tcgetpgrp(trainer->terminal) != getpgrp()) {
		tcsetpgrp(trainer->terminal, getpgrp());
		raise(SIGSTOP);
	}
	/* Continued: in the foreground, or in the background. */
	if (tcgetpgrp(trainer->terminal) == getpgrp())
		tcsetpgrp(trainer->terminal, trainer->pid);
	trainer_signal_group(trainer, SIGCONT);
}

void
trainer_changed(struct trainer *trainer, int status)
{
	if (WIFSTOPPED(status)) {
		if (trainer->handed && (WSTOPSIG(status) == SIGTSTP ||
		    WSTOPSIG(status) == SIGTTIN ||
		    WSTOPSIG(status) == SIGTTOU))
			stop_with_it(trainer);
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
