#include "life/opening.h"

#include <stdint.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "life/settings.h"
#include "life/start_private.h"
#include "store/backend.h"
#include "store/environment.h"
#include "store/remote.h"
#include "store/truth.h"
#include "store/writer.h"

/* For a store to answer at the start; at least as long as a clear fault needs
 * to show.  And how much of it is read. */
#define KNOCK_MAXIMUM (20 * CLOCK_SECOND)
#define KNOCK_MINIMUM (3 * CLOCK_SECOND)
#define KNOCK_SIZE_MAXIMUM 65536

/*
 * A role, a policy or a bucket that was just made takes a while to be seen;
 * what is refused for longer (wrong keys, no such bucket) stays refused, and
 * --start-timeout is not waited for.
 */
#define DENIED_MAXIMUM (30 * CLOCK_SECOND)

/* The truth, or NULL with a clear error when there is nothing yet. */
static int
look(struct start *start, struct truth **truth, struct error *error)
{
	/* The resume point must be whole only for who restores it. */
	*truth = start->needs.tidy && !start->needs.settings->no_restore &&
	    start->needs.settings->checkpoint == NULL ?
	    truth_read(start->result->backend, 0, error) :
	    truth_read_any(start->result->backend, 0, error);
	if (*truth != NULL)
		return 0;
	if (error->class != ERROR_NOTHING || error->cause != CAUSE_NOT_FOUND)
		return -1;
	error_clear(error);
	return 0;
}

/* An agent that was replaced while it was dead does not take over again. */
static int
check_fence(const struct start *start, const struct state *before,
    const struct truth *truth, struct error *error)
{
	if (!start->needs.again || truth == NULL ||
	    before->term.number == 0 ||
	    truth->term.number <= before->term.number)
		return 0;
	return error_set(error, ERROR_SUPERSEDED, CAUSE_OTHER,
	    start->result->backend->name,
	    "a newer agent has taken over: %s", truth->agent == NULL ?
	    "unknown" : truth->agent);
}

static int
take_over(struct start *start, struct error *error)
{
	const struct settings *settings = start->needs.settings;
	struct writer_options options = {
		.nodes = 1,
		.rules = settings->rules,
		.delete_delay = settings->delete_delay,
		.identity = environment_identity(),
	};

	start->result->writer = writer_take_over(start->result->backend,
	    &options, start->needs.give_up == CLOCK_NEVER ? CLOCK_NEVER :
	    clock_monotonic() + start->needs.give_up, error);
	json_decref(options.identity);
	return start->result->writer != NULL ? 0 : -1;
}

/*
 * Whether the store answers at all.  Requests have much patience, as uploads
 * need it; this one has not, so that a store that is down is said soon.
 */
static int
knock(struct start *start, uint64_t until, struct opening *opening,
    struct error *error)
{
	uint64_t now = clock_monotonic(), deadline = now + KNOCK_MAXIMUM;
	struct buffer buffer;
	int result;

	if (start->result->backend->local)
		return 0;
	if (deadline > until)
		deadline = until > now + KNOCK_MINIMUM ? until :
		    now + KNOCK_MINIMUM;
	buffer_init(&buffer, KNOCK_SIZE_MAXIMUM);
	result = backend_get(start->result->backend, KEY_FORMAT, &buffer,
	    deadline, error);
	buffer_free(&buffer);
	if (result != 0 && error->cause == CAUSE_NOT_FOUND) {
		error_clear(error);
		result = 0;
	}
	opening->overdue = result != 0 && error->cause ==
	    CAUSE_UNREACHABLE && clock_monotonic() >= deadline;
	return result;
}

/* One try at all of it. */
static int
try_once(struct start *start, const struct state *before, uint64_t until,
    struct opening *opening, struct error *error)
{
	const struct settings *settings = start->needs.settings;
	struct start_result *result = start->result;
	struct truth *first = NULL;
	int answer = -1;

