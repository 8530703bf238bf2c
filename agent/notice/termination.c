#include "notice/termination.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "notice/asker.h"
#include "notice/blame.h"
#include "notice/ledger.h"
#include "notice/pace.h"
#include "notice/sight.h"
#include "notice/wall_time.h"

#define INTERVAL (2 * CLOCK_SECOND)
#define TIMEOUT (3 * CLOCK_SECOND)

#define PAUSE_FIRST (250 * CLOCK_MILLISECOND)
#define PAUSE_SEEN (2 * CLOCK_SECOND)
#define PAUSE_NEVER_SEEN (30 * CLOCK_SECOND)

#define TOKEN_SIZE 512

struct termination {
	const struct termination_plan *plan;
	struct lookout *lookout;
	const char *address;
	struct request poll;
	struct request renewal;		/* the call for a token */
	uint64_t due;
	uint64_t pause;
	bool wants_token;
	char token[TOKEN_SIZE];		/* as a header; "": none */
};

void
termination_close(void *state)
{
	struct termination *termination = state;
	struct asker *asker = termination->lookout->asker;

	asker_cancel(asker, &termination->poll);
	asker_cancel(asker, &termination->renewal);
	free(termination);
}

void *
termination_open(const struct termination_plan *plan,
    struct lookout *lookout, struct error *error)
{
	struct termination *termination = calloc(1, sizeof(*termination));

	if (termination == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	termination->plan = plan;
	termination->lookout = lookout;
	termination->address = lookout->options->endpoint != NULL ?
	    lookout->options->endpoint : plan->address;
	request_init(&termination->poll);
	request_init(&termination->renewal);
	return termination;
}

int
termination_read(struct ledger *ledger, const struct termination_plan *plan,
    const char *text)
{
	char source[32], id[96];
	struct timespec when;
	struct ledger_word word = { .kind = NOTICE_DEADLINE,
	    .source = source, .id = id, .reason = "termination",
	    .stated = &when };

	if (wall_time_parse(text, plan->zone, &when) != 0)
		return -1;
	snprintf(source, sizeof(source), "%s spot", plan->name);
	snprintf(id, sizeof(id), "%s-termination", plan->name);
	ledger_tell(ledger, &word);
	return 0;
}

static void
start_poll(struct termination *termination)
{
	struct request *poll = &termination->poll;
	uint64_t now = clock_monotonic();

	snprintf(poll->url, sizeof(poll->url), "%s%s", termination->address,
	    termination->plan->path);
	poll->headers[0] = termination->token[0] != '\0' ?
	    termination->token : NULL;
	poll->timeout = TIMEOUT;
	termination->due = now + pace_jitter(INTERVAL);
	asker_start(termination->lookout->asker, poll);
}

static void
start_renewal(struct termination *termination)
{
	struct request *renewal = &termination->renewal;

	snprintf(renewal->url, sizeof(renewal->url), "%s%s",
	    termination->address, termination->plan->token_path);
	renewal->method = "PUT";
	renewal->headers[0] = termination->plan->token_life;
	renewal->timeout = TIMEOUT;
	asker_start(termination->lookout->asker, renewal);
}

static void
fail(struct termination *termination, const struct request *request)
{
	blame_request(termination->lookout->sight, request);
	termination->pause = pace_grow(termination->pause, PAUSE_FIRST,
	    sight_ever(termination->lookout->sight) ? PAUSE_SEEN :
	    PAUSE_NEVER_SEEN);
	termination->due = clock_monotonic() +
	    pace_jitter(termination->pause);
}

/* The document is the time, or "" where nothing is planned. */
static void
take_document(struct termination *termination, const char *text)
{
	struct lookout *lookout = termination->lookout;

	ledger_begin(lookout->ledger, 0);
	if (text[0] != '\0' && termination_read(lookout->ledger,
	    termination->plan, text) != 0) {
		fail(termination, &termination->poll);
		return;
	}
	ledger_end(lookout->ledger, false);
	sight_works(lookout->sight);
	termination->pause = 0;
}

/* A hardened machine refuses requests without a token, or with an old one. */
static void
take_poll(struct termination *termination)
{
	struct request *poll = &termination->poll;
	bool refused = poll->status == 401 || poll->status == 403;

	poll->state = REQUEST_IDLE;
	if (poll->status == 200 && poll->answer.length > 0) {
		take_document(termination, buffer_text(&poll->answer));
	} else if (poll->status == 404) {
		take_document(termination, "");
	} else if (refused && termination->plan->token_path != NULL &&
	    !termination->wants_token) {
		termination->token[0] = '\0';
		termination->wants_token = true;
		termination->due = clock_monotonic();
	} else {
		termination->token[0] = '\0';
		fail(termination, poll);
	}
	if (!refused)
		termination->wants_token = false;
}

static bool
keep_token(struct termination *termination)
{
	const struct buffer *answer = &termination->renewal.answer;

	if (answer->length == 0 || answer->length >= TOKEN_SIZE - 64)
		return false;
	for (size_t i = 0; i < answer->length; i++)
		if (!isgraph((unsigned char)answer->data[i]) ||
		    answer->data[i] == '<')
			return false;
	snprintf(termination->token, sizeof(termination->token), "%s%s",
	    termination->plan->token_header, buffer_text(answer));
	return true;
}

static void
take_renewal(struct termination *termination)
{
	struct request *renewal = &termination->renewal;

	renewal->state = REQUEST_IDLE;
	if (renewal->status == 200 && keep_token(termination))
		return;
	termination->wants_token = false;
	fail(termination, renewal);
}

uint64_t
termination_step(void *state)
{
	struct termination *termination = state;
	struct request *poll = &termination->poll;
	struct request *renewal = &termination->renewal;

	if (renewal->state == REQUEST_DONE)
		take_renewal(termination);
	if (poll->state == REQUEST_DONE)
		take_poll(termination);
	if (poll->state == REQUEST_IDLE && renewal->state == REQUEST_IDLE &&
	    termination->due <= clock_monotonic()) {
		if (termination->wants_token && termination->token[0] == '\0')
			start_renewal(termination);
		else
			start_poll(termination);
	}
	if (poll->state == REQUEST_DONE || renewal->state == REQUEST_DONE)
		return 0;
	if (poll->state == REQUEST_RUNNING ||
	    renewal->state == REQUEST_RUNNING)
		return CLOCK_NEVER;
	return termination->due;
}
