#include "notice/google.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/machine.h"
#include "notice/asker.h"
#include "notice/blame.h"
#include "notice/ledger.h"
#include "notice/pace.h"
#include "notice/sight.h"

#define USUAL_ADDRESS "http://169.254.169.254"
#define HEADER "Metadata-Flavor: Google"
#define LONGEST_ADDRESS 255

/* From `preempted` to the end, without an answer to "how long" in the guest. */
#define WINDOW (25 * CLOCK_SECOND)

/* The warning of a maintenance that ends a machine without a GPU. */
#define MAINTENANCE (60 * CLOCK_SECOND)

/* How long the server holds a request, and how much longer we wait. */
#define WAIT_SECONDS 60
#define WAIT_TIMEOUT ((WAIT_SECONDS + 10) * CLOCK_SECOND)
#define TIMEOUT (5 * CLOCK_SECOND)

#define PAUSE_FIRST (100 * CLOCK_MILLISECOND)
#define PAUSE_SEEN CLOCK_SECOND
#define PAUSE_NEVER_SEEN (10 * CLOCK_SECOND)
#define PAUSE_HIDDEN (60 * CLOCK_SECOND)

/*
 * A server that answers at once although nothing changed does not know how to
 * wait: after this many such answers it is asked once a second.
 */
#define HASTY 5

struct key {
	struct request request;
	uint64_t due;
	uint64_t pause;
	bool waited;			/* the request was a waiting one */
	int hasty;
	char etag[REQUEST_ETAG_SIZE];	/* "": read without waiting */
};

struct google {
	struct lookout *lookout;
	char *address;
	struct key keys[GOOGLE_KEYS];
};

static const char *const names[GOOGLE_KEYS] = {
	[GOOGLE_PREEMPTED] = "preempted",
	[GOOGLE_MAINTENANCE] = "maintenance-event",
};

static void
close_google(void *state)
{
	struct google *google = state;

	for (int i = 0; i < GOOGLE_KEYS; i++)
		asker_cancel(google->lookout->asker,
		    &google->keys[i].request);
	free(google->address);
	free(google);
}

static int
find_address(struct google *google, struct error *error)
{
	const char *endpoint = google->lookout->options->endpoint;
	const char *host = getenv("GCE_METADATA_HOST");
	int result;

	if (endpoint != NULL)
		result = asprintf(&google->address, "%s", endpoint);
	else if (host != NULL && host[0] != '\0')
		result = asprintf(&google->address, "http://%s", host);
	else
		result = asprintf(&google->address, "%s", USUAL_ADDRESS);
	if (result < 0) {
		google->address = NULL;
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	}
	if (result > LONGEST_ADDRESS)
		return error_set(error, ERROR_USAGE, CAUSE_LIMIT, NULL,
		    "GCE_METADATA_HOST is too long");
	return 0;
}

static void *
open_google(struct lookout *lookout, struct error *error)
{
	struct google *google = calloc(1, sizeof(*google));

	if (google == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	google->lookout = lookout;
	for (int i = 0; i < GOOGLE_KEYS; i++)
		request_init(&google->keys[i].request);
	if (find_address(google, error) != 0) {
		close_google(google);
		return NULL;
	}
	return google;
}

/* Trimmed; -1 when it is longer than any value, or empty. */
static int
read_value(const char *text, char value[64])
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	length = strlen(text);
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	if (length == 0 || length >= 64)
		return -1;
	memcpy(value, text, length);
	value[length] = '\0';
	return 0;
}

static int
read_preempted(struct ledger *ledger, const char *value, uint64_t window)
{
	struct ledger_word word = { .kind = NOTICE_DEADLINE,
	    .source = "google preempted", .id = "google-preempted",
	    .reason = "preempted", .usual = window };

	if (strcasecmp(value, "FALSE") == 0)
		return 0;
	if (strcasecmp(value, "TRUE") != 0)
		return -1;
	ledger_tell(ledger, &word);
	return 0;
}

/*
 * A live migration is survived.  Where a GPU is, an end is announced about an
 * hour before; SIGTERM will say when.
 */
static int
read_maintenance(struct ledger *ledger, const char *value)
{
	char id[96];
	struct ledger_word word = { .kind = NOTICE_HINT,
	    .source = "google maintenance", .id = id, .reason = value,
	    .usual = MAINTENANCE, .survives = true };

	if (strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != strlen(value))
		return -1;
	if (strcmp(value, "NONE") == 0)
		return 0;
	if (strstr(value, "TERMINATE") != NULL && !machine_has_gpu())
		word.kind = NOTICE_DEADLINE;
	snprintf(id, sizeof(id), "google-%.63s", value);
	ledger_tell(ledger, &word);
	return 0;
}

int
google_read(struct ledger *ledger, enum google_key key, const char *text,
    uint64_t window)
{
	char value[64];

	if (read_value(text, value) != 0)
		return -1;
	return key == GOOGLE_PREEMPTED ?
	    read_preempted(ledger, value, window) :
	    read_maintenance(ledger, value);
}

/*
 * Read once without waiting; then wait for a change from the ETag of that, so
 * that no change between two requests is missed.
 */
