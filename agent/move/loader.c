#include "move/loader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sha256.h"
#include "store/backend.h"
#include "move/filler.h"
#include "move/flight.h"
#include "move/jobs.h"
#include "move/staging.h"

#define IN_FLIGHT_DEFAULT 16

/* How often a chunk with the wrong bytes is fetched. */
#define TRIES 2

struct loader {
	struct restore *restore;
	struct filler *filler;
	struct staging *staging;
	struct flight *flight;
	struct load *again;		/* to be started once more */
};

/* One GET on its way.  While it flies, its thread of the backend has it. */
struct load {
	struct flight_request flight;	/* first: the flight knows only this */
	struct loader *loader;
	const struct job *job;
	struct load *next;
	unsigned tries;
	struct sha256 *hash;		/* of the whole chunk */
	struct sha256 **hashes;		/* of places, when not whole */
	uint64_t position;		/* bytes that came */
	size_t first;			/* places before it have all theirs */
	bool wrong;			/* other bytes than promised */
};

static int
damaged(const struct job *job, const char *what, struct error *error)
{
	char id[MANIFEST_ID_SIZE];

	error_set(error, ERROR_DAMAGED, CAUSE_OTHER, job->chunk->key,
	    "checkpoint %s (%s) is damaged: %s", job->manifest->name,
	    manifest_id(job->manifest, id), what);
	return error_cure(error, "use --fallback for the next older "
	    "checkpoint, or --checkpoint to choose one");
}

/* Bytes for one place; ${at} is where ${data} begins in the chunk. */
static int
fill_place(struct load *load, size_t index, uint64_t at, const uint8_t *data,
    size_t length, struct error *error)
{
	const struct job_place *place = &load->job->places[index];
	uint64_t end = place->offset + place->length;
	uint64_t skip = place->offset > at ? place->offset - at : 0;
	uint8_t digest[SHA256_SIZE];
	size_t step;

	if (end <= at || skip >= length)
		return 0;
	step = end - at < length ? (size_t)(end - at - skip) :
	    (size_t)(length - skip);
	if (filler_write(load->loader->filler, place->part,
	    place->file_offset + at + skip - place->offset, data + skip, step,
	    error) == -1)
		return -1;
	if (load->job->whole)
		return 0;
	if (load->hashes[index] == NULL &&
	    (load->hashes[index] = sha256_new(error)) == NULL)
		return -1;
	sha256_add(load->hashes[index], data + skip, step);
	if (at + skip + step < end)
		return 0;
	sha256_end(load->hashes[index], digest);
	sha256_free(load->hashes[index]);
	load->hashes[index] = NULL;
	if (memcmp(digest, place->digest, SHA256_SIZE) != 0)
		load->wrong = true;
	return 0;
}

/* On a thread of the backend. */
static int
sink(void *context, const void *data, size_t length, struct error *error)
{
	struct load *load = context;
	const struct job *job = load->job;
	uint64_t at = job->offset + load->position;
	size_t i;

	if (length > job->length - load->position) {
		load->wrong = true;
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
		    job->chunk->key, "it is longer than it should be");
	}
	if (job->whole)
		sha256_add(load->hash, data, length);
	load->position += length;
	for (i = load->first; i < job->count &&
	    job->places[i].offset < at + length; i++)
		if (fill_place(load, i, at, data, length, error) == -1)
			return -1;
	while (load->first < job->count &&
	    job->places[load->first].offset + job->places[load->first].length
	    <= at + length)
		load->first++;
	return 0;
}

static void
load_free(struct load *load)
{
	size_t i;

	if (load == NULL)
		return;
	sha256_free(load->hash);
	for (i = 0; load->hashes != NULL && i < load->job->count; i++)
		sha256_free(load->hashes[i]);
	free(load->hashes);
	free(load);
}

static struct load *
load_new(struct loader *loader, const struct job *job, struct error *error)
{
	struct load *load;

	if ((load = calloc(1, sizeof(*load))) == NULL)
		goto failed;
	load->loader = loader;
	load->job = job;
	if (job->whole) {
		if ((load->hash = sha256_new(error)) == NULL) {
			load_free(load);
			return NULL;
		}
	} else {
		load->hashes = calloc(job->count, sizeof(*load->hashes));
		if (load->hashes == NULL)
			goto failed;
	}
	return load;

failed:
	load_free(load);
	error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL, "out of memory");
	return NULL;
}

