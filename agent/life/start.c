#include "life/start.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/random.h"
#include "format/checkpoint.h"
#include "life/opening.h"
#include "life/settings.h"
#include "life/start_private.h"
#include "life/thread.h"
#include "store/backend.h"
#include "store/truth.h"
#include "store/writer.h"
#include "watch/view.h"

/* Files that have just been written settle before they can be judged. */
#define SETTLE (12 * CLOCK_SECOND)

bool
start_is_cancelled(struct start *start)
{
	return start->cancel;
}

void
start_say(struct start *start, const char *doing)
{
	pthread_mutex_lock(&start->lock);
	start->doing = doing;
	pthread_mutex_unlock(&start->lock);
}

#define PAUSE_MAXIMUM (30 * CLOCK_SECOND)
#define SLICE (CLOCK_SECOND / 5)

int
start_pause(struct start *start, unsigned attempt, uint64_t until)
{
	uint64_t pause = CLOCK_SECOND << (attempt > 5 ? 5 : attempt), end, now;

	if (pause > PAUSE_MAXIMUM)
		pause = PAUSE_MAXIMUM;
	/* Half of it by chance, so that many nodes do not come together. */
	pause = pause / 2 + random_below(pause / 2);
	now = clock_monotonic();
	if (now >= until)
		return -1;
	end = until - now < pause ? until : now + pause;
	while (clock_monotonic() < end) {
		if (start->cancel)
			return -1;
		clock_sleep(SLICE);
	}
	return 0;
}

/* The directory, once what was just written has settled. */
static struct view *
look_here(struct start *start, struct error *error)
{
	const struct settings *settings = start->needs.settings;
	uint64_t until = clock_monotonic() + SETTLE, now;
	struct view *view, *later;

	start_say(start, "looking at the directory");
	view = view_take(start->needs.folder, &settings->view, NULL, error);
	while (view != NULL && start->needs.tidy && !start->cancel &&
	    view->check_again != CLOCK_NEVER &&
	    (now = clock_monotonic()) < until) {
		clock_sleep(SLICE);
		if (now < view->check_again)
			continue;
		later = view_take(start->needs.folder, &settings->view, view,
		    error);
		view_free(view);
		view = later;
	}
	return view;
}

static bool
has_complete(const struct view *view)
{
	size_t i;

	for (i = 0; i < view->count; i++)
		if (view->checkpoints[i]->state == CHECKPOINT_COMPLETE)
			return true;
	return false;
}

static int
add_copy(struct checkpoint ***list, size_t *count,
    const struct checkpoint *checkpoint, struct error *error)
{
	struct checkpoint **more, *copy;

	more = reallocarray(*list, *count + 1, sizeof(*more));
	if (more != NULL)
		*list = more;
	if (more == NULL || (copy = checkpoint_copy(checkpoint)) == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
		    checkpoint->name, "out of memory for a checkpoint");
	(*list)[(*count)++] = copy;
	return 0;
}

/* Remember what needs no upload, and whether something does. */
static int
sort_out(struct start *start, const struct inventory *inventory,
    struct error *error)
{
	struct start_result *result = start->result;
	const struct inventory_item *item;
	size_t i;

	result->undurable = false;
	for (i = 0; i < inventory->count; i++) {
		item = &inventory->items[i];
		if (item->standing == INVENTORY_NEWER) {
			result->undurable = true;
			continue;
		}
		if ((item->standing == INVENTORY_KNOWN ?
		    add_copy(&result->known, &result->known_count,
		    item->checkpoint, error) :
		    add_copy(&result->older, &result->older_count,
		    item->checkpoint, error)) != 0)
			return -1;
	}
	return 0;
}

