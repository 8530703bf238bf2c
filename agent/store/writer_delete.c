#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/backend.h"
#include "store/terms.h"
#include "store/writer_private.h"

/* DELETEs sent by one call. */
#define BATCH 1000

/* Keys that one sweep plans in a term; the next one finds the rest. */
#define SWEEP_MAXIMUM 100000

/* When to try again what the store did not answer. */
#define RETRY_AFTER (30 * CLOCK_SECOND)

static bool
is_older(const struct writer *writer, const struct key_parts *parts)
{
	return parts->term.number < writer->term.number;
}

/* Without memory it is not planned: a later sweep finds it. */
static void
plan_at(struct writer *writer, const struct key_parts *parts, uint64_t due)
{
	struct known_chunk *chunk = parts->kind != KEY_CHUNK ? NULL :
	    known_get(writer->known, &parts->term, parts->attempt,
	    parts->digest);

	if (deletion_add(&writer->deletions, parts, due) != 0)
		return;
	writer->planned_before += is_older(writer, parts);
	if (chunk != NULL)
		chunk->planned = true;
}

void
writer_plan(struct writer *writer, const struct key_parts *parts)
{
	if (writer->salvage && is_older(writer, parts))
		return;
	if (!writer->backend->weak)
		plan_at(writer, parts,
		    clock_monotonic() + writer->delete_delay);
}

static struct key_parts
parts_of(const struct known_chunk *chunk)
{
	struct key_parts parts = { .kind = KEY_CHUNK, .term = chunk->term,
		.attempt = chunk->attempt };

	memcpy(parts.digest, chunk->digest, SHA256_SIZE);
	return parts;
}

/* Rule G1 for one chunk. */
static void
plan_chunk(void *context, struct known_chunk *chunk)
{
	struct writer *writer = context;
	struct key_parts parts = parts_of(chunk);

	if (chunk->valid > 0 || chunk->users > 0 || chunk->planned ||
	    chunk->sent)
		return;
	/* A cut upload's chunks wait for the sweep. */
	if (chunk->own ? chunk->attempt > writer->committed : chunk->leftover)
		return;
	writer_plan(writer, &parts);
}

/* The key of the manifest that ${attempt} sent. */
static struct key_parts
manifest_of(const struct attempt *attempt)
{
	struct key_parts parts = { .kind = KEY_MANIFEST,
		.term = attempt->manifest_term,
		.attempt = attempt->manifest_attempt };

	memcpy(parts.digest, attempt->manifest_digest, SHA256_SIZE);
	return parts;
}

void
writer_plan_all(struct writer *writer)
{
	struct attempt *ghost;
	struct key_parts parts;

	while ((ghost = writer->ghosts) != NULL) {
		attempt_remove(&writer->ghosts, ghost);
		parts = manifest_of(ghost);
		if (writer_item_of(writer, &parts) == SIZE_MAX)
			writer_plan(writer, &parts);
		attempt_free(ghost);
	}
	if (writer->backend->weak)
		return;
	known_each(writer->known, plan_chunk, writer);
	if (!writer->durable && !writer->salvage)
		writer->sweep_wanted = true;
	writer->durable = true;
}

/* Whether ${list} has an attempt that writes chunks or a manifest there. */
static bool
is_in_flight(const struct attempt *list, const struct key_parts *parts)
{
	struct key_parts manifest;

	for (; list != NULL; list = list->next) {
		if (parts->kind == KEY_CHUNK &&
		    list->number == parts->attempt &&
		    term_same(&list->term, &parts->term))
			return true;
		manifest = manifest_of(list);
		if (parts->kind == KEY_MANIFEST && list->sent &&
		    manifest.attempt == parts->attempt &&
		    term_same(&manifest.term, &parts->term))
			return true;
	}
	return false;
}

