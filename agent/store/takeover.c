#include "store/takeover.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "store/backend.h"
#include "store/feature.h"
#include "store/gathering.h"
#include "store/manifest.h"
#include "store/opening.h"
#include "store/standing.h"
#include "store/terms.h"

/* How long to wait before trying again: 0.2 s and up to so much more. */
#define PAUSE_MINIMUM (200 * CLOCK_MILLISECOND)
#define PAUSE_RANDOM (2 * CLOCK_SECOND)

/* In a weak store a LIST may be so old (DESIGN 5). */
#define WEAK_PAUSE (60 * CLOCK_SECOND)

/* How often something that is named may be missing until it is damage. */
#define GONE_MAXIMUM 10

enum step { STEP_FAILED = -1, STEP_DONE, STEP_AGAIN };

/* One takeover on its way. */
struct course {
	const struct takeover_request *request;
	struct takeover *takeover;
	struct gathering *gathering;
	unsigned gone;
	struct error *error;
};

void
takeover_own_add(struct takeover_own *own, const struct term *term)
{
	pthread_mutex_lock(&own->mutex);
	own->items[own->count++ % TAKEOVER_OWN_MAXIMUM] = *term;
	pthread_mutex_unlock(&own->mutex);
}

bool
takeover_own_holds(struct takeover_own *own, const struct term *term)
{
	bool holds = false;
	size_t i;

	pthread_mutex_lock(&own->mutex);
	for (i = 0; i < own->count && i < TAKEOVER_OWN_MAXIMUM; i++)
		holds |= term_same(&own->items[i], term);
	pthread_mutex_unlock(&own->mutex);
	return holds;
}

/* Let another starter finish. */
static enum step
pause_for_others(struct course *course)
{
	uint64_t hurry = course->request->hurry == NULL ? 0 :
	    atomic_load(course->request->hurry);

	if (clock_monotonic() >= course->request->deadline ||
	    (hurry != 0 && clock_monotonic() >= hurry)) {
		error_set(course->error, ERROR_FAILED, CAUSE_OTHER,
		    course->request->backend->name,
		    "other agents keep taking over at the same time");
		error_cure(course->error, "see that one agent is started per "
		    "run and node");
		return STEP_FAILED;
	}
	clock_sleep(PAUSE_MINIMUM + random_below(PAUSE_RANDOM));
	return STEP_AGAIN;
}

static enum step
superseded_by(struct course *course, const struct term *newer)
{
	struct opening *opening;

	opening = opening_get(course->request->backend, newer, course->error);
	standing_say(opening, course->error);
	opening_free(opening);
	return STEP_FAILED;
}

/* The truth itself cannot be read: nobody knows what is valid. */
static enum step
refuse_damage(const struct course *course)
{
	if (course->error->class == ERROR_DAMAGED)
		error_cure(course->error, "ckptsync restore --fallback brings "
		    "back what is left; go on with it in a new remote");
	return STEP_FAILED;
}

/* Look at the truth below ${below} (0: all) into the takeover's glance. */
static enum step
look(struct course *course, const struct terms *terms, uint32_t below)
{
	const struct takeover_request *request = course->request;
	const struct glance_rules rules = { .below = below,
		.last = course->gone >= GONE_MAXIMUM };
	struct glance *glance = &course->takeover->glance;
	enum glance_result result;

	glance_free(glance, course->gathering);
	result = glance_look(request->backend, terms, &rules, course->gathering,
	    glance, NULL, course->error);
	if (result == GLANCE_FAILED)
		return refuse_damage(course);
	if (result == GLANCE_GONE) {
		if (course->gone++ < GONE_MAXIMUM)
			return pause_for_others(course);
		course->error->class = ERROR_DAMAGED;
		course->error->cause = CAUSE_OTHER;
		error_prefix(course->error, "a valid checkpoint's manifest");
		return refuse_damage(course);
	}
	if (glance->count == 0 && glance->lost.count > 0) {
		*course->error = glance->lost.items[0].error;
		return refuse_damage(course);
	}
	if (glance->needs_writer != NULL) {
		feature_refuse(request->backend->name, glance->needs_writer,
		    course->error);
		return STEP_FAILED;
	}
	if (request->anew && (!glance->open ||
	    !takeover_own_holds(request->own, &glance->term)))
		return superseded_by(course, &glance->term);
	return STEP_DONE;
}

