#include "notice/notice.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "notice/asker.h"
#include "notice/cloud.h"
#include "notice/ledger.h"
#include "notice/lookout.h"
#include "notice/outbox.h"
#include "notice/pace.h"
#include "notice/sight.h"

/* After a failure of our own: no memory, a variable that makes no sense. */
#define PAUSE_FIRST CLOCK_SECOND
#define PAUSE_LAST (60 * CLOCK_SECOND)

struct notice_watch {
	struct notice_options options;
	char *endpoint;
	struct outbox *outbox;
	struct asker *asker;
	pthread_t thread;
	bool has_thread;

	/* From other threads. */
	atomic_bool interrupt;		/* look at what follows */
	atomic_bool stop;
	atomic_bool resumed;
	pthread_mutex_t lock;
	char acknowledge[96];		/* under the lock; "": nothing */

	/* The thread's. */
	struct lookout lookout;
	struct ledger *ledger;
	struct sight *sight;
	struct cloud_search *search;
	const struct lookout_cloud *cloud;
	void *state;			/* of the cloud; NULL: not open */
	uint64_t open_due;
	uint64_t pause;
};

static void
close_cloud(struct notice_watch *watch)
{
	cloud_free(watch->search);
	watch->search = NULL;
	if (watch->state != NULL)
		watch->cloud->close(watch->state);
	watch->state = NULL;
}

static uint64_t
fail_to_open(struct notice_watch *watch, const struct error *error)
{
	sight_fails(watch->sight, "not started", true, error);
	watch->pause = pace_grow(watch->pause, PAUSE_FIRST, PAUSE_LAST);
	watch->open_due = clock_monotonic() + pace_jitter(watch->pause);
	return watch->open_due;
}

static uint64_t
search_cloud(struct notice_watch *watch)
{
	struct error error = ERROR_INIT;
	uint64_t due;

	if (watch->search == NULL)
		watch->search = cloud_new(&watch->lookout, &error);
	if (watch->search == NULL)
		return fail_to_open(watch, &error);
	due = cloud_step(watch->search, &watch->cloud);
	if (watch->cloud != NULL) {
		cloud_free(watch->search);
		watch->search = NULL;
	}
	return due;
}

static uint64_t
open_cloud(struct notice_watch *watch)
{
	struct error error = ERROR_INIT;

	sight_name(watch->sight, watch->cloud->name, watch->cloud->patience);
	watch->state = watch->cloud->open(&watch->lookout, &error);
	if (watch->state == NULL)
		return fail_to_open(watch, &error);
	watch->pause = 0;
	return 0;
}

/* Do what is due; return when the next thing is. */
static uint64_t
step(struct notice_watch *watch)
{
	if (watch->state != NULL)
		return watch->cloud->step(watch->state);
	if (watch->open_due > clock_monotonic())
		return watch->open_due;
	return watch->cloud == NULL ? search_cloud(watch) :
	    open_cloud(watch);
}

static void
start_anew(struct notice_watch *watch)
{
	struct error error = ERROR_INIT;

	close_cloud(watch);
	ledger_doubt(watch->ledger);
	watch->open_due = 0;
	watch->pause = 0;
	if (asker_drop_connections(watch->asker, &error) != 0)
		fail_to_open(watch, &error);
}

static void
hand_over_acknowledgement(struct notice_watch *watch)
{
	char id[sizeof(watch->acknowledge)] = "";

	if (watch->state == NULL)
		return;
	pthread_mutex_lock(&watch->lock);
	memcpy(id, watch->acknowledge, sizeof(id));
	watch->acknowledge[0] = '\0';
	pthread_mutex_unlock(&watch->lock);
	if (id[0] != '\0' && watch->cloud->acknowledge != NULL)
		watch->cloud->acknowledge(watch->state, id);
}

static void *
run(void *context)
{
	struct notice_watch *watch = context;

	for (;;) {
		uint64_t due;

		/* First: who sets what follows sets it afterwards. */
		atomic_store(&watch->interrupt, false);
		if (atomic_load(&watch->stop))
			break;
		if (atomic_exchange(&watch->resumed, false))
			start_anew(watch);
		hand_over_acknowledgement(watch);
		due = step(watch);
		asker_wait(watch->asker, due);
	}
	close_cloud(watch);
	return NULL;
}

static int
copy_options(struct notice_watch *watch, const struct notice_options *options,
    struct error *error)
{
	watch->options = *options;
	if (options->endpoint == NULL)
		return 0;
	watch->endpoint = strdup(options->endpoint);
	watch->options.endpoint = watch->endpoint;
	if (watch->endpoint == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	return 0;
}

/* Signals are for the event loop. */
static int
start_thread(struct notice_watch *watch, struct error *error)
{
	sigset_t all, before;
	int result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&watch->thread, NULL, run, watch);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (result != 0)
		return error_set_errno(error, result, NULL,
		    "could not start a thread");
	watch->has_thread = true;
	return 0;
}

struct notice_watch *
notice_start(const struct notice_options *options, struct error *error)
{
	struct notice_watch *watch = calloc(1, sizeof(*watch));

	if (watch == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	pthread_mutex_init(&watch->lock, NULL);
	if (copy_options(watch, options, error) != 0 ||
	    (watch->outbox = outbox_new(error)) == NULL ||
	    (watch->asker = asker_new(error)) == NULL ||
	    (watch->ledger = ledger_new(watch->outbox, error)) == NULL ||
	    (watch->sight = sight_new(watch->outbox, error)) == NULL)
		goto fail;
	watch->cloud = lookout_find(options->cloud);
	watch->lookout = (struct lookout){ .options = &watch->options,
	    .asker = watch->asker, .ledger = watch->ledger,
	    .sight = watch->sight, .interrupt = &watch->interrupt };
	if (options->cloud != NOTICE_CLOUD_NONE &&
	    start_thread(watch, error) != 0)
		goto fail;
	return watch;
fail:
	notice_free(watch);
	return NULL;
}

int
notice_fd(struct notice_watch *watch)
{
	return outbox_fd(watch->outbox);
}

bool
notice_next(struct notice_watch *watch, struct notice *notice)
{
	return outbox_take(watch->outbox, notice);
}

void
notice_acknowledge(struct notice_watch *watch, const char *id)
{
	pthread_mutex_lock(&watch->lock);
	if (strlen(id) < sizeof(watch->acknowledge))
		memcpy(watch->acknowledge, id, strlen(id) + 1);
	pthread_mutex_unlock(&watch->lock);
	asker_wake(watch->asker);
}

void
notice_resumed(struct notice_watch *watch)
{
	atomic_store(&watch->resumed, true);
	atomic_store(&watch->interrupt, true);
	asker_wake(watch->asker);
}

void
notice_free(struct notice_watch *watch)
{
	if (watch == NULL)
		return;
	if (watch->has_thread) {
		atomic_store(&watch->stop, true);
		atomic_store(&watch->interrupt, true);
		asker_wake(watch->asker);
		pthread_join(watch->thread, NULL);
	}
	sight_free(watch->sight);
	ledger_free(watch->ledger);
	asker_free(watch->asker);
	outbox_free(watch->outbox);
	pthread_mutex_destroy(&watch->lock);
	free(watch->endpoint);
	free(watch);
}
