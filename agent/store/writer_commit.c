#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "store/backend.h"
#include "store/opening.h"
#include "store/standing.h"
#include "store/writer_private.h"

/* One commit on its way (writer_commit). */
struct commit {
	struct writer *writer;
	struct attempt *flight;
	struct manifest *manifest;
	const struct writer_directory *directory;
	uint64_t deadline;
	struct error *error;
};

static int
no_memory(const struct commit *commit)
{
	return error_set(commit->error, ERROR_FAILED, CAUSE_MEMORY,
	    commit->manifest->name, "out of memory");
}

/* C1: every chunk must be stored, and stay. */
static int
hold_chunks(const struct commit *commit)
{
	const struct manifest *manifest = commit->manifest;
	struct known_chunk *chunk;
	struct key_parts parts;
	size_t i;

	for (i = 0; i < manifest->chunk_count; i++) {
		key_parse(manifest->chunks[i].key, &parts);
		chunk = parts.kind != KEY_CHUNK ? NULL :
		    known_get(commit->writer->known, &parts.term,
		    parts.attempt, parts.digest);
		if (chunk == NULL || (!known_may_use(chunk) &&
		    !attempt_holds(commit->flight, chunk)))
			return error_set(commit->error, ERROR_FAILED,
			    CAUSE_OTHER, manifest->chunks[i].key,
			    "%s names a chunk that is not known to be stored",
			    manifest->name);
		if (attempt_hold(commit->flight, chunk) != 0)
			return no_memory(commit);
	}
	return 0;
}

