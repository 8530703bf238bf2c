#include "store/writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "store/backend.h"
#include "store/feature.h"
#include "store/opening.h"
#include "store/standing.h"
#include "store/writer_private.h"

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

void
writer_supersede(struct writer *writer, const struct error *error)
{
	writer->superseded = true;
	writer->superseded_error = *error;
	deletion_clear(&writer->deletions);
	writer->planned_before = 0;
	writer->sweep_wanted = false;
}

void
writer_retire(struct writer *writer, struct manifest *manifest)
{
	struct manifest **place;

	place = &writer->retired[writer->retired_count++ % WRITER_RETIRED];
	manifest_free(*place);
	*place = manifest;
}

size_t
writer_item_of(const struct writer *writer, const struct key_parts *parts)
{
	char key[KEY_SIZE];
	size_t i;

	key_manifest(&parts->term, parts->attempt, parts->digest, key);
	for (i = 0; i < writer->count; i++) {
		if (strcmp(writer->items[i].manifest->key, key) == 0)
			return i;
	}
	return SIZE_MAX;
}

/*
 * The item for ${manifest} (taken over) as it was adopted.  What was our own
 * commit before we took over from ourselves stays our own, so that a trainer
 * that was rolled back goes on from where it is.
 */
static struct writer_item
adopt_item(struct writer *writer, struct manifest *manifest, bool resume)
{
	struct writer_item item = { .manifest = manifest, .adopted = true };
	size_t i;

	for (i = 0; i < writer->count; i++) {
		struct manifest *known = writer->items[i].manifest;

		if (known == NULL || strcmp(known->key, manifest->key) != 0)
			continue;
		/* The same one: others may be looking at the old copy. */
		item.manifest = known;
		item.adopted = writer->items[i].adopted;
		writer->items[i].manifest = NULL;
		manifest_free(manifest);
		break;
	}
	if (i == writer->count && term_same(&manifest->term, &writer->term))
		item.adopted = false;
	item.resume = item.adopted && resume;
	return item;
}

static void
settle_chunk(void *context, struct known_chunk *chunk)
{
	(void)context;
	chunk->own = false;
	chunk->leftover = false;
	chunk->planned = false;
}

static int
add_leftovers(struct writer *writer, const struct takeover *takeover)
{
	struct known_chunk *chunk;
	size_t i;

	for (i = 0; i < takeover->leftover_count; i++) {
		const struct takeover_leftover *leftover =
		    &takeover->leftovers[i];

		chunk = known_add(writer->known, &takeover->glance.term,
		    leftover->attempt, leftover->digest, leftover->size);
		if (chunk == NULL)
			return -1;
		chunk->leftover = true;
	}
	return 0;
}

/* All manifests of ${glance} are named, or none. */
static int
name_all(struct writer *writer, const struct glance *glance)
{
	size_t i;

	for (i = 0; i < glance->count; i++) {
		if (known_name(writer->known, glance->valid[i]) == 0)
			continue;
		while (i > 0)
			known_unname(writer->known, glance->valid[--i]);
		return -1;
	}
	return 0;
}

int
writer_install(struct writer *writer, struct takeover *takeover,
    struct error *error)
{
	struct glance *glance = &takeover->glance;
	struct writer_item *items = calloc(glance->count + 1, sizeof(*items));
	size_t i;

	if (items == NULL || name_all(writer, glance) != 0) {
		free(items);
		return no_memory(error);
	}
	for (i = 0; i < writer->count; i++)
		known_unname(writer->known, writer->items[i].manifest);
	writer->resume = SIZE_MAX;
	for (i = 0; i < glance->count; i++) {
		size_t at = glance->count - 1 - i;	/* newest comes first */

		items[i] = adopt_item(writer, glance->valid[at],
		    at == glance->resume);
		if (at == glance->resume)
			writer->resume = i;
		if (items[i].manifest->target != 0)
			writer->target = items[i].manifest->target;
	}
	for (i = 0; i < writer->count; i++) {
		if (writer->items[i].manifest != NULL)
			writer_retire(writer, writer->items[i].manifest);
	}
	free(writer->items);
	writer->items = items;
	writer->count = glance->count;
	writer->capacity = glance->count + 1;
	glance->count = 0;
	writer->term = takeover->term;
	/* What was planned before is found again by the next sweep. */
	deletion_clear(&writer->deletions);
	writer->planned_before = 0;
	writer->sweep_wanted = false;
	writer->durable = false;
	writer->salvage |= glance->lost.count > 0;
	known_each(writer->known, settle_chunk, NULL);
	return add_leftovers(writer, takeover) == 0 ? 0 : no_memory(error);
}

