#include "life/trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "life/batch.h"
#include "store/backend.h"

#define ROUNDS 3
#define SMALL 4096		/* bytes of an object of trial_run */

/* How long a PUT that got no answer is waited for before its DELETE counts. */
#define LATE_TIME CLOCK_SECOND

void
trial_init(struct trial *trial, struct backend *backend,
    const atomic_bool *stop)
{
	*trial = (struct trial){ .backend = backend, .stop = stop };
	snprintf(trial->prefix, sizeof(trial->prefix),
	    TRIAL_PREFIX "%016" PRIx64 "-", random_bits());
}

static void
write_key(const struct trial *trial, size_t number, char key[KEY_SIZE])
{
	snprintf(key, KEY_SIZE, "%s%zu", trial->prefix, number);
}

bool
trial_key(struct trial *trial, char key[KEY_SIZE])
{
	if (trial->count == TRIAL_OBJECTS)
		return false;
	write_key(trial, trial->count++, key);
	return true;
}

static int
count_entry(void *context, const struct backend_entry *entry,
    struct error *error)
{
	(void)entry;
	(void)error;
	++*(size_t *)context;
	return 0;
}

/*
 * Whether an object is there or not, every key that was given is deleted: a
 * PUT without an answer may have worked.
 */
static int
delete_all(struct trial *trial, uint64_t deadline, struct error *error)
{
	struct batch_item *items = calloc(trial->count, sizeof(*items));
	char (*keys)[KEY_SIZE] = calloc(trial->count, sizeof(*keys));
	const struct batch_item *failed;
	int result = 0;

	if (items == NULL || keys == NULL) {
		result = error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		goto out;
	}
	for (size_t i = 0; i < trial->count; i++) {
		write_key(trial, i, keys[i]);
		items[i].request = (struct backend_request){
		    .operation = BACKEND_DELETE, .key = keys[i],
		    .deadline = deadline };
	}
	batch_run(trial->backend, items, trial->count);
	failed = batch_failure(items, trial->count);
	if (failed != NULL) {
		*error = failed->request.error;
		result = -1;
	}
out:
	free(keys);
	free(items);
	return result;
}

int
trial_clear(struct trial *trial, uint64_t deadline, struct error *error)
{
	size_t left = 0;

	if (trial->count == 0)
		return 0;
	if (trial->unanswered)
		clock_sleep(LATE_TIME);
	do {
		if (delete_all(trial, deadline, error) != 0)
			return -1;
		left = 0;
		/* Who may not list must believe what DELETE answers. */
		if (backend_list(trial->backend, trial->prefix, false,
		    count_entry, &left, error) != 0)
			return error->cause == CAUSE_DENIED ? 0 : -1;
	} while (left > 0 && clock_monotonic() < deadline);
	if (left == 0)
		return 0;
	return error_set(error, ERROR_FAILED, CAUSE_OTHER, trial->prefix,
	    "%zu deleted objects are still listed", left);
}

/* One object of trial_run. */
struct round {
	struct trial *trial;
	struct trial_outcome *outcome;
	uint64_t deadline;
	char key[KEY_SIZE];
	unsigned char data[SMALL];
};

static int
round_write(struct round *round, struct error *error)
{
	uint64_t began = clock_monotonic(), took;

	for (size_t i = 0; i < SMALL; i += sizeof(uint64_t)) {
		uint64_t bits = random_bits();

		memcpy(round->data + i, &bits, sizeof(bits));
	}
	round->outcome->failed = "write";
	if (backend_put(round->trial->backend, round->key, round->data, SMALL,
	    round->deadline, error) != 0) {
		round->trial->unanswered = error->cause == CAUSE_UNREACHABLE;
		return -1;
	}
	took = clock_monotonic() - began;
	if (round->outcome->put == 0 || took < round->outcome->put)
		round->outcome->put = took;
	return 0;
}

static int
round_read(struct round *round, struct error *error)
{
	struct buffer buffer;
	int result;

	round->outcome->failed = "read";
	buffer_init(&buffer, 2 * SMALL);
	result = backend_get(round->trial->backend, round->key, &buffer,
	    round->deadline, error);
	if (result == 0 && (buffer.length != SMALL ||
	    memcmp(buffer.data, round->data, SMALL) != 0)) {
		round->outcome->wrong_bytes = true;
		result = error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
		    round->key, "what comes back is not what was written");
	}
	buffer_free(&buffer);
	return result;
}

/* Whether the listing shows the object must be ${there}. */
static int
round_list(struct round *round, bool there, struct error *error)
{
	size_t count = 0;

	round->outcome->failed = "list";
	if (backend_list(round->trial->backend, round->key, false, count_entry,
	    &count, error) != 0)
		return -1;
	if ((count > 0) != there)
		round->outcome->lags = true;
	return 0;
}

static int
round_delete(struct round *round, struct error *error)
{
	struct batch_item item = { .request = { .operation = BACKEND_DELETE,
	    .key = round->key, .deadline = round->deadline } };
	struct error ignored = ERROR_INIT;
	struct buffer buffer;

	round->outcome->failed = "delete";
	batch_run(round->trial->backend, &item, 1);
	if (item.request.error.class != ERROR_NONE) {
		*error = item.request.error;
		return -1;
	}
	buffer_init(&buffer, 2 * SMALL);
	if (backend_get(round->trial->backend, round->key, &buffer,
	    round->deadline, &ignored) == 0)
		round->outcome->lags = true;
	buffer_free(&buffer);
	return 0;
}

int
trial_run(struct trial *trial, uint64_t deadline,
    struct trial_outcome *outcome, struct error *error)
{
	struct round round = { .trial = trial, .outcome = outcome,
	    .deadline = deadline };

	memset(outcome, 0, sizeof(*outcome));
	for (int i = 0; i < ROUNDS && !atomic_load(trial->stop); i++) {
		/* One round says whether it works; a slow server is not asked
		 * again. */
		if (i > 0 && clock_monotonic() + 10 * outcome->put > deadline)
			break;
		if (!trial_key(trial, round.key))
			break;
		if (round_write(&round, error) != 0 ||
		    round_read(&round, error) != 0 ||
		    round_list(&round, true, error) != 0 ||
		    round_delete(&round, error) != 0 ||
		    round_list(&round, false, error) != 0)
			return -1;
	}
	outcome->failed = NULL;
	return 0;
}
