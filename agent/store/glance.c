#include "store/glance.h"

#include <stdlib.h>
#include <string.h>

#include "store/backend.h"
#include "store/gathering.h"
#include "store/manifest.h"
#include "store/opening.h"
#include "store/terms.h"

struct look {
	struct backend *backend;
	const struct glance_rules *rules;
	struct gathering *gathering;
	struct glance *glance;
	struct error *damaged;
	struct error *error;
};

/* Texts in fresh memory. */
struct keys {
	char **items;
	size_t count, capacity;
};

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

static int
keys_add(struct keys *keys, const char *key, struct error *error)
{
	if (keys->count == keys->capacity) {
		size_t capacity = keys->capacity == 0 ? 16 :
		    keys->capacity * 2;
		char **items = realloc(keys->items,
		    capacity * sizeof(*items));

		if (items == NULL)
			return no_memory(error);
		keys->items = items;
		keys->capacity = capacity;
	}
	keys->items[keys->count] = strdup(key);
	if (keys->items[keys->count] == NULL)
		return no_memory(error);
	keys->count++;
	return 0;
}

static void
keys_free(struct keys *keys)
{
	size_t i;

	for (i = 0; i < keys->count; i++)
		free(keys->items[i]);
	free(keys->items);
}

/* Whether ${failure} is about the bytes of an object, not about the store. */
static bool
is_damage(const struct error *failure)
{
	return failure->class == ERROR_DAMAGED ||
	    failure->cause == CAUSE_FEATURE;
}

/* ${failure}, as damage when it says that something is gone. */
static struct error
as_damage(const struct error *failure)
{
	struct error damage = *failure;

	if (failure->cause == CAUSE_NOT_FOUND) {
		damage.class = ERROR_DAMAGED;
		damage.cause = CAUSE_OTHER;
		error_prefix(&damage, "a valid checkpoint");
	}
	return damage;
}

static void
note_damage(const struct look *look, const struct error *failure)
{
	if (look->damaged != NULL && look->damaged->class == ERROR_NONE)
		*look->damaged = as_damage(failure);
}

/* Whether to go on without the piece of the truth that ${failure} is about. */
static bool
pass_over(const struct look *look, const struct error *failure)
{
	if (!look->rules->surviving || !(is_damage(failure) ||
	    (look->rules->last && failure->cause == CAUSE_NOT_FOUND)))
		return false;
	note_damage(look, failure);
	return true;
}

/*
 * Whether to go on without a checkpoint that the truth only names.  One that
 * is written for a newer program is not damaged: it is left out only when
 * whatever survives is wanted.
 */
static bool
may_lose(const struct look *look, const struct error *failure)
{
	return failure->class == ERROR_DAMAGED ||
	    (look->rules->surviving && is_damage(failure)) ||
	    (look->rules->last && failure->cause == CAUSE_NOT_FOUND);
}

static int
lose(const struct look *look, const struct manifest_keep *named,
    bool is_resume, const struct error *failure)
{
	struct glance *glance = look->glance;
	const struct error damage = as_damage(failure);
	struct lost *lost = lost_add(&glance->lost, named->key, named->name,
	    &damage);

	if (lost == NULL)
		return no_memory(look->error);
	lost->newer = glance->count;
	lost->resume = is_resume;
	glance->resume_lost |= is_resume;
	note_damage(look, failure);
	return 0;
}

static enum glance_result
gone_or_failed(const struct look *look, const struct error *failure)
{
	*look->error = *failure;
	return failure->cause == CAUSE_NOT_FOUND ? GLANCE_GONE : GLANCE_FAILED;
}

static int
add_manifest_key(void *context, const struct backend_entry *entry,
    struct error *error)
{
	struct key_parts parts;

	key_parse(entry->key, &parts);
	if (parts.kind != KEY_MANIFEST)
		return 0;
	return keys_add(context, entry->key, error);
}