/*
 * T1, T2.  The truth is looked at once before anything is written, so that
 * what we must not or cannot take over is not even claimed.
 */
static enum step
claim(struct course *course)
{
	const struct takeover_request *request = course->request;
	struct term *term = &course->takeover->term;
	struct terms terms;
	char key[KEY_SIZE], *text;
	enum step step;

	if (terms_list(request->backend, request->node, &terms,
	    course->error) != 0)
		return STEP_FAILED;
	*term = (struct term){ .node = request->node, .number = 1,
		.random = random_bits() };
	if (terms.count > 0)
		term->number = terms.items[terms.count - 1].number + 1;
	step = look(course, &terms, 0);
	terms_free(&terms);
	if (step != STEP_DONE)
		return step;
	if (term->number > KEY_TERM_MAXIMUM) {
		error_set(course->error, ERROR_FAILED, CAUSE_LIMIT,
		    request->backend->name, "has no number left for a term");
		return STEP_FAILED;
	}
	text = request->identity == NULL ? strdup("{}") :
	    json_dumps(request->identity, JSON_COMPACT);
	if (text == NULL || backend_put(request->backend,
	    key_term_object(term, "claim", key), text, strlen(text), 0,
	    course->error) != 0)
		step = STEP_FAILED;
	if (text == NULL)
		error_set(course->error, ERROR_FAILED, CAUSE_MEMORY, key,
		    "out of memory");
	free(text);
	return step;
}

/* T3: whether somebody else claims the same or a higher number. */
static bool
is_contested(const struct terms *terms, const struct term *term)
{
	size_t i;

	for (i = terms->count; i > 0; i--) {
		const struct term *other = &terms->items[i - 1];

		if (other->number < term->number)
			break;
		if (!term_same(other, term))
			return true;
	}
	return false;
}

static int
add_leftover(void *context, const struct backend_entry *entry,
    struct error *error)
{
	struct takeover *takeover = context;
	struct takeover_leftover *leftover;
	struct key_parts parts;
	size_t count = takeover->leftover_count;

	key_parse(entry->key, &parts);
	if (parts.kind != KEY_CHUNK || entry->size == 0 ||
	    parts.attempt <= takeover->glance.newest_attempt)
		return 0;
	/* Room for 64, then doubled whenever a power of two is full. */
	if (count == 0 || (count >= 64 && (count & (count - 1)) == 0)) {
		leftover = realloc(takeover->leftovers,
		    (count < 64 ? 64 : count * 2) * sizeof(*leftover));
		if (leftover == NULL)
			return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
			    entry->key, "out of memory");
		takeover->leftovers = leftover;
	}
	leftover = &takeover->leftovers[takeover->leftover_count++];
	leftover->attempt = parts.attempt;
	leftover->size = entry->size;
	memcpy(leftover->digest, parts.digest, SHA256_SIZE);
	return 0;
}

/* What the predecessor stored of an upload that was cut (rule G2). */
static enum step
list_leftovers(struct course *course)
{
	struct takeover *takeover = course->takeover;
	char prefix[KEY_SIZE];

	takeover->leftover_count = 0;
	if (!takeover->glance.open)
		return STEP_DONE;
	key_term_object(&takeover->glance.term, "chunks/", prefix);
	return backend_list(course->request->backend, prefix, false,
	    add_leftover, takeover, course->error) == 0 ? STEP_DONE :
	    STEP_FAILED;
}

