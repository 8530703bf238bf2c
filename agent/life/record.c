#include "life/record.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"
#include "life/settings.h"
#include "life/thread.h"
#include "store/environment.h"

struct record {
	const struct settings *settings;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool running;		/* there is a thread to join */

	/* Under the lock. */
	bool ready;
	bool hurry;
	json_t *object;
};

static void *
gather(void *context)
{
	struct record *record = context;
	struct environment_options options = {
		.command = record->settings->command,
		.shell_command = record->settings->shell_command,
	};
	json_t *object = environment_gather(&options);

	pthread_mutex_lock(&record->lock);
	record->object = object;
	record->ready = true;
	pthread_cond_broadcast(&record->changed);
	pthread_mutex_unlock(&record->lock);
	return NULL;
}

struct record *
record_start(const struct settings *settings, struct error *error)
{
	struct record *record;

	if ((record = calloc(1, sizeof(*record))) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for the environment record");
		return NULL;
	}
	record->settings = settings;
	pthread_mutex_init(&record->lock, NULL);
	pthread_cond_init(&record->changed, NULL);
	if (settings->no_environment) {
		record->ready = true;
	} else if (thread_start(&record->thread, gather, record, error) != 0) {
		(void)record_stop(record, 0);
		return NULL;
	} else {
		record->running = true;
	}
	return record;
}

json_t *
record_get(struct record *record)
{
	json_t *object;

	pthread_mutex_lock(&record->lock);
	while (!record->ready && !record->hurry)
		pthread_cond_wait(&record->changed, &record->lock);
	object = json_incref(record->object);
	pthread_mutex_unlock(&record->lock);
	return object;
}

void
record_hurry(struct record *record)
{
	pthread_mutex_lock(&record->lock);
	record->hurry = true;
	pthread_cond_broadcast(&record->changed);
	pthread_mutex_unlock(&record->lock);
}

int
record_stop(struct record *record, uint64_t until)
{
	if (record == NULL)
		return 0;
	if (record->running && thread_join_until(record->thread, until) != 0)
		return -1;
	json_decref(record->object);
	pthread_cond_destroy(&record->changed);
	pthread_mutex_destroy(&record->lock);
	free(record);
	return 0;
}
