#include "life/uploads.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/queue.h"
#include "life/record.h"
#include "life/settings.h"
#include "life/thread.h"
#include "move/upload.h"
#include "store/writer.h"
#include "watch/view.h"

/* What the loop asks of the thread. */
struct order {
	enum { ORDER_UPLOAD, ORDER_CLOSE } kind;
	const struct checkpoint *checkpoint;
	bool snapshot;
	json_t *facts;
	uint64_t deadline;
	struct uploads_result *result;	/* made by the loop: the thread cannot fail */
};

struct uploads {
	struct uploads_needs needs;
	struct record *record;
	struct queue *orders;
	struct queue *results;
	pthread_t thread;

	/* The one in flight: its atomic fields are shared, the rest belongs to
	 * the thread.  `busy` and `deadline` are under the lock. */
	pthread_mutex_t lock;
	struct upload upload;
	bool busy;
	bool cancelled;		/* asked for before the thread began with it */
	uint64_t deadline;
};

static struct surroundings *
look(void *context, struct error *error)
{
	const struct uploads *uploads = context;

	return view_surroundings(uploads->needs.folder,
	    &uploads->needs.settings->view, error);
}

/* Fill in the next upload; from here on the loop can reach it. */
static void
prepare(struct uploads *uploads, const struct order *order, int folder,
    json_t *environment)
{
	const struct settings *settings = uploads->needs.settings;
	struct upload *upload = &uploads->upload;

	pthread_mutex_lock(&uploads->lock);
	memset(upload, 0, sizeof(*upload));
	upload->backend = uploads->needs.backend;
	upload->writer = uploads->needs.writer;
	upload->folder = folder;
	upload->checkpoint = order->checkpoint;
	upload->look = look;
	upload->look_context = uploads;
	upload->environment = environment;
	upload->companion_limit = settings->companion_limit;
	upload->rate = uploads->needs.rate;
	upload->snapshot = order->snapshot ? UPLOAD_SNAPSHOT :
	    UPLOAD_IN_PLACE;
	upload->spool = settings->spool;
	upload->save_attempt = uploads->needs.save_attempt;
	upload->deadline = uploads->deadline;
	upload->cancel = uploads->cancelled;
	uploads->busy = true;
	pthread_mutex_unlock(&uploads->lock);
}

static void
run_upload(struct uploads *uploads, const struct order *order,
    struct uploads_result *result)
{
	struct upload_outcome outcome = { 0 };
	json_t *environment;
	uint64_t began = clock_monotonic();
	int folder;

	/* Opened anew each time: the directory may have been replaced. */
	folder = open(uploads->needs.folder,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0) {
		error_set_errno(&result->error, errno, uploads->needs.folder,
		    "could not open the directory");
		return;
	}
	environment = record_get(uploads->record);
	prepare(uploads, order, folder, environment);
	if (upload_run(&uploads->upload, &outcome, &result->error) == 0) {
		error_clear(&result->error);
		result->known = outcome.known;
		result->new_bytes = outcome.new_bytes;
		result->reused_bytes = outcome.reused_bytes;
		if (outcome.manifest != NULL)
			manifest_id(outcome.manifest, result->id);
	}
	memcpy(result->how, outcome.snapshot, sizeof(result->how));
	result->how[sizeof(result->how) - 1] = '\0';
	result->snapshot = result->how[0] != '\0';
	result->took = clock_monotonic() - began;
	pthread_mutex_lock(&uploads->lock);
	uploads->busy = false;
	uploads->cancelled = false;
	pthread_mutex_unlock(&uploads->lock);
	json_decref(environment);
	close(folder);
}

static void *
work(void *context)
{
	struct uploads *uploads = context;
	struct uploads_result *result;
	struct order *order;

	while ((order = queue_take(uploads->orders, CLOCK_NEVER)) != NULL) {
		result = order->result;
		if (order->kind == ORDER_UPLOAD) {
			result->kind = UPLOADS_UPLOADED;
			run_upload(uploads, order, result);
		} else {
			result->kind = UPLOADS_CLOSED;
			if (writer_close(uploads->needs.writer, order->facts,
			    order->deadline, &result->error) == 0)
				error_clear(&result->error);
			json_decref(order->facts);
		}
		free(order);
		if (queue_put(uploads->results, result) != 0)
			free(result);
	}
	return NULL;
}

