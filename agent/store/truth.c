#include "store/truth.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/log.h"
#include "store/backend.h"
#include "store/gathering.h"
#include "store/opening.h"
#include "store/terms.h"
#include "store/glance.h"

/* How often a reader starts over (DESIGN 5). */
#define ROUNDS 3

/* Names that an error lists at most. */
#define SUGGESTIONS 5

/*
 * Whether no term above the one in ${glance} is open now: 1, 0, or -1.  With
 * none open before, none may be open now.
 */
static int
still_highest(struct backend *backend, uint32_t node, const struct glance *glance,
    struct error *error)
{
	struct opening *opening;
	struct terms terms;
	int result = 1;
	size_t i;

	if (terms_list(backend, node, &terms, error) != 0)
		return -1;
	for (i = terms.count; i > 0 && result == 1; i--) {
		if (glance->open && terms.items[i - 1].number <=
		    glance->term.number)
			break;
		opening = opening_get(backend, &terms.items[i - 1], error);
		if (opening != NULL || error->class == ERROR_DAMAGED ||
		    error->cause == CAUSE_FEATURE)
			result = 0;
		else if (error->cause != CAUSE_NOT_FOUND)
			result = -1;
		opening_free(opening);
	}
	terms_free(&terms);
	return result;
}

/* One round.  GLANCE_GONE: start over. */
static enum glance_result
look_once(struct backend *backend, uint32_t node,
    const struct glance_rules *rules, struct gathering *gathering,
    struct glance *glance, struct error *damaged, struct error *error)
{
	enum glance_result result;
	struct terms terms;
	int highest;

	if (terms_list(backend, node, &terms, error) != 0)
		return GLANCE_FAILED;
	if (damaged != NULL)
		error_clear(damaged);
	result = glance_look(backend, &terms, rules, gathering, glance, damaged,
	    error);
	terms_free(&terms);
	if (result != GLANCE_DONE)
		return result;
	highest = still_highest(backend, node, glance, error);
	if (highest == 1)
		return GLANCE_DONE;
	glance_free(glance, gathering);
	if (highest < 0)
		return GLANCE_FAILED;
	error_set(error, ERROR_FAILED, CAUSE_UNREACHABLE, backend->name,
	    "new agents take over faster than the remote can be read");
	return GLANCE_GONE;
}

