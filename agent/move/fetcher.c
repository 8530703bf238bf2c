#include "move/fetcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sha256.h"
#include "store/backend.h"
#include "store/manifest.h"
#include "move/flight.h"

#define IN_FLIGHT_DEFAULT 16

/* How often a range with the wrong bytes is fetched. */
#define TRIES 2

struct work {
	const struct fetcher *fetcher;
	struct flight *flight;
	struct load *again;		/* to be started once more */
};

/* One GET on its way.  While it flies, its thread of the backend has it. */
struct load {
	struct flight_request flight;	/* first: the flight knows only this */
	struct work *work;
	const struct range *range;
	struct load *next;
	unsigned tries;
	struct sha256 **hashes;		/* of the proofs that have begun */
	uint64_t position;		/* bytes that came */
	size_t proof;			/* those before it have all theirs */
	size_t portion;
	bool wrong;			/* other bytes than promised */
};

static int
damaged(const struct load *load, const char *what, struct error *error)
{
	const struct manifest *manifest =
	    load->work->fetcher->ranges->manifest;
	char id[MANIFEST_ID_SIZE];

	error_set(error, ERROR_DAMAGED, CAUSE_OTHER, load->range->chunk->key,
	    "checkpoint %s (%s) is damaged: %s", manifest->name,
	    manifest_id(manifest, id), what);
	return error_cure(error, "use --checkpoint to choose another one");
}

/*
 * The part of [${at}, ${at} + *${length}) that lies in [offset, end): moves
 * *${data} to it.  false: none.
 */
static bool
cut(uint64_t at, const uint8_t **data, size_t *length, uint64_t offset,
    uint64_t end)
{
	uint64_t skip = offset > at ? offset - at : 0;

	if (end <= at || skip >= *length)
		return false;
	if (end - at < *length)
		*length = (size_t)(end - at);
	*data += skip;
	*length -= (size_t)skip;
	return true;
}

/* Bytes of one proof; ${at} is where ${data} begins in the chunk. */
static int
prove(struct load *load, size_t index, uint64_t at, const uint8_t *data,
    size_t length, struct error *error)
{
	const struct ranges_proof *proof = &load->range->proofs[index];
	uint64_t end = proof->offset + proof->length;
	uint8_t digest[SHA256_SIZE];

	if (!cut(at, &data, &length, proof->offset, end))
		return 0;
	if (load->hashes[index] == NULL &&
	    (load->hashes[index] = sha256_new(error)) == NULL)
		return -1;
	sha256_add(load->hashes[index], data, length);
	if ((at > proof->offset ? at : proof->offset) + length < end)
		return 0;
	sha256_end(load->hashes[index], digest);
	sha256_free(load->hashes[index]);
	load->hashes[index] = NULL;
	if (memcmp(digest, proof->digest, SHA256_SIZE) != 0)
		load->wrong = true;
	return 0;
}

/* Bytes of one portion. */
static int
hand_over(struct load *load, size_t index, uint64_t at, const uint8_t *data,
    size_t length, struct error *error)
{
	const struct ranges_portion *portion = &load->range->portions[index];
	const struct fetcher *fetcher = load->work->fetcher;

	if (!cut(at, &data, &length, portion->offset,
	    portion->offset + portion->length))
		return 0;
	return fetcher->take(fetcher->context, portion,
	    at > portion->offset ? at - portion->offset : 0, data, length,
	    error);
}

/* On a thread of the backend. */
static int
sink(void *context, const void *data, size_t length, struct error *error)
{
	struct load *load = context;
	const struct range *range = load->range;
	uint64_t at = range->offset + load->position;
	size_t i;

	*load->work->fetcher->fetched += length;
	if (length > range->length - load->position) {
		load->wrong = true;
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
		    range->chunk->key, "it is longer than it should be");
	}
	load->position += length;
	for (i = load->proof; i < range->proof_count &&
	    range->proofs[i].offset < at + length; i++)
		if (prove(load, i, at, data, length, error) == -1)
			return -1;
	for (i = load->portion; i < range->portion_count &&
	    range->portions[i].offset < at + length; i++)
		if (hand_over(load, i, at, data, length, error) == -1)
			return -1;
	while (load->proof < range->proof_count &&
	    range->proofs[load->proof].offset +
	    range->proofs[load->proof].length <= at + length)
		load->proof++;
	while (load->portion < range->portion_count &&
	    range->portions[load->portion].offset +
	    range->portions[load->portion].length <= at + length)
		load->portion++;
	return 0;
}