static void
start(struct google *google, int which)
{
	struct key *key = &google->keys[which];
	struct request *request = &key->request;
	char wait[REQUEST_ETAG_SIZE + 64] = "", path[320];

	key->waited = key->etag[0] != '\0';
	if (key->waited)
		snprintf(wait, sizeof(wait),
		    "?wait_for_change=true&last_etag=%s&timeout_sec=%d",
		    key->etag, WAIT_SECONDS);
	snprintf(path, sizeof(path), "%s/computeMetadata/v1/instance/%s",
	    google->address, names[which]);
	snprintf(request->url, sizeof(request->url), "%s%s", path, wait);
	request->headers[0] = HEADER;
	request->timeout = key->waited ? WAIT_TIMEOUT : TIMEOUT;
	asker_start(google->lookout->asker, request);
}

/* Then read without waiting, which shows what happened meanwhile. */
static void
fail(struct google *google, struct key *key)
{
	key->etag[0] = '\0';
	if (key->waited && key->hasty < HASTY)
		key->hasty++;
	key->pause = pace_grow(key->pause, PAUSE_FIRST,
	    sight_ever(google->lookout->sight) ? PAUSE_SEEN :
	    PAUSE_NEVER_SEEN);
	key->due = clock_monotonic() + pace_jitter(key->pause);
}

/*
 * GKE's own metadata server (Workload Identity) shows a pod only some keys:
 * "not found" is not "no notice".
 */
static void
say_hidden(struct google *google)
{
	struct error error = ERROR_INIT;

	error_set(&error, ERROR_FAILED, CAUSE_NOT_FOUND,
	    google->keys[GOOGLE_PREEMPTED].request.url,
	    "the metadata server hides whether this machine is preempted, as "
	    "GKE's does from pods");
	error_cure(&error, "use hostNetwork: true; without it SIGTERM and a "
	    "preStop hook with `ckptsync notice` still tell");
	sight_fails(google->lookout->sight, "hidden", true, &error);
}

static void
take_missing(struct google *google, int which)
{
	struct key *key = &google->keys[which];

	key->etag[0] = '\0';
	key->due = clock_monotonic() + pace_jitter(PAUSE_HIDDEN);
	if (which == GOOGLE_PREEMPTED)
		say_hidden(google);
}

/* An ETag goes into an address: take only what needs no escape there. */
static void
keep_etag(struct key *key)
{
	const char *etag = key->request.etag;
	size_t length = strlen(etag);

	if (strspn(etag, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	    "0123456789-._~") != length)
		length = 0;
	memcpy(key->etag, etag, length);
	key->etag[length] = '\0';
}

/* Ask at once after a good answer, unless that spins. */
static void
schedule(struct key *key)
{
	uint64_t now = clock_monotonic();

	key->due = now;
	if (key->waited && now - key->request.started >= CLOCK_SECOND)
		key->hasty = 0;
	else if (key->waited && key->hasty < HASTY)
		key->hasty++;
	if (key->hasty >= HASTY || key->etag[0] == '\0')
		key->due = key->request.started + pace_jitter(CLOCK_SECOND);
}

static void
take_value(struct google *google, int which)
{
	struct lookout *lookout = google->lookout;
	struct key *key = &google->keys[which];
	uint64_t window = lookout->options->google_notice;
	const char *text = buffer_text(&key->request.answer);

	ledger_begin(lookout->ledger, which);
	if (!key->request.google || google_read(lookout->ledger, which, text,
	    window != 0 ? window : WINDOW) != 0) {
		if (which == GOOGLE_PREEMPTED)
			blame_garbled(lookout->sight, key->request.url);
		fail(google, key);
		return;
	}
	ledger_end(lookout->ledger, which == GOOGLE_MAINTENANCE);
	if (which == GOOGLE_PREEMPTED)
		sight_works(lookout->sight);
	key->pause = 0;
	keep_etag(key);
	schedule(key);
}

static void
take(struct google *google, int which)
{
	struct key *key = &google->keys[which];

	key->request.state = REQUEST_IDLE;
	if (key->request.status == 200) {
		take_value(google, which);
	} else if (key->request.status == 404) {
		take_missing(google, which);
	} else {
		if (which == GOOGLE_PREEMPTED)
			blame_request(google->lookout->sight, &key->request);
		fail(google, key);
	}
}

static uint64_t
step_google(void *state)
{
	struct google *google = state;
	uint64_t next = CLOCK_NEVER;

	for (int i = 0; i < GOOGLE_KEYS; i++) {
		struct key *key = &google->keys[i];

		if (key->request.state == REQUEST_DONE)
			take(google, i);
		if (key->request.state == REQUEST_IDLE &&
		    key->due <= clock_monotonic())
			start(google, i);
		if (key->request.state == REQUEST_DONE)
			next = 0;
		else if (key->request.state == REQUEST_IDLE &&
		    key->due < next)
			next = key->due;
	}
	return next;
}

const struct lookout_cloud google_cloud = {
	.cloud = NOTICE_CLOUD_GOOGLE,
	.name = "google",
	.window = 30 * CLOCK_SECOND,
	.patience = 20 * CLOCK_SECOND,
	.open = open_google,
	.step = step_google,
	.close = close_google,
};
