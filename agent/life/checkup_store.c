#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/unit.h"
#include "life/checkup_private.h"
#include "life/checkup_trial.h"
#include "life/judgement.h"
#include "life/settings.h"
#include "store/backend.h"
#include "store/backend_s3.h"
#include "store/key.h"
#include "store/remote.h"
#include "store/truth.h"

/* How long a remote may take to answer at all. */
#define REACH_TIME (8 * CLOCK_SECOND)

/* How long passing faults are tried again: a doctor does not wait. */
#define GIVE_UP_AFTER (5 * CLOCK_SECOND)

#define MARK_LIMIT 65536

static void
leave_out_rest(struct checkup_part *part, const char *why)
{
	char text[128];

	snprintf(text, sizeof(text), "%s; so listings, speed and contents "
	    "are left out as well", why);
	checkup_left_out(part, "objects", text);
}

/* Whether the server knows these keys, or nobody gave any. */
static bool
blames_keys(const struct error *error, const struct s3_facts *facts)
{
	static const char *const codes[] = { "SignatureDoesNotMatch",
	    "InvalidAccessKeyId", "InvalidToken", "ExpiredToken" };

	if (!facts->keys_known)
		return true;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strstr(error->message, codes[i]) != NULL)
			return true;
	return false;
}

static void
say_clock(struct checkup_part *part, const struct s3_facts *facts)
{
	struct finding finding = FINDING_INIT;

	if (facts->clock_known)
		judgement_clock(&finding, facts->clock_offset);
	else
		finding_set(&finding, FINDING_LEFT_OUT, "clock",
		    "no answer told the server's time");
	checkup_say(part, &finding);
}

static void
say_region(struct checkup_part *part, const struct s3_facts *facts)
{
	struct finding finding = FINDING_INIT;

	if (strcmp(facts->region, facts->first_region) == 0)
		return;
	finding_set(&finding, FINDING_HINT, "region", "the bucket is in %s, "
	    "not in %s: ckptsync found out by itself, other programs may "
	    "not, and bytes between regions cost money", facts->region,
	    facts->first_region);
	finding_cure(&finding, "--region %s or AWS_REGION=%s",
	    facts->region, facts->region);
	finding_fact(&finding, "region", json_string(facts->region));
	checkup_say(part, &finding);
}

static void
say_unreached(struct checkup_part *part, const struct backend *backend,
    const struct s3_facts *facts, struct error *error, bool late)
{
	struct finding finding = FINDING_INIT;
	bool keys = facts != NULL && blames_keys(error, facts);

	/* Not the key that was asked for, which says nothing to a user. */
	snprintf(error->object, sizeof(error->object), "%.*s",
	    (int)sizeof(error->object) - 1, backend->name);
	if (late) {
		error_set(error, ERROR_FAILED, CAUSE_UNREACHABLE,
		    backend->name, "no answer within %d s",
		    (int)(REACH_TIME / CLOCK_SECOND));
		error_cure(error, "check the network and the endpoint");
	}
	finding_fail(&finding, FINDING_WRONG, keys ? "credentials" : "remote",
	    error);
	if (keys && facts->keys_known)
		finding_add(&finding, "; the keys are from %s",
		    facts->source);
	if (facts != NULL && error->cause == CAUSE_UNREACHABLE && !keys)
		finding_add(&finding, "; asked at %s", facts->address);
	if (facts != NULL)
		finding_fact(&finding, "address",
		    json_string(facts->address));
	checkup_say(part, &finding);
}

static void
say_reached(struct checkup_part *part, const struct backend *backend,
    const struct s3_facts *facts, uint64_t took)
{
	struct finding finding = FINDING_INIT;
	char text[UNIT_TEXT_SIZE];

	finding_set(&finding, FINDING_OK, "remote", "%s answers in %s",
	    backend->name, checkup_time_text(took, text));
	if (facts != NULL)
		finding_fact(&finding, "address",
		    json_string(facts->address));
	checkup_say(part, &finding);
	if (facts == NULL)
		return;
	judgement_credentials(&finding, facts, clock_wall().tv_sec);
	checkup_say(part, &finding);
}

/*
 * Ask for the mark of the format.  Any clear answer shows that the bucket is
 * there and that the keys are known.
 */