static void
drop_hashes(struct load *load)
{
	size_t i;

	for (i = 0; i < load->range->proof_count; i++) {
		sha256_free(load->hashes[i]);
		load->hashes[i] = NULL;
	}
}

static void
load_free(struct load *load)
{
	drop_hashes(load);
	free(load->hashes);
	free(load);
}

static struct load *
load_new(struct work *work, const struct range *range, struct error *error)
{
	struct load *load = calloc(1, sizeof(*load));

	if (load != NULL)
		load->hashes = calloc(range->proof_count,
		    sizeof(*load->hashes));
	if (load == NULL || load->hashes == NULL) {
		free(load);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	load->work = work;
	load->range = range;
	return load;
}

/* What came was not what it should be: NULL when it was. */
static const char *
find_fault(const struct load *load)
{
	if (load->position != load->range->length)
		return load->wrong ? "a chunk is longer than it should be" :
		    "a chunk is shorter than it should be";
	return load->wrong ? "a chunk does not have the bytes it should" :
	    NULL;
}

/* A GET has ended. */
static int
landed(void *context, struct flight_request *request, struct error *error)
{
	struct load *load = (struct load *)request;
	const struct error *got = &request->request.error;
	struct work *work = context;
	const struct fetcher *fetcher = work->fetcher;
	const char *fault = NULL;
	int result = 0;

	if (got->class == ERROR_NONE || load->wrong)
		fault = find_fault(load);
	else if (got->cause == CAUSE_NOT_FOUND)
		result = damaged(load, "a chunk is gone", error);
	else {
		*error = *got;
		result = -1;
	}
	if (fault != NULL && load->tries < TRIES) {
		log_line(LOG_WARNING, "fetched_again",
		    "%s: %s; it is fetched once more",
		    load->range->chunk->key, fault);
		load->next = work->again;
		work->again = load;
		return 0;
	}
	if (fault != NULL)
		result = damaged(load, fault, error);
	else if (result == 0 && fetcher->done != NULL)
		result = fetcher->done(fetcher->context, load->range, error);
	load_free(load);
	return result;
}

/* Takes ${load} in any case. */
static int
start(struct work *work, struct load *load, struct error *error)
{
	drop_hashes(load);
	load->tries++;
	load->position = 0;
	load->proof = 0;
	load->portion = 0;
	load->wrong = false;
	load->flight.request = (struct backend_request){
		.operation = BACKEND_GET,
		.key = load->range->chunk->key,
		.offset = load->range->offset,
		.length = load->range->length,
		.sink = sink
	};
	if (flight_start(work->flight, &load->flight, error) == 0)
		return 0;
	load_free(load);
	return -1;
}

static int
start_again(struct work *work, struct error *error)
{
	struct load *load;

	while ((load = work->again) != NULL) {
		work->again = load->next;
		if (start(work, load, error) == -1)
			return -1;
	}
	return 0;
}

static int
fetch_all(struct work *work, struct error *error)
{
	const struct ranges *ranges = work->fetcher->ranges;
	struct load *load;
	size_t i;

	for (i = 0; i < ranges->count; i++) {
		load = load_new(work, &ranges->all[i], error);
		if (load == NULL || start(work, load, error) == -1 ||
		    start_again(work, error) == -1)
			return -1;
	}
	do {
		if (flight_wait(work->flight, error) == -1)
			return -1;
		if (work->again == NULL)
			return 0;
	} while (start_again(work, error) == 0);
	return -1;
}

int
fetcher_run(const struct fetcher *fetcher, struct error *error)
{
	struct work work = { .fetcher = fetcher };
	struct flight_options options = {
		.backend = fetcher->backend,
		.limit = fetcher->in_flight > 0 ? fetcher->in_flight :
		    IN_FLIGHT_DEFAULT,
		.cancel = fetcher->cancel,
		.landed = landed,
		.context = &work
	};
	struct load *load;
	int result;

	if ((work.flight = flight_new(&options, error)) == NULL)
		return -1;
	result = fetch_all(&work, error);
	flight_end(work.flight, result == -1);
	while ((load = work.again) != NULL) {
		work.again = load->next;
		load_free(load);
	}
	flight_free(work.flight);
	return result;
}
