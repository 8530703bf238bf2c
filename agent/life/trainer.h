#ifndef LIFE_TRAINER_H
#define LIFE_TRAINER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct error;

/*
 * The trainer: a child in a process group of its own, which gets the terminal
 * when we had it.
 */
struct trainer {
	pid_t pid;		/* also its group; 0: not started */
	bool ended;
	int status;		/* of a shell: 128 + n for a signal */
	int terminal;		/* descriptor, -1: none */
	bool handed;		/* it has the terminal */
};

/**
 * trainer_arguments(command, restored, resume_arguments, error):
 * The command line: every {restored} in ${command} replaced by the path
 * ${restored} (may be ""); when that is not empty, the words of
 * ${resume_arguments} (may be NULL), with {} replaced by it, at the end.  Words
 * are split at blanks; quotes and backslashes keep them together.  Free it
 * with trainer_arguments_free.  NULL with ERROR_USAGE for an open quote.
 */
char **trainer_arguments(char *const *command, const char *restored,
    const char *resume_arguments, struct error *error);
void trainer_arguments_free(char **arguments);

/**
 * trainer_start(trainer, arguments, restored, mask, error):
 * Start it with CKPTSYNC_RESTORED=${restored}, the signal mask ${mask} and the
 * signal dispositions that this program was started with.  Return 0; on
 * failure -1 with trainer->status 127 (not found) or 126 (could not be
 * executed), as a shell has it.
 */
int trainer_start(struct trainer *trainer, char *const *arguments,
    const char *restored, const sigset_t *mask, struct error *error);

/**
 * trainer_signal(trainer, number): to its process; when that has ended, to
 * what is left of its group.
 * trainer_signal_group(trainer, number): to all of its group.
 */
void trainer_signal(const struct trainer *trainer, int number);
void trainer_signal_group(const struct trainer *trainer, int number);

/**
 * trainer_lingers(trainer): whether processes of its group are left.
 */
bool trainer_lingers(const struct trainer *trainer);

/**
 * trainer_changed(trainer, status):
 * Take in what waitpid(WUNTRACED) said of it: notes its end and takes the
 * terminal back; when it was stopped from the terminal, stops this process
 * too, if it is a shell's job, until it is continued.
 */
void trainer_changed(struct trainer *trainer, int status);

/**
 * trainer_continue(trainer):
 * This process was continued: the trainer too, in the foreground when we are.
 */
void trainer_continue(struct trainer *trainer);

/**
 * trainer_free(trainer): close the terminal's descriptor.
 */
void trainer_free(struct trainer *trainer);

#endif