/* With the lock held: whether nothing valid and no upload names ${parts}. */
static bool
may_delete(struct writer *writer, const struct key_parts *parts)
{
	const struct known_chunk *chunk;

	switch (parts->kind) {
	case KEY_CHUNK:
		chunk = known_get(writer->known, &parts->term, parts->attempt,
		    parts->digest);
		if (chunk != NULL && (chunk->valid > 0 || chunk->users > 0))
			return false;
		/* Its PUT may be on its way. */
		return !is_in_flight(writer->attempts, parts) &&
		    !is_in_flight(writer->ghosts, parts);
	case KEY_MANIFEST:
		return writer_item_of(writer, parts) == SIZE_MAX &&
		    !is_in_flight(writer->attempts, parts) &&
		    !is_in_flight(writer->ghosts, parts);
	case KEY_CLAIM:
	case KEY_OPEN:
	case KEY_CLOSE:
		return is_older(writer, parts);
	case KEY_TERM:
	case KEY_OTHER:
		break;
	}
	return false;
}

/* Deletes that are sent together. */
struct batch {
	struct key_parts parts[BATCH];
	char keys[BATCH][KEY_SIZE];
	const char *names[BATCH];
	size_t count;
};

/* With the lock held: take what is due; from here on it counts as sent. */
static void
fill_batch(struct writer *writer, struct batch *batch)
{
	struct deletion deletion;
	struct known_chunk *chunk;
	bool allowed;

	while (batch->count < BATCH && deletion_due(&writer->deletions,
	    clock_monotonic(), &deletion)) {
		const struct key_parts *parts = &deletion.parts;

		writer->planned_before -= is_older(writer, parts);
		allowed = may_delete(writer, parts);
		chunk = parts->kind != KEY_CHUNK ? NULL :
		    known_get(writer->known, &parts->term, parts->attempt,
		    parts->digest);
		if (chunk != NULL) {
			chunk->planned = false;
			chunk->sent |= allowed;
		}
		if (!allowed)
			continue;
		batch->parts[batch->count] = *parts;
		batch->names[batch->count] = deletion_key(parts,
		    batch->keys[batch->count]);
		batch->count++;
	}
}

/* With the lock held: what was sent is gone, or has to be sent again. */
static void
settle_batch(struct writer *writer, const struct batch *batch, bool gone)
{
	struct known_chunk *chunk;
	size_t i;

	for (i = 0; i < batch->count; i++) {
		const struct key_parts *parts = &batch->parts[i];

		if (!gone) {
			plan_at(writer, parts, clock_monotonic() + RETRY_AFTER);
			continue;
		}
		/* What is left of an older term may be empty now. */
		writer->sweep_wanted |= is_older(writer, parts);
		if (parts->kind != KEY_CHUNK)
			continue;
		chunk = known_get(writer->known, &parts->term, parts->attempt,
		    parts->digest);
		if (chunk != NULL)
			known_forget(writer->known, chunk);
	}
}

static int
send_batch(struct writer *writer, struct batch *batch, struct error *error)
{
	int result = 0;

	pthread_mutex_lock(&writer->mutex);
	if (!writer->superseded)
		fill_batch(writer, batch);
	pthread_mutex_unlock(&writer->mutex);
	if (batch->count == 0)
		return 0;
	result = backend_remove(writer->backend, batch->names, batch->count,
	    error);
	pthread_mutex_lock(&writer->mutex);
	settle_batch(writer, batch, result == 0);
	pthread_mutex_unlock(&writer->mutex);
	return result == 0 ? (int)batch->count : -1;
}

/* What lies in one older term. */
struct findings {
	struct deletions keys;
	bool content;		/* chunks or manifests */
};

static int
find(void *context, const struct backend_entry *entry, struct error *error)
{
	struct findings *findings = context;
	struct key_parts parts;

	key_parse(entry->key, &parts);
	if (parts.kind == KEY_OTHER || parts.kind == KEY_TERM)
		return 0;
	findings->content |= parts.kind == KEY_CHUNK ||
	    parts.kind == KEY_MANIFEST;
	if (findings->keys.count < SWEEP_MAXIMUM &&
	    deletion_add(&findings->keys, &parts, 0) != 0)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, entry->key,
		    "out of memory");
	return 0;
}