	if (result->backend == NULL && (result->backend = remote_open(
	    settings->url, &settings->remote, true, error)) == NULL)
		return -1;
	if (result->writer == NULL) {
		if (knock(start, until, opening, error) != 0 ||
		    remote_mark(result->backend, error) != 0 ||
		    look(start, &first, error) != 0 ||
		    check_fence(start, before, first, error) != 0 ||
		    start_is_cancelled(start) ||
		    take_over(start, error) != 0)
			goto done;
		result->state.term = writer_term(result->writer);
		result->state.opened = clock_wall();
		/* Nobody came between the look and the takeover? */
		opening->precedence.mine = first != NULL &&
		    before->term.number > 0 &&
		    term_same(&first->term, &before->term) &&
		    result->state.term.number == before->term.number + 1;
		opening->precedence.opened = before->opened;
	}
	answer = look(start, &opening->truth, error);
done:
	truth_free(first);
	return answer;
}

static void
settle_precedence(struct opening *opening, const struct state *before)
{
	const struct truth *truth = opening->truth;

	if (truth == NULL || truth->resume == SIZE_MAX)
		return;
	opening->precedence.resume = truth->valid[truth->resume];
	opening->precedence.own = opening->precedence.mine &&
	    term_same(&opening->precedence.resume->term, &before->term);
}

/* Whether a failure may pass by itself. */
static bool
may_pass(const struct start *start, const struct error *error,
    uint64_t waited)
{
	if (error->class == ERROR_USAGE || error->class == ERROR_SUPERSEDED ||
	    error->cause == CAUSE_FEATURE || error->cause == CAUSE_CANCELLED)
		return false;
	if (error->cause == CAUSE_UNREACHABLE)
		return true;
	/* Beside a trainer that runs there is nothing better to do. */
	if (start->needs.give_up == CLOCK_NEVER)
		return true;
	return error->cause == CAUSE_DENIED && waited < DENIED_MAXIMUM;
}

/* A try that had no time to fail must not hide why others did. */
static void
remember_failure(struct opening *opening, struct error *error,
    struct error *last)
{
	if (!opening->overdue || last->class == ERROR_NONE) {
		*last = *error;
	} else {
		*error = *last;
		error_prefix(error, "no answer in time; before that");
	}
	opening->overdue = false;
}

static void
remember(struct start *start, struct state *before)
{
	*before = start->needs.remembered;
	if (before->term.number == 0)
		(void)state_load(start->needs.state_path, start->needs.folder,
		    start->needs.settings->url, before);
}

int
opening_run(struct start *start, struct opening *opening, struct error *error)
{
	char text[ERROR_TEXT_SIZE];
	uint64_t began = clock_monotonic(), until;
	struct error last = ERROR_INIT;	/* that the store itself gave */
	struct state before;
	unsigned attempt;

	until = start->needs.give_up == CLOCK_NEVER ? CLOCK_NEVER :
	    began + start->needs.give_up;
	remember(start, &before);
	for (attempt = 0; ; attempt++) {
		error_clear(error);
		if (try_once(start, &before, until, opening, error) == 0)
			break;
		if (start_is_cancelled(start))
			return error_set(error, ERROR_FAILED, CAUSE_CANCELLED,
			    start->needs.settings->url,
			    "stopped before the remote could be read");
		if (!may_pass(start, error, clock_monotonic() - began))
			return -1;
		remember_failure(opening, error, &last);
		log_line(LOG_WARNING, "remote_unreadable",
		    "the remote cannot be used yet, trying again: %s",
		    error_text(error, text));
		if (start_pause(start, attempt, until != CLOCK_NEVER &&
		    error->cause == CAUSE_DENIED &&
		    until > began + DENIED_MAXIMUM ?
		    began + DENIED_MAXIMUM : until) != 0)
			return -1;
	}
	settle_precedence(opening, &before);
	state_save(start->needs.state_path, start->needs.folder,
	    start->needs.settings->url, &start->result->state);
	return 0;
}

void
opening_end(struct opening *opening)
{
	truth_free(opening->truth);
	memset(opening, 0, sizeof(*opening));
}