static int
compare_and_tidy(struct start *start, struct view *view,
    const struct opening *opening, struct error *error)
{
	const struct settings *settings = start->needs.settings;
	struct precedence precedence = opening->precedence;
	struct inventory inventory;
	int result;

	start_say(start, "comparing what lies here with the remote");
	if (inventory_take(start->needs.folder, view, opening->truth,
	    &inventory, error) != 0)
		return -1;
	precedence.local_first = (!start->needs.tidy ||
	    settings->no_restore) && precedence.resume != NULL &&
	    !inventory_holds(&inventory, precedence.resume);
	inventory_sort(&inventory, &precedence);
	result = sort_out(start, &inventory, error);
	if (result == 0 && start->needs.tidy)
		result = start_tidy(start, view, opening, &inventory, error);
	inventory_free(&inventory);
	return result;
}

static int
live(struct start *start, struct error *error)
{
	struct opening opening = { 0 };
	struct view *view;
	int result = -1;

	start->result->undurable = true;
	if ((view = look_here(start, error)) == NULL)
		return -1;
	start->result->undurable = has_complete(view);
	start_say(start, "looking at the remote");
	if (opening_run(start, &opening, error) == 0)
		result = compare_and_tidy(start, view, &opening, error);
	opening_end(&opening);
	view_free(view);
	if (result == 0 && start->cancel)
		result = error_set(error, ERROR_FAILED, CAUSE_CANCELLED, NULL,
		    "stopped before it had begun");
	return result;
}

static void *
run(void *context)
{
	struct start *start = context;
	struct start_result *result = start->result;
	struct error ignored = ERROR_INIT;
	json_t *facts;

	if (live(start, &result->error) == 0) {
		error_clear(&result->error);
	} else if (result->writer != NULL && result->error.cause !=
	    CAUSE_UNREACHABLE) {
		facts = json_pack("{s:s}", "outcome", "not started");
		(void)writer_close(result->writer, facts,
		    clock_monotonic() + 5 * CLOCK_SECOND, &ignored);
		json_decref(facts);
	}
	(void)queue_put(start->results, result);
	return NULL;
}

struct start *
start_begin(const struct start_needs *needs, struct error *error)
{
	struct start *start;

	if ((start = calloc(1, sizeof(*start))) == NULL ||
	    (start->result = calloc(1, sizeof(*start->result))) == NULL) {
		free(start);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the start");
		return NULL;
	}
	start->needs = *needs;
	start->doing = "starting";
	pthread_mutex_init(&start->lock, NULL);
	if ((start->result->restored = strdup("")) == NULL ||
	    (start->results = queue_new(1, error)) == NULL ||
	    thread_start(&start->thread, run, start, error) != 0) {
		queue_free(start->results);
		start_result_free(start->result);
		pthread_mutex_destroy(&start->lock);
		free(start);
		return NULL;
	}
	return start;
}

int
start_fd(struct start *start)
{
	return queue_fd(start->results);
}

struct start_result *
start_take(struct start *start)
{
	struct start_result *result = queue_take(start->results, 0);

	if (result != NULL)
		start->result = NULL;
	return result;
}

struct start_progress
start_progress(struct start *start)
{
	struct start_progress progress = { 0 };

	pthread_mutex_lock(&start->lock);
	progress.doing = start->doing;
	if (start->restore != NULL) {
		progress.total = start->restore->progress.total;
		progress.done = start->restore->progress.done;
	}
	pthread_mutex_unlock(&start->lock);
	return progress;
}

void
start_cancel(struct start *start)
{
	pthread_mutex_lock(&start->lock);
	start->cancel = true;
	if (start->restore != NULL)
		start->restore->cancel = true;
	pthread_mutex_unlock(&start->lock);
}

int
start_free(struct start *start, uint64_t until)
{
	if (start == NULL)
		return 0;
	start_cancel(start);
	if (thread_join_until(start->thread, until) != 0)
		return -1;
	start_result_free(start->result);
	queue_free(start->results);
	pthread_mutex_destroy(&start->lock);
	free(start);
	return 0;
}

void
start_result_free(struct start_result *result)
{
	size_t i;

	if (result == NULL)
		return;
	for (i = 0; i < result->known_count; i++)
		checkpoint_free(result->known[i]);
	for (i = 0; i < result->older_count; i++)
		checkpoint_free(result->older[i]);
	free(result->known);
	free(result->older);
	free(result->restored);
	writer_free(result->writer);
	backend_free(result->backend);
	free(result);
}