struct uploads *
uploads_start(const struct uploads_needs *needs, struct error *error)
{
	struct uploads *uploads;

	if ((uploads = calloc(1, sizeof(*uploads))) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the uploads");
		return NULL;
	}
	uploads->needs = *needs;
	pthread_mutex_init(&uploads->lock, NULL);
	if ((uploads->orders = queue_new(1, error)) == NULL ||
	    (uploads->results = queue_new(2, error)) == NULL ||
	    (uploads->record = record_start(needs->settings, error)) == NULL ||
	    thread_start(&uploads->thread, work, uploads, error) != 0) {
		queue_free(uploads->orders);
		queue_free(uploads->results);
		(void)record_stop(uploads->record, CLOCK_NEVER / 4);
		pthread_mutex_destroy(&uploads->lock);
		free(uploads);
		return NULL;
	}
	return uploads;
}

static void
give_order(struct uploads *uploads, const struct order *wanted)
{
	struct order *order = malloc(sizeof(*order));

	/* Two small allocations; without them nothing can go on, and the
	 * supervisor starts the agent again. */
	if (order == NULL)
		abort();
	*order = *wanted;
	if ((order->result = calloc(1, sizeof(*order->result))) == NULL)
		abort();
	if (queue_try_put(uploads->orders, order) != 0)
		assert(!"an order while one is in flight");
}

void
uploads_send(struct uploads *uploads, const struct checkpoint *checkpoint,
    bool snapshot)
{
	struct order order = { .kind = ORDER_UPLOAD,
	    .checkpoint = checkpoint, .snapshot = snapshot };

	pthread_mutex_lock(&uploads->lock);
	uploads->cancelled = false;
	pthread_mutex_unlock(&uploads->lock);
	give_order(uploads, &order);
}

void
uploads_close(struct uploads *uploads, json_t *facts, uint64_t deadline)
{
	struct order order = { .kind = ORDER_CLOSE, .facts = facts,
	    .deadline = deadline };

	give_order(uploads, &order);
}

void
uploads_cancel(struct uploads *uploads)
{
	record_hurry(uploads->record);
	pthread_mutex_lock(&uploads->lock);
	uploads->cancelled = true;
	if (uploads->busy)
		uploads->upload.cancel = true;
	pthread_mutex_unlock(&uploads->lock);
}

void
uploads_deadline(struct uploads *uploads, uint64_t when)
{
	record_hurry(uploads->record);
	writer_hurry(uploads->needs.writer, when);
	pthread_mutex_lock(&uploads->lock);
	uploads->deadline = when;
	if (uploads->busy)
		uploads->upload.deadline = when;
	pthread_mutex_unlock(&uploads->lock);
}

struct uploads_progress
uploads_progress(struct uploads *uploads)
{
	struct uploads_progress progress = { 0 };

	pthread_mutex_lock(&uploads->lock);
	if (uploads->busy) {
		progress.total = uploads->upload.progress.total;
		progress.done = uploads->upload.progress.done;
		progress.moved = uploads->upload.progress.moved;
		progress.started = uploads->upload.progress.started;
	}
	pthread_mutex_unlock(&uploads->lock);
	return progress;
}

int
uploads_fd(struct uploads *uploads)
{
	return queue_fd(uploads->results);
}

struct uploads_result *
uploads_next(struct uploads *uploads)
{
	return queue_take(uploads->results, 0);
}

int
uploads_stop(struct uploads *uploads, uint64_t until)
{
	struct uploads_result *result;

	if (uploads == NULL)
		return 0;
	uploads_cancel(uploads);
	queue_close(uploads->orders);
	if (thread_join_until(uploads->thread, until) != 0 ||
	    record_stop(uploads->record, until) != 0)
		return -1;
	while ((result = queue_take(uploads->results, 0)) != NULL)
		free(result);
	queue_free(uploads->orders);
	queue_free(uploads->results);
	pthread_mutex_destroy(&uploads->lock);
	free(uploads);
	return 0;
}
