#include "life/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

/* Far more than we ever watch; a limit all the same. */
#define WATCHED_MAXIMUM 128

struct watched {
	int fd;		/* -1: forgotten, to be swept */
	short events;
	loop_callback callback;
	void *context;
};

struct loop {
	struct watched watched[WATCHED_MAXIMUM];
	size_t count;
	struct loop_timer *timers;
	bool stopped;
	int signals;
	void (*signal_callback)(void *, const struct signalfd_siginfo *);
	void *signal_context;
};

struct loop *
loop_new(struct error *error)
{
	struct loop *loop;

	if ((loop = calloc(1, sizeof(*loop))) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for an event loop");
		return NULL;
	}
	loop->signals = -1;
	return loop;
}

int
loop_watch(struct loop *loop, int fd, short events, loop_callback callback,
    void *context, struct error *error)
{
	size_t i;

	assert(fd >= 0);
	for (i = 0; i < loop->count; i++)
		if (loop->watched[i].fd == fd)
			break;
	if (i == WATCHED_MAXIMUM)
		return error_set(error, ERROR_FAILED, CAUSE_LIMIT, NULL,
		    "more than %d descriptors in one event loop",
		    WATCHED_MAXIMUM);
	if (i == loop->count)
		loop->count++;
	loop->watched[i] = (struct watched){ fd, events, callback, context };
	return 0;
}

void
loop_forget(struct loop *loop, int fd)
{
	size_t i;

	for (i = 0; i < loop->count; i++)
		if (loop->watched[i].fd == fd)
			loop->watched[i].fd = -1;
}

void
loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t when,
    loop_callback callback, void *context)
{
	assert(when > 0);
	loop_timer_stop(loop, timer);
	timer->when = when;
	timer->callback = callback;
	timer->context = context;
	timer->next = loop->timers;
	loop->timers = timer;
}

void
loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
	struct loop_timer **place;

	for (place = &loop->timers; *place != NULL; place = &(*place)->next) {
		if (*place == timer) {
			*place = timer->next;
			break;
		}
	}
	timer->when = 0;
	timer->next = NULL;
}

static void
signal_arrived(void *context)
{
	struct loop *loop = context;
	struct signalfd_siginfo info;

	while (read(loop->signals, &info, sizeof(info)) == sizeof(info))
		loop->signal_callback(loop->signal_context, &info);
}

int
loop_signals(struct loop *loop, const sigset_t *set,
    void (*callback)(void *context, const struct signalfd_siginfo *info),
    void *context, struct error *error)
{
	assert(loop->signals < 0);
	sigprocmask(SIG_BLOCK, set, NULL);
	loop->signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (loop->signals < 0)
		return error_set_errno(error, errno, NULL,
		    "could not make a signal descriptor");
	loop->signal_callback = callback;
	loop->signal_context = context;
	return loop_watch(loop, loop->signals, POLLIN, signal_arrived, loop,
	    error);
}

/* Milliseconds until the next timer, rounded up so that it is due then. */
static int
wait_time(const struct loop *loop)
{
	const struct loop_timer *timer;
	uint64_t now, first = CLOCK_NEVER, wait;

	for (timer = loop->timers; timer != NULL; timer = timer->next)
		if (timer->when < first)
			first = timer->when;
	if (first == CLOCK_NEVER)
		return -1;
	now = clock_monotonic();
	if (first <= now)
		return 0;
	wait = (first - now + CLOCK_MILLISECOND - 1) / CLOCK_MILLISECOND;
	return wait > INT_MAX ? INT_MAX : (int)wait;
}

static void
run_timers(struct loop *loop)
{
	struct loop_timer *timer, *due;
	uint64_t now = clock_monotonic();

	/* The earliest first; a callback may change the list. */
	while (!loop->stopped) {
		due = NULL;
		for (timer = loop->timers; timer != NULL; timer = timer->next)
			if (timer->when <= now &&
			    (due == NULL || timer->when < due->when))
				due = timer;
		if (due == NULL)
			break;
		loop_timer_stop(loop, due);
		due->callback(due->context);
	}
}

static void
sweep(struct loop *loop)
{
	size_t from, to = 0;

	for (from = 0; from < loop->count; from++)
		if (loop->watched[from].fd >= 0)
			loop->watched[to++] = loop->watched[from];
	loop->count = to;
}

static const struct watched *
find(const struct loop *loop, int fd)
{
	size_t i;

	for (i = 0; i < loop->count; i++)
		if (loop->watched[i].fd == fd)
			return &loop->watched[i];
	return NULL;
}

int
loop_run(struct loop *loop, struct error *error)
{
	struct pollfd polled[WATCHED_MAXIMUM];
	const struct watched *watched;
	size_t i, count;
	int ready;

	loop->stopped = false;
	while (!loop->stopped) {
		sweep(loop);
		count = loop->count;
		for (i = 0; i < count; i++) {
			polled[i].fd = loop->watched[i].fd;
			polled[i].events = loop->watched[i].events;
			polled[i].revents = 0;
		}
		ready = poll(polled, count, wait_time(loop));
		if (ready < 0 && errno != EINTR)
			return error_set_errno(error, errno, NULL,
			    "could not wait for events");
		for (i = 0; ready > 0 && i < count && !loop->stopped; i++) {
			if (polled[i].revents == 0)
				continue;
			/* A callback before may have forgotten it. */
			if ((watched = find(loop, polled[i].fd)) != NULL)
				watched->callback(watched->context);
		}
		if (!loop->stopped)
			run_timers(loop);
	}
	return 0;
}

void
loop_stop(struct loop *loop)
{
	loop->stopped = true;
}

void
loop_free(struct loop *loop)
{
	if (loop == NULL)
		return;
	if (loop->signals >= 0)
		close(loop->signals);
	free(loop);
}
