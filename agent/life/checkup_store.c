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

/* What is left out when the remote cannot be used. */
static void
leave_out_rest(struct checkup_part *part, const char *why)
{
	static const char *const checks[] = { "objects", "listings",
	    "speed" };

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		checkup_left_out(part, checks[i], why);
}

static void
say_facts(struct checkup_part *part, const struct s3_facts *facts)
{
	struct finding finding = FINDING_INIT;

	judgement_credentials(&finding, facts, clock_wall().tv_sec);
	checkup_say(part, &finding);
	if (facts->clock_known)
		judgement_clock(&finding, facts->clock_offset);
	else
		finding_set(&finding, FINDING_LEFT_OUT, "clock",
		    "the server tells no time");
	checkup_say(part, &finding);
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

/*
 * Ask for the mark of the format.  Any clear answer shows that the bucket is
 * there and that the keys are known.
 */
static int
reach(struct checkup_part *part, struct backend *backend)
{
	struct finding finding = FINDING_INIT;
	struct error error = ERROR_INIT;
	char took[UNIT_TEXT_SIZE];
	struct s3_facts facts;
	struct buffer mark;
	uint64_t began = clock_monotonic();
	int result;

	checkup_doing(part, "waiting for the remote's first answer");
	buffer_init(&mark, MARK_LIMIT);
	result = backend_get(backend, KEY_FORMAT, &mark, began + REACH_TIME,
	    &error);
	buffer_free(&mark);
	if (result != 0 && error.cause == CAUSE_NOT_FOUND)
		result = 0;
	if (result == 0) {
		finding_set(&finding, FINDING_OK, "remote",
		    "%s answers in %s", backend->name, unit_duration_text(
		    clock_monotonic() - began, took));
	} else {
		finding_fail(&finding, FINDING_WRONG, "remote", &error);
	}
	if (backend_s3_facts(backend, &facts)) {
		finding_fact(&finding, "address",
		    json_string(facts.address));
		if (result != 0 && error.cause == CAUSE_UNREACHABLE)
			finding_add(&finding, "; asked at %s",
			    facts.address);
	}
	checkup_say(part, &finding);
	if (backend_s3_facts(backend, &facts))
		say_facts(part, &facts);
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
		    "credentials, clock and speed are left out as well");
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
		checkup_trial(part, backend);
		if (!atomic_load(&part->checkup->stop))
			look_inside(part, backend);
	} else {
		leave_out_rest(part, "the remote cannot be used");
	}
	backend_free(backend);
}