/*
 * With the lock held: plan what nothing valid names (G4).  The claim and the
 * open.json of a term go last, when nothing else is left there.
 */
static void
plan_findings(struct writer *writer, struct findings *findings)
{
	struct known_chunk *chunk;
	struct deletion deletion;

	while (deletion_due(&findings->keys, CLOCK_NEVER, &deletion)) {
		const struct key_parts *parts = &deletion.parts;
		bool content = parts->kind == KEY_CHUNK ||
		    parts->kind == KEY_MANIFEST;

		if (content != findings->content ||
		    !is_older(writer, parts) || !may_delete(writer, parts))
			continue;
		if (parts->kind == KEY_CHUNK) {
			/* Known from now on, so that it is planned once. */
			chunk = known_add(writer->known, &parts->term,
			    parts->attempt, parts->digest, 1);
			if (chunk == NULL || chunk->planned)
				continue;
		}
		writer_plan(writer, parts);
	}
}

static int
sweep_term(struct writer *writer, const struct term *own,
    const struct term *term, struct error *error)
{
	struct findings findings = { .content = false };
	char prefix[KEY_SIZE];
	int result;

	result = backend_list(writer->backend, key_term(term, prefix), false,
	    find, &findings, error);
	pthread_mutex_lock(&writer->mutex);
	if (result == 0 && !writer->superseded &&
	    term_same(&writer->term, own))
		plan_findings(writer, &findings);
	pthread_mutex_unlock(&writer->mutex);
	deletion_clear(&findings.keys);
	return result;
}

/* G4: look through the older terms. */
static int
sweep(struct writer *writer, struct error *error)
{
	struct term own = writer_term(writer);
	struct terms terms;
	int result;
	size_t i;

	result = terms_list(writer->backend, writer->node, &terms, error);
	for (i = 0; result == 0 && i < terms.count; i++) {
		if (terms.items[i].number < own.number)
			result = sweep_term(writer, &own, &terms.items[i],
			    error);
	}
	terms_free(&terms);
	if (result == 0)
		return 0;
	pthread_mutex_lock(&writer->mutex);
	writer->sweep_wanted = !writer->superseded;
	writer->sweep_from = clock_monotonic() + RETRY_AFTER;
	pthread_mutex_unlock(&writer->mutex);
	return -1;
}

/* With the lock held. */
static bool
sweep_is_due(const struct writer *writer)
{
	return writer->sweep_wanted && writer->planned_before == 0 &&
	    clock_monotonic() >= writer->sweep_from;
}

int
writer_delete_due(struct writer *writer, struct error *error)
{
	struct batch *batch;
	bool go, look = false;
	int result;

	pthread_mutex_lock(&writer->mutex);
	go = !writer->superseded && !writer->deleting &&
	    !writer->backend->weak;
	if (go)
		writer->deleting = true;
	pthread_mutex_unlock(&writer->mutex);
	if (!go)
		return 0;
	batch = calloc(1, sizeof(*batch));
	result = batch == NULL ? error_set(error, ERROR_FAILED, CAUSE_MEMORY,
	    NULL, "out of memory") : send_batch(writer, batch, error);
	free(batch);
	pthread_mutex_lock(&writer->mutex);
	if (result == 0 && sweep_is_due(writer)) {
		writer->sweep_wanted = false;
		look = true;
	}
	pthread_mutex_unlock(&writer->mutex);
	if (look && sweep(writer, error) != 0)
		result = -1;
	pthread_mutex_lock(&writer->mutex);
	writer->deleting = false;
	pthread_mutex_unlock(&writer->mutex);
	return result;
}

uint64_t
writer_next_delete(struct writer *writer)
{
	uint64_t next;

	pthread_mutex_lock(&writer->mutex);
	next = deletion_next(&writer->deletions);
	if (writer->sweep_wanted && writer->planned_before == 0 &&
	    writer->sweep_from < next)
		next = writer->sweep_from;
	pthread_mutex_unlock(&writer->mutex);
	return next;
}