static struct writer *
writer_new(struct backend *backend, const struct writer_options *options)
{
	struct writer *writer = calloc(1, sizeof(*writer));

	if (writer == NULL)
		return NULL;
	pthread_mutex_init(&writer->mutex, NULL);
	pthread_mutex_init(&writer->own.mutex, NULL);
	writer->backend = backend;
	writer->node = options->node;
	writer->nodes = options->nodes;
	writer->rules = options->rules;
	writer->delete_delay = options->delete_delay;
	writer->identity = json_incref(options->identity);
	writer->resume = SIZE_MAX;
	writer->next_attempt = 1;
	writer->known = known_new();
	if (writer->known == NULL) {
		writer_free(writer);
		return NULL;
	}
	return writer;
}

struct writer *
writer_take_over(struct backend *backend, const struct writer_options *options,
    uint64_t deadline, struct error *error)
{
	struct writer *writer = writer_new(backend, options);
	struct takeover_request request = { .backend = backend,
		.node = options->node, .nodes = options->nodes,
		.identity = options->identity, .deadline = deadline };
	struct takeover takeover;
	int result;

	if (writer == NULL) {
		no_memory(error);
		return NULL;
	}
	request.own = &writer->own;
	result = takeover_run(&request, &takeover, error);
	if (result == 0) {
		result = writer_install(writer, &takeover, error);
		takeover_free(&takeover);
	}
	if (result == 0)
		return writer;
	writer_free(writer);
	return NULL;
}

struct term
writer_term(struct writer *writer)
{
	struct term term;

	pthread_mutex_lock(&writer->mutex);
	term = writer->term;
	pthread_mutex_unlock(&writer->mutex);
	return term;
}

uint64_t
writer_target(struct writer *writer)
{
	uint64_t target;

	pthread_mutex_lock(&writer->mutex);
	target = writer->target;
	pthread_mutex_unlock(&writer->mutex);
	return target;
}

void
writer_valid(struct writer *writer, int (*visit)(void *context,
    const struct manifest *manifest, bool adopted, bool resume), void *context)
{
	size_t i;

	pthread_mutex_lock(&writer->mutex);
	for (i = 0; i < writer->count; i++) {
		if (visit(context, writer->items[i].manifest,
		    writer->items[i].adopted, i == writer->resume) == -1)
			break;
	}
	pthread_mutex_unlock(&writer->mutex);
}

uint64_t
writer_begin(struct writer *writer)
{
	struct attempt *attempt;
	uint64_t number;

	pthread_mutex_lock(&writer->mutex);
	number = writer->next_attempt++;
	assert(number <= KEY_ATTEMPT_MAXIMUM);
	/* Without memory it is unknown later, and refused there. */
	attempt = attempt_new(number, &writer->term);
	if (attempt != NULL) {
		attempt->next = writer->attempts;
		writer->attempts = attempt;
	}
	pthread_mutex_unlock(&writer->mutex);
	return number;
}

bool
writer_find(struct writer *writer, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE], uint64_t length,
    struct writer_place *place)
{
	struct known_chunk *chunk;
	struct attempt *flight;
	bool found = false;

	pthread_mutex_lock(&writer->mutex);
	flight = attempt_find(writer->attempts, attempt);
	chunk = flight == NULL ? NULL :
	    known_find(writer->known, digest, length, &place->offset);
	if (chunk != NULL && attempt_hold(flight, chunk) == 0) {
		key_chunk(&chunk->term, chunk->attempt, chunk->digest,
		    place->key);
		place->size = chunk->size;
		memcpy(place->digest, chunk->digest, SHA256_SIZE);
		place->whole = chunk->size == length;
		found = true;
	}
	pthread_mutex_unlock(&writer->mutex);
	return found;
}

char *
writer_chunk_key(struct writer *writer, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE], char key[KEY_SIZE])
{
	struct attempt *flight;
	struct term term;

	pthread_mutex_lock(&writer->mutex);
	flight = attempt_find(writer->attempts, attempt);
	term = flight == NULL ? writer->term : flight->term;
	pthread_mutex_unlock(&writer->mutex);
	return key_chunk(&term, attempt, digest, key);
}