/* The manifests of the glance's term; a LIST is in the order of attempts. */
static int
list_manifests(const struct look *look, struct keys *keys)
{
	char prefix[KEY_SIZE];

	key_term_object(&look->glance->term, "checkpoints/", prefix);
	return backend_list(look->backend, prefix, false, add_manifest_key,
	    keys, look->error);
}

/* Put ${manifest} behind the valid ones. */
static int
add_valid(const struct look *look, struct manifest *manifest)
{
	struct glance *glance = look->glance;

	if (manifest->needs_writer != NULL && glance->needs_writer == NULL &&
	    (glance->needs_writer = strdup(manifest->needs_writer)) == NULL) {
		gathering_give(look->gathering, manifest);
		return no_memory(look->error);
	}
	glance->valid[glance->count++] = manifest;
	return 0;
}

/*
 * When the resume point is passed over: the next older one of the resume
 * points, else the newest, else whatever is left.
 */
static size_t
next_resume(const struct glance *glance, size_t older_than)
{
	size_t i;

	for (i = older_than; i < glance->count; i++)
		if (glance->valid[i]->role == ROLE_RESUME)
			return i;
	for (i = 0; i < glance->count; i++)
		if (glance->valid[i]->role == ROLE_RESUME)
			return i;
	return glance->count > 0 ? 0 : SIZE_MAX;
}

/* Fetch what ${keys} name, behind what is valid already. */
static enum glance_result
take_named(const struct look *look, const struct manifest_keep *named,
    size_t count, const char *resume)
{
	struct glance *glance = look->glance;
	const char **keys = calloc(count + 1, sizeof(*keys));
	struct error *failures = calloc(count + 1, sizeof(*failures));
	enum glance_result result = GLANCE_FAILED;
	struct manifest **valid, *manifest;
	size_t i;

	valid = realloc(glance->valid,
	    (glance->count + count + 1) * sizeof(*valid));
	if (valid != NULL)
		glance->valid = valid;
	if (keys == NULL || failures == NULL || valid == NULL) {
		no_memory(look->error);
		goto out;
	}
	for (i = 0; i < count; i++)
		keys[i] = named[i].key;
	gathering_fetch(look->gathering, keys, count, failures);
	for (i = 0; i < count; i++) {
		bool is_resume = resume != NULL && strcmp(resume,
		    keys[i]) == 0;

		if (is_resume)
			glance->resume = glance->count;
		if (failures[i].class != ERROR_NONE) {
			if (!may_lose(look, &failures[i]))
				result = gone_or_failed(look, &failures[i]);
			else if (lose(look, &named[i], is_resume,
			    &failures[i]) == 0)
				continue;
			goto out;
		}
		manifest = gathering_take(look->gathering, keys[i]);
		if (manifest != NULL && add_valid(look, manifest) != 0)
			goto out;
	}
	result = GLANCE_DONE;
out:
	free(keys);
	free(failures);
	return result;
}

/* The resume point must be the one that was named, or the next best. */
static void
settle_resume(struct glance *glance, const char *resume)
{
	if (glance->resume == SIZE_MAX ||
	    (glance->resume < glance->count &&
	    strcmp(glance->valid[glance->resume]->key, resume) == 0))
		return;
	glance->resume = next_resume(glance, glance->resume);
}

/* What the newest manifest of the term says. */
static enum glance_result
take_newest(const struct look *look, const char *key)
{
	struct glance *glance = look->glance;
	struct error failure;
	struct manifest *newest;
	enum glance_result result;
	const char *resume;

	gathering_fetch(look->gathering, &key, 1, &failure);
	if (failure.class != ERROR_NONE)
		return gone_or_failed(look, &failure);
	newest = gathering_take(look->gathering, key);
	free(glance->valid);
	glance->valid = calloc(1, sizeof(*glance->valid));
	if (glance->valid == NULL) {
		gathering_give(look->gathering, newest);
		no_memory(look->error);
		return GLANCE_FAILED;
	}
	if (add_valid(look, newest) != 0)
		return GLANCE_FAILED;
	resume = newest->resume;
	if (resume != NULL && *resume == '\0') {
		resume = key;
		glance->resume = 0;
	}
	result = take_named(look, newest->keeps, newest->keep_count, resume);
	if (result == GLANCE_DONE)
		settle_resume(glance, resume);
	return result;
}