static int
reach(struct checkup_part *part, struct backend *backend)
{
	struct error error = ERROR_INIT;
	struct s3_facts facts, *known;
	struct buffer mark;
	uint64_t began = clock_monotonic(), took;
	int result;

	checkup_doing(part, "waiting for the remote's first answer");
	buffer_init(&mark, MARK_LIMIT);
	result = backend_get(backend, KEY_FORMAT, &mark, began + REACH_TIME,
	    &error);
	buffer_free(&mark);
	took = clock_monotonic() - began;
	if (result != 0 && error.cause == CAUSE_NOT_FOUND)
		result = 0;
	known = backend_s3_facts(backend, &facts) ? &facts : NULL;
	if (result == 0)
		say_reached(part, backend, known, took);
	else
		say_unreached(part, backend, known, &error,
		    took >= REACH_TIME);
	if (known != NULL) {
		say_clock(part, known);
		say_region(part, known);
	}
	return result;
}

static uint64_t
largest_of(const struct truth *truth)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < truth->count; i++)
		if (truth->valid[i]->size > largest)
			largest = truth->valid[i]->size;
	return largest;
}

/* What a restore would find. */
static void
look_inside(struct checkup_part *part, struct backend *backend)
{
	struct finding finding = FINDING_INIT;
	struct error error = ERROR_INIT;
	struct truth *truth = NULL;
	char size[UNIT_TEXT_SIZE];

	checkup_doing(part, "reading what the remote holds");
	if (remote_check(backend, &error) == 0)
		truth = truth_read(backend, 0, &error);
	if (truth != NULL) {
		const struct manifest *resume = truth->resume == SIZE_MAX ?
		    NULL : truth->valid[truth->resume];

		pthread_mutex_lock(&part->checkup->lock);
		part->checkup->facts.remote = largest_of(truth);
		pthread_mutex_unlock(&part->checkup->lock);
		finding_set(&finding, FINDING_OK, "contents",
		    "%zu valid checkpoint%s", truth->count,
		    truth->count == 1 ? "" : "s");
		if (resume != NULL)
			finding_add(&finding, ", a restore brings %s (%s)",
			    resume->name, unit_size_text(resume->size, size));
	} else if (error.class == ERROR_NOTHING) {
		finding_set(&finding, FINDING_OK, "contents",
		    "nothing was saved here yet");
	} else {
		finding_fail(&finding, FINDING_WRONG, "contents", &error);
	}
	checkup_say(part, &finding);
	truth_free(truth);
}

/*
 * A file:// remote that is not there: `run` makes it.  Nothing is made only
 * for the sake of trying.
 */
static void
check_missing(struct checkup_part *part, const char *url)
{
	const char *path = strstr(url, "://") + 3;
	struct finding finding = FINDING_INIT;
	char parent[PATH_MAX], *slash;

	snprintf(parent, sizeof(parent), "%s", path);
	do {
		slash = strrchr(parent, '/');
		if (slash == NULL || slash == parent)
			strcpy(parent, "/");
		else
			*slash = '\0';
	} while (access(parent, F_OK) != 0 && parent[1] != '\0');
	finding_set(&finding, FINDING_OK, "remote",
	    "%s is not there yet; `run` makes it", url);
	if (access(parent, W_OK | X_OK) != 0) {
		finding.state = FINDING_WRONG;
		finding_add(&finding, ", but may not write into %s", parent);
		finding_cure(&finding, "make the folder, or change its owner");
	}
	checkup_say(part, &finding);
	leave_out_rest(part, "the remote is not there yet");
}

void
checkup_store(struct checkup_part *part)
{
	const struct settings *settings = part->checkup->settings;
	struct remote_options options = settings->remote;
	struct finding finding = FINDING_INIT;
	struct error error = ERROR_INIT;
	struct backend *backend;

	if (settings->url == NULL) {
		checkup_left_out(part, "remote", "no REMOTE was given; so "
		    "credentials, clock, speed, and whether a checkpoint "
		    "fits into the notice, are left out as well");
		return;
	}
	checkup_doing(part, "opening the remote");
	options.give_up_after = GIVE_UP_AFTER;
	backend = remote_open(settings->url, &options, false, &error);
	if (backend == NULL && error.cause == CAUSE_NOT_FOUND) {
		check_missing(part, settings->url);
		return;
	}
	if (backend == NULL) {
		/* Without keys no client can be made. */
		finding_fail(&finding, FINDING_WRONG,
		    error.cause == CAUSE_DENIED ? "credentials" : "remote",
		    &error);
		checkup_say(part, &finding);
		leave_out_rest(part, "the remote cannot be used");
		return;
	}
	if (reach(part, backend) == 0) {
		if (!checkup_trial(part, backend))
			checkup_left_out(part, "contents",
			    "these keys cannot read or list");
		else if (!atomic_load(&part->checkup->stop))
			look_inside(part, backend);
	} else {
		leave_out_rest(part, "the remote cannot be used");
	}
	backend_free(backend);
}
