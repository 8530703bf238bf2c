#include "life/sweeper.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/queue.h"
#include "life/thread.h"
#include "store/writer.h"

#define CHECK_EVERY (60 * CLOCK_SECOND)
#define RETRY_AFTER (30 * CLOCK_SECOND)

struct sweeper {
	struct writer *writer;
	pthread_t thread;
	struct queue *orders;	/* closed: stop */
	struct queue *news;	/* one struct error * */
};

/* Send what is due.  Return when to look again. */
static uint64_t
delete_due(struct sweeper *sweeper)
{
	struct error error = ERROR_INIT;
	uint64_t now = clock_monotonic(), next;
	int count;

	if ((next = writer_next_delete(sweeper->writer)) > now)
		return next;
	count = writer_delete_due(sweeper->writer, &error);
	if (count < 0) {
		log_failure(LOG_WARNING, "delete_failed", &error);
		return now + RETRY_AFTER;
	}
	if (count > 0)
		log_event(LOG_DEBUG, "deleted", LOG_FIELDS(
		    LOG_NUMBER_FIELD("objects", (uint64_t)count)),
		    "deleted %d objects that nothing valid names", count);
	return writer_next_delete(sweeper->writer);
}

/* Whether this writer still counts; says so once when not. */
static bool
still_counts(struct sweeper *sweeper)
{
	struct error error = ERROR_INIT, *news;

	if (writer_check(sweeper->writer, &error) == 0 ||
	    error.class != ERROR_SUPERSEDED)
		return true;
	if ((news = malloc(sizeof(*news))) != NULL) {
		*news = error;
		if (queue_try_put(sweeper->news, news) != 0)
			free(news);
	}
	return false;
}

static void *
sweep(void *context)
{
	struct sweeper *sweeper = context;
	uint64_t check = clock_monotonic() + CHECK_EVERY, next, now, wait;
	bool closed = false;

	while (!closed) {
		next = delete_due(sweeper);
		now = clock_monotonic();
		if (now >= check) {
			if (!still_counts(sweeper))
				break;
			check = now + CHECK_EVERY;
		}
		if (next > check)
			next = check;
		wait = next > now ? next - now : 0;
		/* Never spin, whatever the writer says. */
		if (wait < CLOCK_SECOND / 10)
			wait = CLOCK_SECOND / 10;
		if (wait > CLOCK_SECOND * 5)
			wait = CLOCK_SECOND * 5;
		closed = queue_take(sweeper->orders, wait) != NULL;
	}
	return NULL;
}

struct sweeper *
sweeper_start(struct writer *writer, struct error *error)
{
	struct sweeper *sweeper;

	if ((sweeper = calloc(1, sizeof(*sweeper))) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a thread");
		return NULL;
	}
	sweeper->writer = writer;
	if ((sweeper->orders = queue_new(1, error)) == NULL ||
	    (sweeper->news = queue_new(1, error)) == NULL ||
	    thread_start(&sweeper->thread, sweep, sweeper, error) != 0) {
		queue_free(sweeper->orders);
		queue_free(sweeper->news);
		free(sweeper);
		return NULL;
	}
	return sweeper;
}

int
sweeper_fd(struct sweeper *sweeper)
{
	return queue_fd(sweeper->news);
}

int
sweeper_superseded(struct sweeper *sweeper, struct error *error)
{
	struct error *news;

	if ((news = queue_take(sweeper->news, 0)) == NULL)
		return 0;
	*error = *news;
	free(news);
	return 1;
}

int
sweeper_stop(struct sweeper *sweeper, uint64_t until)
{
	if (sweeper == NULL)
		return 0;
	/* Any item means: stop. */
	(void)queue_try_put(sweeper->orders, sweeper);
	if (thread_join_until(sweeper->thread, until) != 0)
		return -1;
	free(queue_take(sweeper->news, 0));
	queue_free(sweeper->orders);
	queue_free(sweeper->news);
	free(sweeper);
	return 0;
}
