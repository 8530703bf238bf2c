#ifndef LIFE_LOOP_H
#define LIFE_LOOP_H

#include <signal.h>
#include <stdint.h>

struct error;
struct signalfd_siginfo;

/*
 * An event loop over poll(2): descriptors, timers and signals.  One thread;
 * callbacks may add and remove anything, also themselves.
 */
struct loop;

typedef void (*loop_callback)(void *context);

/* A timer; the caller's, zeroed before its first use. */
struct loop_timer {
	uint64_t when;		/* clock_monotonic(); 0: not set */
	loop_callback callback;
	void *context;
	struct loop_timer *next;
};

/**
 * loop_new(error): an empty loop, or NULL.
 */
struct loop *loop_new(struct error *error);

/**
 * loop_watch(loop, fd, events, callback, context, error):
 * Call ${callback} whenever poll() says ${events} (or an error) of ${fd};
 * replaces what was said for ${fd} before.  Return 0 or -1.
 */
int loop_watch(struct loop *loop, int fd, short events,
    loop_callback callback, void *context, struct error *error);

/**
 * loop_forget(loop, fd): watch it no more.  One that is not watched is fine.
 */
void loop_forget(struct loop *loop, int fd);

/**
 * loop_timer_set(loop, timer, when, callback, context):
 * Call ${callback} once at ${when}; replaces an earlier time.
 * loop_timer_stop(loop, timer): do not.
 */
void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t when,
    loop_callback callback, void *context);
void loop_timer_stop(struct loop *loop, struct loop_timer *timer);

/**
 * loop_signals(loop, set, callback, context, error):
 * Block the signals in ${set} in this thread (and those it starts) and call
 * ${callback} with each that comes.  Once a loop.  Return 0 or -1.
 */
int loop_signals(struct loop *loop, const sigset_t *set,
    void (*callback)(void *context, const struct signalfd_siginfo *info),
    void *context, struct error *error);

/**
 * loop_run(loop): until loop_stop.  Return 0, or -1 when poll() failed.
 * loop_stop(loop): end loop_run after the callback that calls this.
 */
int loop_run(struct loop *loop, struct error *error);
void loop_stop(struct loop *loop);

/**
 * loop_free(loop): behave consistently with free(NULL).  Closes no descriptor
 * of the caller and unblocks no signal.
 */
void loop_free(struct loop *loop);

#endif