int
writer_stored(struct writer *writer, uint64_t attempt,
    const uint8_t digest[SHA256_SIZE], uint64_t size)
{
	struct known_chunk *chunk = NULL;
	struct attempt *flight;
	int result = -1;

	pthread_mutex_lock(&writer->mutex);
	flight = attempt_find(writer->attempts, attempt);
	if (flight != NULL)
		chunk = known_add(writer->known, &flight->term, attempt,
		    digest, size);
	if (chunk != NULL) {
		if (term_same(&chunk->term, &writer->term))
			chunk->own = true;
		else
			chunk->leftover = true;
		result = attempt_hold(flight, chunk);
	}
	pthread_mutex_unlock(&writer->mutex);
	return result;
}

void
writer_end(struct writer *writer, uint64_t attempt)
{
	struct attempt *flight;

	pthread_mutex_lock(&writer->mutex);
	flight = attempt_find(writer->attempts, attempt);
	if (flight != NULL) {
		attempt_remove(&writer->attempts, flight);
		if (flight->sent) {
			flight->next = writer->ghosts;
			writer->ghosts = flight;
		} else {
			attempt_free(flight);
		}
	}
	pthread_mutex_unlock(&writer->mutex);
}

const struct manifest *
writer_known(struct writer *writer, const struct manifest *manifest)
{
	const struct manifest *found = NULL;
	size_t i;

	pthread_mutex_lock(&writer->mutex);
	for (i = writer->count; i > 0 && found == NULL; i--) {
		if (strcmp(writer->items[i - 1].manifest->name,
		    manifest->name) == 0)
			found = writer->items[i - 1].manifest;
	}
	if (found != NULL && !manifest_same_content(found, manifest))
		found = NULL;
	pthread_mutex_unlock(&writer->mutex);
	return found;
}

int
writer_check(struct writer *writer, struct error *error)
{
	struct opening *newer;
	struct term term, claim;
	enum standing standing;
	int result = 0;

	pthread_mutex_lock(&writer->mutex);
	term = writer->term;
	if (writer->superseded)
		*error = writer->superseded_error;
	result = writer->superseded ? -1 : 0;
	pthread_mutex_unlock(&writer->mutex);
	if (result != 0)
		return -1;
	standing = standing_look(writer->backend, &term, &claim, &newer,
	    error);
	if (standing == STANDING_FAILED)
		return -1;
	if (standing != STANDING_SUPERSEDED)
		return 0;
	pthread_mutex_lock(&writer->mutex);
	/* Meanwhile we may have taken over from ourselves. */
	if (term_same(&writer->term, &term) && !(newer != NULL &&
	    takeover_own_holds(&writer->own, &newer->term))) {
		result = standing_say(newer, error);
		writer_supersede(writer, error);
	}
	pthread_mutex_unlock(&writer->mutex);
	opening_free(newer);
	return result;
}

bool
writer_is_weak(struct writer *writer)
{
	return writer->backend->weak;
}

void
writer_hurry(struct writer *writer, uint64_t when)
{
	atomic_store(&writer->hurry, when);
}

int
writer_close(struct writer *writer, json_t *facts, uint64_t deadline,
    struct error *error)
{
	struct term term = writer_term(writer);
	json_t *object = json_object();
	char key[KEY_SIZE], *text = NULL;
	int failed = 0, result = -1;

	failed |= json_set_u64(object, "format", MANIFEST_FORMAT);
	failed |= feature_write(object);
	failed |= json_set_time(object, "time", clock_wall());
	if (facts != NULL)
		failed |= json_object_update_missing(object, facts);
	if (failed == 0)
		text = json_dumps(object, JSON_COMPACT);
	if (text == NULL)
		no_memory(error);
	else
		result = backend_put(writer->backend,
		    key_term_object(&term, "close.json", key), text,
		    strlen(text), deadline, error);
	free(text);
	json_decref(object);
	return result;
}

static void
free_attempts(struct attempt *list)
{
	struct attempt *next;

	for (; list != NULL; list = next) {
		next = list->next;
		attempt_free(list);
	}
}

void
writer_free(struct writer *writer)
{
	size_t i;

	if (writer == NULL)
		return;
	free_attempts(writer->attempts);
	free_attempts(writer->ghosts);
	for (i = 0; i < writer->count; i++)
		manifest_free(writer->items[i].manifest);
	for (i = 0; i < WRITER_RETIRED; i++)
		manifest_free(writer->retired[i]);
	free(writer->items);
	deletion_clear(&writer->deletions);
	known_free(writer->known);
	json_decref(writer->identity);
	pthread_mutex_destroy(&writer->own.mutex);
	pthread_mutex_destroy(&writer->mutex);
	free(writer);
}
