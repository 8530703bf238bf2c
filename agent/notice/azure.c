#include "notice/azure.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "notice/asker.h"
#include "notice/blame.h"
#include "notice/ledger.h"
#include "notice/pace.h"
#include "notice/sight.h"

#define USUAL_ADDRESS "http://169.254.169.254"
#define EVENTS "/metadata/scheduledevents?api-version=2020-07-01"
#define NAME "/metadata/instance/compute/name?api-version=2021-02-01" \
    "&format=text"
#define HEADER "Metadata: true"

#define INTERVAL CLOCK_SECOND
#define TIMEOUT (5 * CLOCK_SECOND)

/* The first request of a machine's life switches events on: two minutes. */
#define FIRST_TIMEOUT (130 * CLOCK_SECOND)
#define FIRST_INTERVAL (5 * CLOCK_SECOND)

#define PAUSE_FIRST CLOCK_SECOND
#define PAUSE_SEEN (2 * CLOCK_SECOND)
#define PAUSE_NEVER_SEEN (10 * CLOCK_SECOND)
#define PAUSE_NAME (30 * CLOCK_SECOND)

#define POLLS 2			/* the second overlaps a slow one */
#define ACKNOWLEDGE_TRIES 3
#define NAME_LIMIT 256

struct azure {
	struct lookout *lookout;
	char address[256];

	struct request polls[POLLS];
	uint64_t due;
	uint64_t pause;
	bool answered;			/* ever, with a document */
	uint64_t newest;		/* when the newest taken one was asked */
	int64_t incarnation;

	struct request whoami;
	uint64_t whoami_due;
	uint64_t whoami_pause;
	bool knows_name;
	char name[NAME_LIMIT];

	struct request acknowledge;
	char event[AZURE_EVENT_SIZE];	/* "": none is to be acknowledged */
	char *body;
	int tries;
	uint64_t acknowledge_due;
	struct buffer document;		/* the newest, for its resources */
};

static void
close_azure(void *state)
{
	struct azure *azure = state;
	struct asker *asker = azure->lookout->asker;

	for (int i = 0; i < POLLS; i++)
		asker_cancel(asker, &azure->polls[i]);
	asker_cancel(asker, &azure->whoami);
	asker_cancel(asker, &azure->acknowledge);
	buffer_free(&azure->document);
	free(azure->body);
	free(azure);
}

static void
prepare(struct azure *azure, struct request *request, const char *path,
    uint64_t timeout)
{
	request_init(request);
	snprintf(request->url, sizeof(request->url), "%s%s", azure->address,
	    path);
	request->headers[0] = HEADER;
	request->timeout = timeout;
}

