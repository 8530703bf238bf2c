#include "life/checkup.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "life/checkup_private.h"
#include "life/settings.h"
#include "life/thread.h"

/* How long the remote's part may clean up after a signal. */
#define LEAVE_TIME (20 * CLOCK_SECOND)

/* In the order in which they are told. */
static const struct checkup_row rows[CHECKUP_PARTS] = {
	{ "directory", 15 * CLOCK_SECOND, checkup_folder },
	{ "remote", 28 * CLOCK_SECOND, checkup_store },
	{ "notices", 15 * CLOCK_SECOND, checkup_notices },
};

static void
wake(struct checkup *checkup)
{
	uint64_t one = 1;
	ssize_t ignored = write(checkup->wake, &one, sizeof(one));

	(void)ignored;
}

void
checkup_say(struct checkup_part *part, struct finding *finding)
{
	struct checkup *checkup = part->checkup;
	struct finding *more;

	pthread_mutex_lock(&checkup->lock);
	more = realloc(part->findings, (part->count + 1) * sizeof(*more));
	if (more != NULL) {
		part->findings = more;
		more[part->count++] = *finding;
		finding->facts = NULL;
	}
	pthread_mutex_unlock(&checkup->lock);
	finding_free(finding);
	wake(checkup);
}

void
checkup_doing(struct checkup_part *part, const char *words)
{
	pthread_mutex_lock(&part->checkup->lock);
	part->doing = words;
	pthread_mutex_unlock(&part->checkup->lock);
}

void
checkup_left_out(struct checkup_part *part, const char *check,
    const char *why)
{
	struct finding finding = FINDING_INIT;

	finding_set(&finding, FINDING_LEFT_OUT, check, "%s", why);
	checkup_say(part, &finding);
}

char *
checkup_time_text(uint64_t nanoseconds, char text[UNIT_TEXT_SIZE])
{
	if (nanoseconds >= CLOCK_SECOND)
		return unit_duration_text(nanoseconds, text);
	snprintf(text, UNIT_TEXT_SIZE, "%.1f ms", (double)nanoseconds /
	    (double)CLOCK_MILLISECOND);
	return text;
}

static void *
run_part(void *context)
{
	struct checkup_part *part = context;

	part->row->run(part);
	pthread_mutex_lock(&part->checkup->lock);
	part->over = true;
	pthread_mutex_unlock(&part->checkup->lock);
	wake(part->checkup);
	return NULL;
}

