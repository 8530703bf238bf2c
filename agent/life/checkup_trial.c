#include "life/checkup_trial.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/unit.h"
#include "life/checkup_private.h"
#include "life/trial.h"
#include "store/backend.h"

#define TRY_TIME (5 * CLOCK_SECOND)
#define SPEED_TIME (4 * CLOCK_SECOND)
#define CLEAR_TIME (4 * CLOCK_SECOND)

/* What a policy calls it. */
static const char *
right_of(const char *step)
{
	static const char *const rights[][2] = {
		{ "write", "s3:PutObject" }, { "read", "s3:GetObject" },
		{ "list", "s3:ListBucket" }, { "delete", "s3:DeleteObject" },
	};

	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
		if (strcmp(rights[i][0], step) == 0)
			return rights[i][1];
	return "";
}

static void
say_failed(struct checkup_part *part, const struct backend *backend,
    const struct trial_outcome *outcome, struct error *error)
{
	struct finding finding = FINDING_INIT;

	error_prefix(error, "to %s an object of our own does not work",
	    outcome->failed);
	finding_fail(&finding, FINDING_WRONG, "objects", error);
	if (outcome->wrong_bytes)
		finding_cure(&finding, "do not use this store: something on "
		    "the way changes bytes");
	else if (error->cause == CAUSE_DENIED && !backend->local)
		finding_cure(&finding, "allow these keys %s in %s",
		    right_of(outcome->failed), backend->name);
	finding_fact(&finding, "step", json_string(outcome->failed));
	checkup_say(part, &finding);
}

static void
say_worked(struct checkup_part *part, const struct trial_outcome *outcome)
{
	struct finding finding = FINDING_INIT;
	char took[UNIT_TEXT_SIZE];

	finding_set(&finding, FINDING_OK, "objects", "writing, reading, "
	    "listing and deleting work; a small write takes %s",
	    checkup_time_text(outcome->put, took));
	finding_fact(&finding, "write_s", json_real((double)outcome->put /
	    (double)CLOCK_SECOND));
	checkup_say(part, &finding);
}

/* What DESIGN 5 does with a store whose listings may be old. */
static void
say_strength(struct checkup_part *part, const struct backend *backend,
    const struct trial_outcome *outcome)
{
	struct finding finding = FINDING_INIT;

	if (backend->weak) {
		finding_set(&finding, FINDING_HINT, "listings", "%s, so "
		    "ckptsync deletes nothing, waits a minute at every "
		    "start, and cannot prove that nobody else took over",
		    outcome->lags ? "a listing here was out of date" :
		    "listings of this store may be out of date");
		finding_cure(&finding, "use a store with strong listings for "
		    "this run, or say --store strong if you know that it is "
		    "one");
	} else if (outcome->lags) {
		finding_set(&finding, FINDING_WRONG, "listings", "a listing "
		    "was out of date: it did not show what had just been "
		    "written or deleted");
		finding_cure(&finding, "start ckptsync with --store weak "
		    "here, or use another store");
	} else {
		finding_set(&finding, FINDING_OK, "listings",
		    "each showed at once what was written and deleted");
	}
	finding_fact(&finding, "weak", json_boolean(backend->weak));
	finding_fact(&finding, "lagged", json_boolean(outcome->lags));
	checkup_say(part, &finding);
}

static void
measure_speed(struct checkup_part *part, struct trial *trial)
{
	char rate[UNIT_TEXT_SIZE], size[UNIT_TEXT_SIZE], took[UNIT_TEXT_SIZE];
	struct finding finding = FINDING_INIT;
	struct error error = ERROR_INIT;
	struct trial_speed speed;

	checkup_doing(part, "measuring how fast bytes go up");
	if (trial_speed(trial, SPEED_TIME, &speed, &error) != 0) {
		error_prefix(&error, "sending many objects at once does not "
		    "work");
		finding_fail(&finding, FINDING_WRONG, "speed", &error);
	} else if (speed.per_second == 0) {
		finding_set(&finding, FINDING_WRONG, "speed",
		    "1 MiB did not go up within 8 s");
		finding_cure(&finding, "look at the network between here and "
		    "the store");
	} else {
		finding_set(&finding, FINDING_OK, "speed",
		    "%s/s upwards (%s in %s)",
		    unit_size_text(speed.per_second, rate),
		    unit_size_text(speed.bytes, size),
		    checkup_time_text(speed.time, took));
		finding_fact(&finding, "bytes_per_s",
		    json_integer((json_int_t)speed.per_second));
	}
	checkup_say(part, &finding);
	pthread_mutex_lock(&part->checkup->lock);
	part->checkup->facts.speed = speed.per_second;
	pthread_mutex_unlock(&part->checkup->lock);
}

/* A request without an answer may take effect at any later time. */
static void
say_unanswered(struct checkup_part *part, const struct trial *trial)
{
	struct finding finding = FINDING_INIT;

	finding_set(&finding, FINDING_HINT, "objects", "not every write was "
	    "answered; one of them may still appear, as %s and a number",
	    trial->prefix);
	finding_cure(&finding, "delete what appears in %s; it is nothing but "
	    "a trial", trial->backend->name);
	checkup_say(part, &finding);
}

static void
clear(struct checkup_part *part, struct trial *trial)
{
	struct finding finding = FINDING_INIT;
	struct error error = ERROR_INIT;

	checkup_doing(part, "deleting what was written");
	if (trial_clear(trial, clock_monotonic() + CLEAR_TIME, &error) == 0) {
		if (trial->unanswered)
			say_unanswered(part, trial);
		pthread_mutex_lock(&part->checkup->lock);
		part->checkup->facts.left[0] = '\0';
		pthread_mutex_unlock(&part->checkup->lock);
		return;
	}
	finding_fail(&finding, trial->backend->weak ? FINDING_HINT :
	    FINDING_WRONG, "objects", &error);
	finding_add(&finding, "; objects that begin with %s may be left in %s",
	    trial->prefix, trial->backend->name);
	finding_cure(&finding, "delete them; they are nothing but a trial");
	checkup_say(part, &finding);
}

bool
checkup_trial(struct checkup_part *part, struct backend *backend)
{
	struct checkup *checkup = part->checkup;
	struct error error = ERROR_INIT;
	struct trial_outcome outcome;
	struct trial trial;
	bool can_read = true;

	trial_init(&trial, backend, &checkup->stop);
	pthread_mutex_lock(&checkup->lock);
	memcpy(checkup->facts.left, trial.prefix, sizeof(trial.prefix));
	pthread_mutex_unlock(&checkup->lock);
	checkup_doing(part, "trying to write, read, list and delete");
	if (trial_run(&trial, clock_monotonic() + TRY_TIME, &outcome,
	    &error) == 0) {
		say_worked(part, &outcome);
		say_strength(part, backend, &outcome);
		if (!atomic_load(&checkup->stop))
			measure_speed(part, &trial);
	} else {
		say_failed(part, backend, &outcome, &error);
		checkup_left_out(part, "listings", "the trial of objects "
		    "failed; so speed is left out as well");
		can_read = strcmp(outcome.failed, "read") != 0 &&
		    strcmp(outcome.failed, "list") != 0;
	}
	clear(part, &trial);
	return can_read;
}