static struct truth *
truth_new(struct glance *glance, struct error *error)
{
	struct truth *truth = calloc(1, sizeof(*truth));

	if (truth == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	truth->term = glance->term;
	truth->agent = glance->agent;
	truth->valid = glance->valid;
	truth->count = glance->count;
	truth->resume = glance->resume;
	truth->lost = glance->lost;
	truth->resume_lost = glance->resume_lost;
	glance->lost = (struct lost_list){ 0 };
	glance->agent = NULL;
	glance->valid = NULL;
	glance->count = 0;
	return truth;
}

/* What is to be said when nothing valid was found. */
static void
say_nothing(struct backend *backend, const struct glance *glance,
    const struct error *damaged, struct error *error)
{
	if (damaged == NULL && glance->lost.count > 0)
		damaged = &glance->lost.items[0].error;
	if (damaged != NULL && damaged->class != ERROR_NONE) {
		*error = *damaged;
		return;
	}
	error_set(error, ERROR_NOTHING, CAUSE_NOT_FOUND, backend->name,
	    "no checkpoint is there yet");
}

static struct truth *
read_truth(struct backend *backend, uint32_t node, struct error *damaged,
    struct error *error)
{
	struct gathering *gathering = gathering_new(backend);
	struct glance_rules rules = { .surviving = damaged != NULL };
	enum glance_result result = GLANCE_GONE;
	struct truth *truth = NULL;
	struct glance glance = { 0 };
	int round;

	if (gathering == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	for (round = 0; round < ROUNDS && result == GLANCE_GONE; round++) {
		rules.last = round == ROUNDS - 1;
		result = look_once(backend, node, &rules, gathering, &glance,
		    damaged, error);
	}
	if (result == GLANCE_DONE && glance.count > 0) {
		truth = truth_new(&glance, error);
	} else if (result == GLANCE_DONE) {
		say_nothing(backend, &glance, damaged, error);
	} else if (result == GLANCE_GONE && error->cause == CAUSE_NOT_FOUND) {
		error->class = ERROR_DAMAGED;
		error->cause = CAUSE_OTHER;
		error_prefix(error, "a valid checkpoint's manifest");
	}
	glance_free(&glance, NULL);
	gathering_free(gathering);
	return truth;
}

/* Loud, but not endless: what is lost while the rest goes on. */
static void
warn(const struct truth *truth)
{
	char text[ERROR_TEXT_SIZE];
	size_t i;

	for (i = 0; i < truth->lost.count && i < SUGGESTIONS; i++)
		log_line(LOG_WARNING, "checkpoint_lost", "%s is lost: its "
		    "manifest is damaged or gone: %s",
		    truth->lost.items[i].name,
		    error_text(&truth->lost.items[i].error, text));
	if (i < truth->lost.count)
		log_line(LOG_WARNING, "checkpoint_lost", "%zu more "
		    "checkpoints are lost in the same way",
		    truth->lost.count - i);
}

struct truth *
truth_read_any(struct backend *backend, uint32_t node, struct error *error)
{
	struct truth *truth = read_truth(backend, node, NULL, error);

	if (truth != NULL)
		warn(truth);
	return truth;
}

struct truth *
truth_read(struct backend *backend, uint32_t node, struct error *error)
{
	struct truth *truth = read_truth(backend, node, NULL, error);

	if (truth != NULL && truth->resume_lost) {
		(void)truth_resume(truth, error);
		truth_free(truth);
		return NULL;
	}
	if (truth != NULL)
		warn(truth);
	return truth;
}

struct truth *
truth_read_surviving(struct backend *backend, uint32_t node,
    struct error *damaged, struct error *error)
{
	error_clear(damaged);
	return read_truth(backend, node, damaged, error);
}

const struct manifest *
truth_resume(const struct truth *truth, struct error *error)
{
	size_t i;

	for (i = 0; truth->resume_lost && i < truth->lost.count; i++) {
		if (!truth->lost.items[i].resume)
			continue;
		*error = truth->lost.items[i].error;
		error_prefix(error, "the resume point");
		error_cure(error, "ckptsync restore --fallback takes the next "
		    "older one; then run with --no-restore");
		return NULL;
	}
	if (truth->resume != SIZE_MAX)
		return truth->valid[truth->resume];
	error_set(error, ERROR_NOTHING, CAUSE_NOT_FOUND, NULL,
	    "there is no resume point");
	return NULL;
}

/* Whether a name may be what was meant: one holds the other's last part. */
static bool
is_near(const char *name, const char *text)
{
	const char *slash = strrchr(text, '/');

	return strstr(name, slash == NULL ? text : slash + 1) != NULL ||
	    strstr(text, name) != NULL;
}

static void
add_suggestions(const struct truth *truth, const char *text, bool near,
    struct buffer *buffer)
{
	struct error ignored;
	size_t i, j, added = 0;

	for (i = 0; i < truth->count && added < SUGGESTIONS; i++) {
		const char *name = truth->valid[i]->name;

		for (j = 0; j < i; j++) {
			if (strcmp(truth->valid[j]->name, name) == 0)
				break;
		}
		if (j < i || (near && !is_near(name, text)))
			continue;
		(void)buffer_format(buffer, &ignored, "%s%s",
		    added > 0 ? ", " : "", name);
		added++;
	}
}

const struct manifest *
truth_find(const struct truth *truth, const char *text, struct error *error)
{
	char id[MANIFEST_ID_SIZE];
	struct buffer names;
	size_t i, j;

	for (i = 0; i < truth->count; i++) {
		if (strcmp(truth->valid[i]->name, text) == 0 ||
		    strcmp(manifest_id(truth->valid[i], id), text) == 0)
			break;
	}
	for (j = 0; j < truth->lost.count; j++) {
		if (truth->lost.items[j].newer > i ||
		    !lost_is(&truth->lost.items[j], text))
			continue;
		*error = truth->lost.items[j].error;
		error_cure(error, "see ckptsync list for what is whole; "
		    "older ones of its name are had by their id");
		return NULL;
	}
	if (i < truth->count)
		return truth->valid[i];
	buffer_init(&names, 400);
	add_suggestions(truth, text, true, &names);
	if (names.length == 0)
		add_suggestions(truth, text, false, &names);
	error_set(error, ERROR_NOTHING, CAUSE_NOT_FOUND, text,
	    "no valid checkpoint has this name or id; there is %s",
	    names.length == 0 ? "none" : buffer_text(&names));
	error_cure(error, "see ckptsync list");
	buffer_free(&names);
	return NULL;
}

static const struct manifest *
newest_of(const struct truth *truth, enum role role)
{
	size_t i;

	for (i = 0; i < truth->count; i++) {
		if (truth->valid[i]->role == role)
			return truth->valid[i];
	}
	return NULL;
}

const struct manifest *
truth_best(const struct truth *truth)
{
	return newest_of(truth, ROLE_BEST);
}

const struct manifest *
truth_final(const struct truth *truth)
{
	return newest_of(truth, ROLE_FINAL);
}

void
truth_free(struct truth *truth)
{
	size_t i;

	if (truth == NULL)
		return;
	for (i = 0; i < truth->count; i++)
		manifest_free(truth->valid[i]);
	free(truth->valid);
	free(truth->agent);
	lost_free(&truth->lost);
	free(truth);
}