/* What came was not what it should be: NULL when it was. */
static const char *
find_fault(struct load *load)
{
	uint8_t digest[SHA256_SIZE];

	if (load->position != load->job->length)
		return load->wrong ? "a chunk is longer than it should be" :
		    "a chunk is shorter than it should be";
	if (load->job->whole) {
		sha256_end(load->hash, digest);
		if (memcmp(digest, load->job->chunk->digest,
		    SHA256_SIZE) != 0)
			load->wrong = true;
	}
	return load->wrong ? "a chunk does not have the bytes it should" :
	    NULL;
}

/* All bytes of the job are in place. */
static void
succeed(struct load *load)
{
	struct restore *restore = load->loader->restore;
	const struct job_place *place;
	size_t i;

	restore->progress.moved += load->position;
	for (i = 0; i < load->job->count; i++) {
		place = &load->job->places[i];
		restore->progress.done += place->length;
		place->origin->staged = true;
		if (place->digest != NULL)
			staging_note(load->loader->staging, place->digest,
			    place->length);
	}
}

/* A GET has ended. */
static int
landed(void *context, struct flight_request *request, struct error *error)
{
	struct load *load = (struct load *)request;
	const struct error *got = &request->request.error;
	struct loader *loader = context;
	const char *fault = NULL;
	int result = 0;

	if (got->class == ERROR_NONE)
		fault = find_fault(load);
	else if (load->wrong)
		fault = "a chunk is longer than it should be";
	else if (got->cause == CAUSE_NOT_FOUND)
		result = damaged(load->job, "a chunk is gone", error);
	else {
		*error = *got;
		result = error_prefix(error, "checkpoint %s",
		    load->job->manifest->name);
	}
	if (fault != NULL && load->tries < TRIES) {
		log_line(LOG_WARNING, "fetched_again",
		    "%s: %s; it is fetched once more", load->job->chunk->key,
		    fault);
		load->next = loader->again;
		loader->again = load;
		return 0;
	}
	if (fault != NULL)
		result = damaged(load->job, fault, error);
	else if (result == 0)
		succeed(load);
	load_free(load);
	return result;
}

/* Takes ${load} in any case. */
static int
start(struct loader *loader, struct load *load, struct error *error)
{
	const struct job *job = load->job;
	uint8_t digest[SHA256_SIZE];
	size_t i;

	load->tries++;
	load->position = 0;
	load->first = 0;
	load->wrong = false;
	if (load->hash != NULL)
		sha256_end(load->hash, digest);
	for (i = 0; load->hashes != NULL && i < job->count; i++) {
		sha256_free(load->hashes[i]);
		load->hashes[i] = NULL;
	}
	load->flight.request = (struct backend_request){
		.operation = BACKEND_GET,
		.key = job->chunk->key,
		.offset = job->offset,
		.length = job->whole ? 0 : job->length,
		.sink = sink
	};
	if (flight_start(loader->flight, &load->flight, error) == 0)
		return 0;
	load_free(load);
	return -1;
}

static int
start_again(struct loader *loader, struct error *error)
{
	struct load *load;

	while ((load = loader->again) != NULL) {
		loader->again = load->next;
		if (start(loader, load, error) == -1)
			return -1;
	}
	return 0;
}

static int
fetch_all(struct loader *loader, const struct jobs *jobs, struct error *error)
{
	struct load *load;
	size_t i;

	for (i = 0; i < jobs->count; i++) {
		load = load_new(loader, &jobs->all[i], error);
		if (load == NULL || start(loader, load, error) == -1 ||
		    start_again(loader, error) == -1)
			return -1;
	}
	do {
		if (flight_wait(loader->flight, error) == -1)
			return -1;
		if (loader->again == NULL)
			return 0;
	} while (start_again(loader, error) == 0);
	return -1;
}

int
loader_run(struct restore *restore, const struct jobs *jobs,
    struct filler *filler, struct staging *staging, struct error *error)
{
	struct loader loader = {
		.restore = restore, .filler = filler, .staging = staging
	};
	struct flight_options options = {
		.backend = restore->backend,
		.limit = restore->in_flight > 0 ?
		    restore->in_flight : IN_FLIGHT_DEFAULT,
		.cancel = &restore->cancel,
		.landed = landed,
		.context = &loader
	};
	struct load *load;
	int result;

	if ((loader.flight = flight_new(&options, error)) == NULL)
		return -1;
	result = fetch_all(&loader, jobs, error);
	/* What is on its way is not fetched again, unless it has no place. */
	flight_end(loader.flight, result == -1 &&
	    (error->cause == CAUSE_CANCELLED || error->cause == CAUSE_NO_SPACE));
	while ((load = loader.again) != NULL) {
		loader.again = load->next;
		load_free(load);
	}
	flight_free(loader.flight);
	return result;
}