/*
 * The truth as the manifests of the term tell it, from the newest one; older
 * ones only when that is damaged and what survives is wanted.  GLANCE_DONE with
 * nothing valid: none can be read.
 */
static enum glance_result
take_manifests(const struct look *look, const struct keys *keys)
{
	enum glance_result result;
	struct key_parts parts;
	size_t i;

	for (i = keys->count; i > 0; i--) {
		key_parse(keys->items[i - 1], &parts);
		if (look->glance->newest_attempt == 0)
			look->glance->newest_attempt = parts.attempt;
		result = take_newest(look, keys->items[i - 1]);
		if (result == GLANCE_DONE || look->glance->count > 0 ||
		    !pass_over(look, look->error))
			return result;
	}
	return GLANCE_DONE;
}

static enum glance_result
take_term(const struct look *look, const struct opening *opening)
{
	struct glance *glance = look->glance;
	struct keys keys = { 0 };
	enum glance_result result;

	if (list_manifests(look, &keys) != 0)
		result = GLANCE_FAILED;
	else
		result = take_manifests(look, &keys);
	keys_free(&keys);
	if (result != GLANCE_DONE || glance->count > 0 || opening == NULL)
		return result;
	/* No commit of its own yet: what it adopted. */
	result = take_named(look, opening->adopted, opening->adopted_count,
	    opening->resume);
	if (result == GLANCE_DONE)
		settle_resume(glance, opening->resume);
	return result;
}

/* Look into ${term}; *${open} says whether it is open. */
static enum glance_result
take_open(const struct look *look, const struct term *term, bool *open)
{
	struct glance *glance = look->glance;
	struct opening *opening;
	struct error failure;
	enum glance_result result;

	opening = opening_get(look->backend, term, &failure);
	*open = opening != NULL || failure.cause != CAUSE_NOT_FOUND;
	if (!*open)
		return GLANCE_DONE;
	if (opening == NULL && !pass_over(look, &failure)) {
		*look->error = failure;
		return GLANCE_FAILED;
	}
	glance->open = true;
	glance->term = *term;
	glance->agent = opening == NULL ? strdup("an unknown host") :
	    opening->agent;
	if (opening != NULL) {
		glance->needs_writer = opening->needs_writer;
		opening->agent = opening->needs_writer = NULL;
	}
	result = glance->agent == NULL ? GLANCE_FAILED : take_term(look, opening);
	if (glance->agent == NULL)
		no_memory(look->error);
	opening_free(opening);
	return result;
}

enum glance_result
glance_look(struct backend *backend, const struct terms *terms,
    const struct glance_rules *rules, struct gathering *gathering,
    struct glance *glance, struct error *damaged, struct error *error)
{
	const struct look look = { backend, rules, gathering, glance, damaged,
		error };
	enum glance_result result = GLANCE_DONE;
	bool open = false;
	size_t i;

	*glance = (struct glance){ .resume = SIZE_MAX };
	for (i = terms->count; i > 0 && !open && result == GLANCE_DONE; i--) {
		if (rules->below == 0 ||
		    terms->items[i - 1].number < rules->below)
			result = take_open(&look, &terms->items[i - 1], &open);
	}
	if (result != GLANCE_DONE)
		glance_free(glance, gathering);
	return result;
}

void
glance_free(struct glance *glance, struct gathering *gathering)
{
	size_t i;

	for (i = 0; i < glance->count; i++) {
		if (gathering != NULL)
			gathering_give(gathering, glance->valid[i]);
		else
			manifest_free(glance->valid[i]);
	}
	free(glance->valid);
	free(glance->agent);
	free(glance->needs_writer);
	lost_free(&glance->lost);
	*glance = (struct glance){ .resume = SIZE_MAX };
}