static void *
open_azure(struct lookout *lookout, struct error *error)
{
	const char *endpoint = lookout->options->endpoint;
	struct azure *azure = calloc(1, sizeof(*azure));

	if (azure == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	azure->lookout = lookout;
	azure->incarnation = -1;
	snprintf(azure->address, sizeof(azure->address), "%s",
	    endpoint != NULL ? endpoint : USUAL_ADDRESS);
	for (int i = 0; i < POLLS; i++)
		prepare(azure, &azure->polls[i], EVENTS, FIRST_TIMEOUT);
	prepare(azure, &azure->whoami, NAME, 2 * TIMEOUT);
	prepare(azure, &azure->acknowledge, EVENTS, TIMEOUT);
	azure->acknowledge.method = "POST";
	azure->acknowledge.headers[1] = "Content-Type: application/json";
	buffer_init(&azure->document, azure->polls[0].answer.limit);

	/* Often the machine's name; better than none until it is known. */
	if (gethostname(azure->name, sizeof(azure->name) - 1) != 0)
		azure->name[0] = '\0';
	return azure;
}

static void
put_off(struct azure *azure)
{
	uint64_t until;

	azure->pause = pace_grow(azure->pause, PAUSE_FIRST,
	    azure->answered ? PAUSE_SEEN : PAUSE_NEVER_SEEN);
	until = clock_monotonic() + pace_jitter(azure->pause);
	if (azure->due < until)
		azure->due = until;
}

/* The answers of overlapping requests can come in the wrong order. */
static void
take_document(struct azure *azure, struct request *request)
{
	struct lookout *lookout = azure->lookout;
	struct error ignored = ERROR_INIT;
	bool late = request->started < azure->newest;
	int64_t incarnation = late ? azure->incarnation : -1;

	if (azure_read(lookout->ledger, buffer_text(&request->answer),
	    request->answer.length, azure->name, &incarnation) != 0) {
		blame_garbled(lookout->sight, request->url);
		put_off(azure);
		return;
	}
	if (!azure->answered)
		azure->due = clock_monotonic() + pace_jitter(INTERVAL);
	azure->answered = true;
	azure->pause = 0;
	azure->incarnation = incarnation;
	for (int i = 0; i < POLLS; i++)
		azure->polls[i].timeout = TIMEOUT;
	if (azure->knows_name)
		sight_works(lookout->sight);
	if (late)
		return;
	azure->newest = request->started;
	buffer_clear(&azure->document);
	buffer_append(&azure->document, buffer_text(&request->answer),
	    request->answer.length, &ignored);
}

/* Read the newest document again, now that its names can be told apart. */
static void
read_again(struct azure *azure)
{
	struct lookout *lookout = azure->lookout;
	int64_t incarnation = -1;

	if (azure_read(lookout->ledger, buffer_text(&azure->document),
	    azure->document.length, azure->name, &incarnation) == 0)
		sight_works(lookout->sight);
}

/* A name is one word; a page of HTML is none. */
static bool
take_name(struct azure *azure)
{
	const char *text = buffer_text(&azure->whoami.answer);
	size_t length = azure->whoami.answer.length;

	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	if (length == 0 || length >= sizeof(azure->name))
		return false;
	for (size_t i = 0; i < length; i++)
		if (text[i] <= ' ' || text[i] > '~' || text[i] == '<')
			return false;
	memcpy(azure->name, text, length);
	azure->name[length] = '\0';
	azure->knows_name = true;
	return true;
}

/*
 * Scale-set machines are called otherwise than their hosts, and the document
 * speaks of others: without its own name a machine cannot tell.
 */
static void
step_name(struct azure *azure)
{
	struct request *request = &azure->whoami;

	if (request->state == REQUEST_DONE) {
		request->state = REQUEST_IDLE;
		if (request->status == 200 && take_name(azure)) {
			read_again(azure);
			return;
		}
		blame_request(azure->lookout->sight, request);
		azure->whoami_pause = pace_grow(azure->whoami_pause,
		    PAUSE_FIRST, PAUSE_NAME);
		azure->whoami_due = clock_monotonic() +
		    pace_jitter(azure->whoami_pause);
	}
	if (!azure->knows_name && request->state == REQUEST_IDLE &&
	    azure->whoami_due <= clock_monotonic())
		asker_start(azure->lookout->asker, request);
}

/*
 * 404, 410, 429 and 5xx are spells of a server that is being renewed (cloud-
 * init retries the same).  While one request hangs, a second one is sent: one
 * lost poll may be all of the warning.
 */
static void
step_polls(struct azure *azure)
{
	for (int i = 0; i < POLLS; i++) {
		struct request *request = &azure->polls[i];

		if (request->state != REQUEST_DONE)
			continue;
		request->state = REQUEST_IDLE;
		if (request->status == 200) {
			take_document(azure, request);
			continue;
		}
		blame_request(azure->lookout->sight, request);
		put_off(azure);
	}
	for (int i = 0; i < POLLS; i++) {
		uint64_t now = clock_monotonic();

		if (azure->polls[i].state != REQUEST_IDLE || azure->due > now)
			continue;
		azure->due = now + pace_jitter(azure->answered ? INTERVAL :
		    FIRST_INTERVAL);
		asker_start(azure->lookout->asker, &azure->polls[i]);
	}
}

static void
step_acknowledge(struct azure *azure)
{
	struct request *request = &azure->acknowledge;

	if (request->state == REQUEST_DONE) {
		request->state = REQUEST_IDLE;
		if (request->status == 200 ||
		    ++azure->tries == ACKNOWLEDGE_TRIES) {
			log_line(request->status == 200 ? LOG_INFO :
			    LOG_WARNING, "acknowledge",
			    request->status == 200 ?
			    "told Azure to go on with the event %s" :
			    "could not tell Azure to go on with the event %s",
			    azure->event);
			azure->event[0] = '\0';
		}
		azure->acknowledge_due = clock_monotonic() +
		    pace_jitter(CLOCK_SECOND);
	}
	if (azure->event[0] == '\0' || request->state != REQUEST_IDLE ||
	    azure->acknowledge_due > clock_monotonic())
		return;
	request->body = azure->body;
	asker_start(azure->lookout->asker, request);
}

/* An acknowledgement speaks for every machine that the event names. */
static void
acknowledge(void *state, const char *id)
{
	struct azure *azure = state;
	json_t *object;

	if (!azure->lookout->options->azure_acknowledge ||
	    !azure->knows_name || azure->event[0] != '\0' ||
	    !ledger_holds(azure->lookout->ledger, id))
		return;
	if (!azure_is_ours_alone(buffer_text(&azure->document),
	    azure->document.length, azure->name, id, azure->event)) {
		log_line(LOG_INFO, "acknowledge", "not telling Azure to go "
		    "on: the event concerns other machines too, or is over");
		return;
	}
	object = json_pack("{s:[{s:s}]}", "StartRequests", "EventId",
	    azure->event);
	free(azure->body);
	azure->body = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	if (azure->body == NULL)
		azure->event[0] = '\0';
	azure->tries = 0;
	azure->acknowledge_due = 0;
}

static uint64_t
earlier(uint64_t next, const struct request *request, bool wanted,
    uint64_t due)
{
	if (request->state == REQUEST_DONE)
		return 0;
	return wanted && request->state == REQUEST_IDLE && due < next ? due :
	    next;
}

static uint64_t
step_azure(void *state)
{
	struct azure *azure = state;
	uint64_t next = CLOCK_NEVER;

	step_name(azure);
	step_polls(azure);
	step_acknowledge(azure);
	for (int i = 0; i < POLLS; i++)
		next = earlier(next, &azure->polls[i], true, azure->due);
	next = earlier(next, &azure->whoami, !azure->knows_name,
	    azure->whoami_due);
	return earlier(next, &azure->acknowledge, azure->event[0] != '\0',
	    azure->acknowledge_due);
}

const struct lookout_cloud azure_cloud = {
	.cloud = NOTICE_CLOUD_AZURE,
	.name = "azure",
	.window = 30 * CLOCK_SECOND,
	.patience = 90 * CLOCK_SECOND,
	.open = open_azure,
	.step = step_azure,
	.acknowledge = acknowledge,
	.close = close_azure,
};