static bool
is_among(const char *name, const char *const *names, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/* What retention looks at: the valid ones and, last, the one that comes. */
static struct retention_item *
make_items(const struct commit *commit)
{
	const struct writer_directory *directory = commit->directory;
	const struct writer *writer = commit->writer;
	struct retention_item *items;
	size_t count = writer->count + 1, i, j;

	items = calloc(count, sizeof(*items));
	if (items == NULL)
		return NULL;
	for (i = 0; i < writer->count; i++) {
		items[i].manifest = writer->items[i].manifest;
		items[i].adopted = writer->items[i].adopted;
		items[i].resume = writer->items[i].resume;
	}
	items[writer->count].manifest = commit->manifest;
	for (i = 0; i < count; i++) {
		const char *name = items[i].manifest->name;

		for (j = i + 1; j < count; j++) {
			if (strcmp(items[j].manifest->name, name) == 0)
				break;
		}
		if (j < count)
			continue;	/* an older version of its name */
		items[i].present = is_among(name, directory->present,
		    directory->present_count);
		items[i].pointed = is_among(name, directory->pointed,
		    directory->pointed_count);
	}
	return items;
}

static void
clear_truth(struct manifest *manifest)
{
	size_t i;

	for (i = 0; i < manifest->keep_count; i++) {
		free(manifest->keeps[i].key);
		free(manifest->keeps[i].name);
	}
	free(manifest->keeps);
	free(manifest->resume);
	manifest->keeps = NULL;
	manifest->keep_count = 0;
	manifest->resume = NULL;
}

/* The manifest's keeps, newest first, and its resume point. */
static int
set_truth(const struct commit *commit, const struct retention_item *items,
    size_t count)
{
	struct manifest *manifest = commit->manifest;
	size_t i, resume = retention_resume(items, count);

	clear_truth(manifest);
	manifest->keeps = calloc(count, sizeof(*manifest->keeps));
	if (manifest->keeps == NULL)
		return no_memory(commit);
	for (i = count - 1; i > 0; i--) {
		const struct manifest *kept = items[i - 1].manifest;
		struct manifest_keep *keep;

		if (!items[i - 1].keep)
			continue;
		keep = &manifest->keeps[manifest->keep_count++];
		keep->key = strdup(kept->key);
		keep->name = strdup(kept->name);
		if (keep->key == NULL || keep->name == NULL)
			return no_memory(commit);
	}
	if (resume == SIZE_MAX)
		return 0;
	manifest->resume = strdup(resume == count - 1 ? "" :
	    items[resume].manifest->key);
	return manifest->resume != NULL ? 0 : no_memory(commit);
}

/* Room for one item more, so that a commit that is durable cannot fail. */
static int
make_room(const struct commit *commit)
{
	struct writer *writer = commit->writer;
	size_t capacity = writer->capacity * 2 + 4;
	struct writer_item *items;

	if (writer->count < writer->capacity)
		return 0;
	items = realloc(writer->items, capacity * sizeof(*items));
	if (items == NULL)
		return no_memory(commit);
	writer->items = items;
	writer->capacity = capacity;
	return 0;
}

/*
 * A manifest of this attempt was sent under a number that no longer comes
 * last: remember it, to be deleted, and take a new number.
 */
static int
leave_ghost(const struct commit *commit)
{
	struct attempt *flight = commit->flight, *ghost;

	ghost = attempt_new(flight->number, &flight->term);
	if (ghost == NULL)
		return no_memory(commit);
	ghost->sent = true;
	ghost->manifest_term = flight->manifest_term;
	ghost->manifest_attempt = flight->manifest_attempt;
	memcpy(ghost->manifest_digest, flight->manifest_digest, SHA256_SIZE);
	ghost->next = commit->writer->ghosts;
	commit->writer->ghosts = ghost;
	flight->sent = false;
	return 0;
}

/* Decide retention and fill in what only the writer knows. */
static int
fill(const struct commit *commit)
{
	struct writer *writer = commit->writer;
	struct manifest *manifest = commit->manifest;
	struct retention_item *items;
	int result = -1;

	if (commit->flight->sent && leave_ghost(commit) != 0)
		return -1;
	manifest->term = writer->term;
	manifest->attempt = commit->flight->number;
	if (manifest->attempt <= writer->committed)
		manifest->attempt = writer->next_attempt++;
	manifest->nodes = writer->nodes;
	manifest->committed = clock_wall();
	items = make_items(commit);
	if (items == NULL)
		return no_memory(commit);
	retention_decide(items, writer->count + 1, &writer->rules);
	result = set_truth(commit, items, writer->count + 1);
	free(items);
	return result;
}

/* Whether the manifest that was sent before can be sent again as it is. */
static bool
is_again(const struct commit *commit)
{
	const struct attempt *flight = commit->flight;
	const struct manifest *manifest = commit->manifest;

	return flight->sent && manifest->key != NULL &&
	    term_same(&flight->manifest_term, &commit->writer->term) &&
	    flight->manifest_attempt == manifest->attempt &&
	    memcmp(flight->manifest_digest, manifest->digest,
	    SHA256_SIZE) == 0 &&
	    manifest->attempt > commit->writer->committed;
}

static int
write_manifest(const struct commit *commit, struct buffer *buffer)
{
	struct manifest *manifest = commit->manifest;
	struct attempt *flight = commit->flight;
	char key[KEY_SIZE];

	if (manifest_write(manifest, buffer, commit->error) != 0)
		return -1;
	sha256_of(buffer_text(buffer), buffer->length, manifest->digest);
	free(manifest->key);
	manifest->key = strdup(key_manifest(&manifest->term,
	    manifest->attempt, manifest->digest, key));
	if (manifest->key == NULL ||
	    known_name(commit->writer->known, manifest) != 0)
		return no_memory(commit);
	flight->sent = true;
	flight->manifest_term = manifest->term;
	flight->manifest_attempt = manifest->attempt;
	memcpy(flight->manifest_digest, manifest->digest, SHA256_SIZE);
	return 0;
}

/* With the lock held: everything up to the PUT of C2. */
static int
prepare(const struct commit *commit, struct buffer *buffer)
{
	if (commit->writer->superseded) {
		*commit->error = commit->writer->superseded_error;
		return -1;
	}
	if (hold_chunks(commit) != 0 || make_room(commit) != 0)
		return -1;
	if (!is_again(commit) && fill(commit) != 0)
		return -1;
	return write_manifest(commit, buffer);
}

/* With the lock held: what the new manifest does not keep is valid no more. */
static void
drop_others(const struct commit *commit)
{
	struct writer *writer = commit->writer;
	const struct manifest *manifest = commit->manifest;
	struct key_parts parts;
	size_t i, kept = 0, left = manifest->keep_count;

	/* Both are in the order of commits. */
	for (i = 0; i < writer->count; i++) {
		struct manifest *old = writer->items[i].manifest;

		if (left > 0 && strcmp(manifest->keeps[left - 1].key,
		    old->key) == 0) {
			writer->items[kept++] = writer->items[i];
			left--;
			continue;
		}
		known_unname(writer->known, old);
		key_parse(old->key, &parts);
		writer_plan(writer, &parts);
		writer_retire(writer, old);
	}
	writer->count = kept;
}

/* With the lock held: the manifest is the truth, and durable. */
static void
accept(const struct commit *commit)
{
	struct writer *writer = commit->writer;
	struct manifest *manifest = commit->manifest;
	size_t i;

	drop_others(commit);
	writer->items[writer->count++] = (struct writer_item){
		.manifest = manifest };
	writer->resume = SIZE_MAX;
	for (i = 0; manifest->resume != NULL && i < writer->count; i++) {
		if (*manifest->resume == '\0' ||
		    strcmp(writer->items[i].manifest->key,
		    manifest->resume) == 0)
			writer->resume = i;
	}
	writer->committed = manifest->attempt;
	if (manifest->target != 0)
		writer->target = manifest->target;
	attempt_remove(&writer->attempts, commit->flight);
	attempt_free(commit->flight);
	writer_plan_all(writer);
}

/*
 * With the lock held: the writer took over from itself and adopted what it
 * had just committed: that is durable.  Return whether it is so.
 */
static bool
accept_adopted(const struct commit *commit)
{
	struct writer *writer = commit->writer;
	struct manifest *manifest = commit->manifest;
	struct key_parts parts;
	size_t i;

	key_parse(manifest->key, &parts);
	i = writer_item_of(writer, &parts);
	if (i == SIZE_MAX)
		return false;
	manifest_free(writer->items[i].manifest);
	writer->items[i] = (struct writer_item){ .manifest = manifest };
	writer->committed = manifest->attempt;
	attempt_remove(&writer->attempts, commit->flight);
	attempt_free(commit->flight);
	return true;
}

/* Let go of the manifest, which is not known to be durable. */
static void
withdraw(const struct commit *commit)
{
	pthread_mutex_lock(&commit->writer->mutex);
	known_unname(commit->writer->known, commit->manifest);
	pthread_mutex_unlock(&commit->writer->mutex);
}

enum outcome { OUTCOME_FAILED = -1, OUTCOME_DURABLE, OUTCOME_AGAIN };

/* Take over anew from a starter that died, or from a lost start of our own. */
static enum outcome
take_over_anew(const struct commit *commit)
{
	struct writer *writer = commit->writer;
	const struct takeover_request request = { .backend = writer->backend,
		.node = writer->node, .nodes = writer->nodes,
		.identity = writer->identity, .own = &writer->own,
		.anew = true, .deadline = commit->deadline,
		.hurry = &writer->hurry };
	enum outcome outcome = OUTCOME_FAILED;
	struct takeover takeover;

	if (takeover_run(&request, &takeover, commit->error) != 0) {
		pthread_mutex_lock(&writer->mutex);
		known_unname(writer->known, commit->manifest);
		if (commit->error->class == ERROR_SUPERSEDED)
			writer_supersede(writer, commit->error);
		else
			commit->error->class = ERROR_NOT_DURABLE;
		pthread_mutex_unlock(&writer->mutex);
		return OUTCOME_FAILED;
	}
	pthread_mutex_lock(&writer->mutex);
	known_unname(writer->known, commit->manifest);
	if (writer_install(writer, &takeover, commit->error) == 0)
		outcome = accept_adopted(commit) ? OUTCOME_DURABLE :
		    OUTCOME_AGAIN;
	pthread_mutex_unlock(&writer->mutex);
	takeover_free(&takeover);
	return outcome;
}

/* A newer open term: another agent's, or one of ours whose PUT was lost. */
static enum outcome
give_way(const struct commit *commit, const struct opening *newer)
{
	struct writer *writer = commit->writer;
	bool adopted = false;
	size_t i;

	if (newer != NULL && takeover_own_holds(&writer->own, &newer->term))
		return take_over_anew(commit);
	for (i = 0; newer != NULL && i < newer->adopted_count; i++)
		adopted |= strcmp(newer->adopted[i].key,
		    commit->manifest->key) == 0;
	standing_say(newer, commit->error);
	pthread_mutex_lock(&writer->mutex);
	known_unname(writer->known, commit->manifest);
	writer_supersede(writer, commit->error);
	pthread_mutex_unlock(&writer->mutex);
	error_prefix(commit->error, adopted ? "%s is durable, but" :
	    "%s is not durable", commit->manifest->name);
	return OUTCOME_FAILED;
}

/* C3. */
static enum outcome
confirm(const struct commit *commit)
{
	struct writer *writer = commit->writer;
	struct term term = commit->manifest->term;
	struct opening *newer;
	enum outcome outcome;

	switch (standing_wait(writer->backend, &term, commit->deadline,
	    &writer->hurry, commit->deadline == CLOCK_NEVER ? STANDING_DEAD_AFTER :
	    CLOCK_NEVER, &newer, commit->error)) {
	case STANDING_CLEAR:
		pthread_mutex_lock(&writer->mutex);
		accept(commit);
		pthread_mutex_unlock(&writer->mutex);
		return OUTCOME_DURABLE;
	case STANDING_SUPERSEDED:
		outcome = give_way(commit, newer);
		opening_free(newer);
		return outcome;
	case STANDING_DEAD:
		return take_over_anew(commit);
	case STANDING_CLAIMED:
		withdraw(commit);
		error_set(commit->error, ERROR_NOT_DURABLE, CAUSE_OTHER,
		    commit->manifest->name, "committed, takeover pending");
		return OUTCOME_FAILED;
	case STANDING_FAILED:
		break;
	}
	withdraw(commit);
	commit->error->class = ERROR_NOT_DURABLE;
	error_prefix(commit->error, "committed, but not confirmed");
	return OUTCOME_FAILED;
}

/* C2, C3. */
static enum outcome
run(const struct commit *commit)
{
	struct writer *writer = commit->writer;
	enum outcome outcome = OUTCOME_FAILED;
	struct buffer buffer;
	int result;

	buffer_init(&buffer, MANIFEST_SIZE_MAXIMUM);
	pthread_mutex_lock(&writer->mutex);
	result = prepare(commit, &buffer);
	pthread_mutex_unlock(&writer->mutex);
	if (result == 0 && backend_put(writer->backend, commit->manifest->key,
	    buffer_text(&buffer), buffer.length, commit->deadline,
	    commit->error) != 0) {
		withdraw(commit);
		commit->error->class = ERROR_NOT_DURABLE;
		result = -1;
	}
	buffer_free(&buffer);
	if (result == 0)
		outcome = confirm(commit);
	return outcome;
}

int
writer_commit(struct writer *writer, uint64_t attempt,
    struct manifest *manifest, const struct writer_directory *directory,
    uint64_t deadline, struct error *error)
{
	struct commit commit = { writer, NULL, manifest, directory, deadline,
		error };
	enum outcome outcome = OUTCOME_AGAIN;

	pthread_mutex_lock(&writer->mutex);
	commit.flight = attempt_find(writer->attempts, attempt);
	pthread_mutex_unlock(&writer->mutex);
	if (commit.flight == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_OTHER,
		    manifest->name, "attempt %" PRIu64 " is not in flight",
		    attempt);
	while (outcome == OUTCOME_AGAIN)
		outcome = run(&commit);
	return outcome == OUTCOME_DURABLE ? 0 : -1;
}