static struct checkup *
checkup_new(const struct settings *settings, struct error *error)
{
	struct checkup *checkup = calloc(1, sizeof(*checkup));

	if (checkup == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	checkup->settings = settings;
	checkup->began = clock_monotonic();
	atomic_init(&checkup->stop, false);
	pthread_mutex_init(&checkup->lock, NULL);
	checkup->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (checkup->wake >= 0)
		return checkup;
	error_set_errno(error, errno, NULL,
	    "could not make an event descriptor");
	free(checkup);
	return NULL;
}

/* Return 0, or -1 when the parts that were started must be ended. */
static int
start_parts(struct checkup *checkup, struct error *error)
{
	for (int i = 0; i < CHECKUP_PARTS; i++) {
		struct checkup_part *part = &checkup->parts[i];

		part->checkup = checkup;
		part->row = &rows[i];
		part->doing = "beginning";
		if (thread_start(&part->thread, run_part, part, error) != 0)
			return -1;
		part->started = true;
	}
	return 0;
}

/* The next finding of ${part} that was not told; NULL: none now. */
static bool
take(struct checkup_part *part, struct finding *finding, bool *over)
{
	struct checkup *checkup = part->checkup;
	bool found;

	pthread_mutex_lock(&checkup->lock);
	found = part->told < part->count;
	if (found) {
		*finding = part->findings[part->told];
		part->findings[part->told++].facts = NULL;
	}
	*over = part->over;
	pthread_mutex_unlock(&checkup->lock);
	return found;
}

static void
tell_late(struct checkup_part *part, checkup_tell tell, void *context)
{
	struct checkup *checkup = part->checkup;
	struct finding finding = FINDING_INIT;
	char left[sizeof(checkup->facts.left)];
	const char *doing;

	pthread_mutex_lock(&checkup->lock);
	doing = part->doing;
	memcpy(left, checkup->facts.left, sizeof(left));
	pthread_mutex_unlock(&checkup->lock);
	finding_set(&finding, FINDING_WRONG, part->row->check,
	    "not done within %d s: %s",
	    (int)(part->row->limit / CLOCK_SECOND), doing);
	if (left[0] != '\0' && part->row->run == checkup_store)
		finding_add(&finding, "; objects that begin with %s may be "
		    "left in the remote", left);
	finding_cure(&finding, part->row->run == checkup_folder ?
	    "see whether its file system answers (a server that is gone?), "
	    "or whether it holds very many files" :
	    "try again; see whether something on the way is overloaded");
	tell(context, &finding);
	finding_free(&finding);
}

/*
 * Tell what ${part} finds until it is over or late.  Return the number of a
 * signal that came meanwhile, else 0.
 */
static int
attend(struct checkup_part *part, int signals, checkup_tell tell,
    void *context)
{
	struct checkup *checkup = part->checkup;
	struct pollfd ready[2] = { { .fd = checkup->wake, .events = POLLIN },
	    { .fd = signals, .events = POLLIN } };
	uint64_t limit = checkup->began + part->row->limit, now, count;
	struct signalfd_siginfo signal;
	struct finding finding;
	bool over;

	for (;;) {
		while (take(part, &finding, &over)) {
			tell(context, &finding);
			finding_free(&finding);
		}
		if (over)
			return 0;
		now = clock_monotonic();
		if (now >= limit) {
			tell_late(part, tell, context);
			return 0;
		}
		poll(ready, 2, (int)((limit - now) / CLOCK_MILLISECOND) + 1);
		while (read(checkup->wake, &count, sizeof(count)) > 0)
			;
		if (read(signals, &signal, sizeof(signal)) > 0)
			return (int)signal.ssi_signo;
	}
}

static bool
is_over(struct checkup_part *part)
{
	bool over;

	pthread_mutex_lock(&part->checkup->lock);
	over = part->over;
	pthread_mutex_unlock(&part->checkup->lock);
	return over;
}

/*
 * Join all parts; one that is late already is not waited for, unless ${patient}:
 * it may have to clean up.  Return whether all have ended.
 */
static bool
join_parts(struct checkup *checkup, bool patient)
{
	uint64_t now = clock_monotonic(), until;
	bool all = true;

	for (int i = 0; i < CHECKUP_PARTS; i++) {
		struct checkup_part *part = &checkup->parts[i];

		if (!part->started)
			continue;
		until = patient || is_over(part) ? now + LEAVE_TIME : now;
		if (thread_join_until(part->thread, until) != 0)
			all = false;
	}
	return all;
}

static void
checkup_free(struct checkup *checkup)
{
	struct finding finding;
	bool over;

	for (int i = 0; i < CHECKUP_PARTS; i++) {
		if (!checkup->parts[i].started)
			continue;
		while (take(&checkup->parts[i], &finding, &over))
			finding_free(&finding);
		free(checkup->parts[i].findings);
	}
	pthread_mutex_destroy(&checkup->lock);
	close(checkup->wake);
	free(checkup);
}

/* Signals become readable, so that what was written can be deleted. */
static int
catch_signals(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, before);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
attend_all(struct checkup *checkup, int signals, checkup_tell tell,
    void *context)
{
	struct checkup_facts facts;
	int signal = 0;

	for (int i = 0; i < CHECKUP_PARTS && signal == 0; i++)
		signal = attend(&checkup->parts[i], signals, tell, context);
	if (signal != 0) {
		log_line(LOG_WARNING, "interrupted",
		    "interrupted; deleting what was written");
		return signal;
	}
	pthread_mutex_lock(&checkup->lock);
	facts = checkup->facts;
	pthread_mutex_unlock(&checkup->lock);
	checkup_end(checkup->settings, &facts, tell, context);
	return 0;
}

int
checkup_run(const struct settings *settings, checkup_tell tell,
    void *context, bool *hangs, struct error *error)
{
	struct checkup *checkup = checkup_new(settings, error);
	int signals, result = -1;
	sigset_t before;

	*hangs = false;
	if (checkup == NULL)
		return -1;
	signals = catch_signals(&before);
	if (signals < 0)
		error_set_errno(error, errno, NULL,
		    "could not make a signal descriptor");
	else if (start_parts(checkup, error) == 0)
		result = attend_all(checkup, signals, tell, context);
	atomic_store(&checkup->stop, true);
	*hangs = !join_parts(checkup, result != 0);
	if (!*hangs)
		checkup_free(checkup);
	if (signals >= 0)
		close(signals);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}