/* T3, T4. */
static enum step
adopt(struct course *course)
{
	const struct takeover_request *request = course->request;
	const struct term *term = &course->takeover->term;
	struct terms terms;
	enum step step;

	if (request->backend->weak)
		clock_sleep(WEAK_PAUSE);
	if (terms_list(request->backend, request->node, &terms,
	    course->error) != 0)
		return STEP_FAILED;
	step = is_contested(&terms, term) ? pause_for_others(course) :
	    look(course, &terms, term->number);
	terms_free(&terms);
	return step == STEP_DONE ? list_leftovers(course) : step;
}

/* T5. */
static enum step
open_term(struct course *course)
{
	const struct takeover_request *request = course->request;
	const struct glance *glance = &course->takeover->glance;
	struct opening opening = { .term = course->takeover->term,
		.nodes = request->nodes, .adopted_count = glance->count };
	enum step step = STEP_FAILED;
	struct buffer buffer;
	char key[KEY_SIZE];
	size_t i;

	buffer_init(&buffer, MANIFEST_SIZE_MAXIMUM);
	opening.adopted = calloc(glance->count + 1, sizeof(*opening.adopted));
	if (opening.adopted == NULL) {
		error_set(course->error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		goto out;
	}
	for (i = 0; i < glance->count; i++) {
		opening.adopted[i].key = glance->valid[i]->key;
		opening.adopted[i].name = glance->valid[i]->name;
	}
	if (glance->resume != SIZE_MAX)
		opening.resume = glance->valid[glance->resume]->key;
	key_term_object(&opening.term, "open.json", key);
	takeover_own_add(request->own, &opening.term);
	if (opening_write(&opening, request->identity, &buffer,
	    course->error) == 0 &&
	    backend_put(request->backend, key, buffer_text(&buffer),
	    buffer.length, 0, course->error) == 0)
		step = STEP_DONE;
out:
	free(opening.adopted);
	buffer_free(&buffer);
	return step;
}

/* T6. */
static enum step
confirm(struct course *course)
{
	const struct takeover_request *request = course->request;
	const struct term *term = &course->takeover->term;
	struct opening *newer;

	switch (standing_wait(request->backend, term, request->deadline,
	    request->hurry, STANDING_DEAD_AFTER, &newer, course->error)) {
	case STANDING_CLEAR:
		return STEP_DONE;
	case STANDING_SUPERSEDED:
		standing_say(newer, course->error);
		opening_free(newer);
		return STEP_FAILED;
	case STANDING_CLAIMED:
	case STANDING_DEAD:
		return pause_for_others(course);
	case STANDING_FAILED:
		break;
	}
	return STEP_FAILED;
}

static void
tell_lost(const struct lost_list *lost)
{
	char text[ERROR_TEXT_SIZE];
	size_t i;

	for (i = 0; i < lost->count; i++)
		log_event(LOG_ERROR, "checkpoint_lost", LOG_FIELDS(
		    LOG_TEXT_FIELD("name", lost->items[i].name),
		    LOG_TEXT_FIELD("manifest", lost->items[i].key)),
		    "%s was durable and is lost, going on without it; what "
		    "older agents stored is kept for now: %s",
		    lost->items[i].name,
		    error_text(&lost->items[i].error, text));
}

static enum step
run_once(struct course *course)
{
	enum step step = claim(course);

	if (step == STEP_DONE)
		step = adopt(course);
	if (step == STEP_DONE)
		step = open_term(course);
	if (step == STEP_DONE)
		step = confirm(course);
	return step;
}

int
takeover_run(const struct takeover_request *request,
    struct takeover *takeover, struct error *error)
{
	struct course course = { .request = request, .takeover = takeover,
		.gathering = gathering_new(request->backend), .error = error };
	enum step step = STEP_AGAIN;

	*takeover = (struct takeover){ 0 };
	if (course.gathering == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	while (step == STEP_AGAIN)
		step = run_once(&course);
	gathering_free(course.gathering);
	if (step == STEP_DONE) {
		tell_lost(&takeover->glance.lost);
		return 0;
	}
	takeover_free(takeover);
	return -1;
}

void
takeover_free(struct takeover *takeover)
{
	glance_free(&takeover->glance, NULL);
	free(takeover->leftovers);
	*takeover = (struct takeover){ 0 };
}
