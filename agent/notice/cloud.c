#include "notice/cloud.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/machine.h"
#include "notice/asker.h"
#include "notice/lookout.h"
#include "notice/pace.h"
#include "notice/sight.h"
#include "s3/metadata.h"

#define TIMEOUT (2 * CLOCK_SECOND)
#define PAUSE_FIRST (30 * CLOCK_SECOND)
#define PAUSE_LAST (600 * CLOCK_SECOND)

/* A real token has 56 letters; "OK" is somebody else's. */
#define SHORTEST_TOKEN 16

enum probe_kind { AWS_TOKEN, AWS_PLAIN, GOOGLE, AZURE, ALIBABA, TENCENT,
	PROBES };

struct cloud_search {
	struct lookout *lookout;
	struct request requests[PROBES];
	bool running;
	bool told;
	uint64_t due;
	uint64_t pause;
};

/* One word of plain letters: what a page of HTML is not. */
static bool
is_a_word(const struct request *request, size_t shortest)
{
	const struct buffer *answer = &request->answer;
	size_t length = answer->length;

	while (length > 0 && isspace((unsigned char)answer->data[length - 1]))
		length--;
	if (length < shortest || length > 1024)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)answer->data[i]) ||
		    answer->data[i] == '<')
			return false;
	return true;
}

static bool
begins_with(const struct request *request, const char *beginning)
{
	return is_a_word(request, strlen(beginning) + 1) &&
	    strncmp(buffer_text(&request->answer), beginning,
	    strlen(beginning)) == 0;
}

static bool
gave_a_token(const struct request *request)
{
	return request->status == 200 && is_a_word(request, SHORTEST_TOKEN);
}

/* Tokens are required here, and the way to one is closed (hop limit). */
static bool
wants_a_token(const struct request *request)
{
	return request->status == 401;
}

static bool
is_google(const struct request *request)
{
	return request->google;
}

/* Others at the same address answer 404 or, without the header, 400. */
static bool
gave_a_name(const struct request *request)
{
	return request->status == 200 && is_a_word(request, 1);
}

static bool
is_alibaba(const struct request *request)
{
	return request->status == 200 && begins_with(request, "i-");
}

static bool
is_tencent(const struct request *request)
{
	return request->status == 200 && begins_with(request, "ins-");
}

static const struct probe {
	enum notice_cloud cloud;
	const char *method;
	const char *address;
	const char *path;
	const char *header;
	bool (*is_it)(const struct request *request);
} probes[PROBES] = {
	[AWS_TOKEN] = { NOTICE_CLOUD_AWS, "PUT", "http://169.254.169.254",
	    "/latest/api/token",
	    "X-aws-ec2-metadata-token-ttl-seconds: 60", gave_a_token },
	[AWS_PLAIN] = { NOTICE_CLOUD_AWS, "GET", "http://169.254.169.254",
	    "/latest/meta-data/", NULL, wants_a_token },
	[GOOGLE] = { NOTICE_CLOUD_GOOGLE, "GET", "http://169.254.169.254",
	    "/computeMetadata/v1/", "Metadata-Flavor: Google", is_google },
	[AZURE] = { NOTICE_CLOUD_AZURE, "GET", "http://169.254.169.254",
	    "/metadata/instance/compute/name?api-version=2021-02-01"
	    "&format=text", "Metadata: true", gave_a_name },
	[ALIBABA] = { NOTICE_CLOUD_ALIBABA, "GET", "http://100.100.100.200",
	    "/latest/meta-data/instance-id", NULL, is_alibaba },
	[TENCENT] = { NOTICE_CLOUD_TENCENT, "GET",
	    "http://metadata.tencentyun.com",
	    "/latest/meta-data/instance-id", NULL, is_tencent },
};

struct cloud_search *
cloud_new(struct lookout *lookout, struct error *error)
{
	struct cloud_search *search = calloc(1, sizeof(*search));

	if (search == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	search->lookout = lookout;
	for (int i = 0; i < PROBES; i++)
		request_init(&search->requests[i]);
	return search;
}

static void
cancel_all(struct cloud_search *search)
{
	for (int i = 0; i < PROBES; i++)
		asker_cancel(search->lookout->asker, &search->requests[i]);
	search->running = false;
}

void
cloud_free(struct cloud_search *search)
{
	if (search == NULL)
		return;
	cancel_all(search);
	free(search);
}

/* The variables that move a cloud's server move its probe. */
static void
write_address(const struct cloud_search *search, enum probe_kind kind,
    char address[256])
{
	const char *endpoint = search->lookout->options->endpoint;
	const char *aws = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	const char *google = getenv("GCE_METADATA_HOST");

	if (endpoint != NULL)
		snprintf(address, 256, "%s", endpoint);
	else if (probes[kind].cloud == NOTICE_CLOUD_AWS && aws != NULL &&
	    aws[0] != '\0')
		snprintf(address, 256, "%s", aws);
	else if (kind == GOOGLE && google != NULL && google[0] != '\0')
		snprintf(address, 256, "http://%s", google);
	else
		snprintf(address, 256, "%s", probes[kind].address);
	for (size_t n = strlen(address); n > 0 && address[n - 1] == '/'; n--)
		address[n - 1] = '\0';
}

static void
start_all(struct cloud_search *search)
{
	char address[256];

	search->running = true;
	for (int i = 0; i < PROBES; i++) {
		struct request *request = &search->requests[i];

		if (probes[i].cloud == NOTICE_CLOUD_AWS &&
		    search->lookout->options->endpoint == NULL &&
		    metadata_disabled())
			continue;
		write_address(search, i, address);
		snprintf(request->url, sizeof(request->url), "%s%s", address,
		    probes[i].path);
		request->method = probes[i].method;
		request->headers[0] = probes[i].header;
		request->timeout = TIMEOUT;
		asker_start(search->lookout->asker, request);
	}
}

/*
 * A plain 401 counts only when the call for a token has failed: the server of
 * another cloud may ask for tokens of its own.
 */
static const struct lookout_cloud *
look(struct cloud_search *search, bool *pending)
{
	*pending = false;
	for (int i = 0; i < PROBES; i++) {
		struct request *request = &search->requests[i];

		if (request->state == REQUEST_RUNNING)
			*pending = true;
		if (request->state != REQUEST_DONE ||
		    !probes[i].is_it(request))
			continue;
		if (i == AWS_PLAIN && search->requests[AWS_TOKEN].state ==
		    REQUEST_RUNNING)
			continue;
		return lookout_find(probes[i].cloud);
	}
	return NULL;
}

static void
say_none(struct cloud_search *search)
{
	struct error error = ERROR_INIT;

	error_set(&error, ERROR_FAILED, CAUSE_UNREACHABLE, NULL,
	    "no cloud's metadata server answers here: only signals and "
	    "`ckptsync notice` tell that this machine goes");
	error_cure(&error, "name the cloud with --cloud, or say --cloud none "
	    "where there is none");
	sight_fails(search->lookout->sight, "no cloud", true, &error);
}

static uint64_t
step_probes(struct cloud_search *search, const struct lookout_cloud **found)
{
	bool pending;

	if (!search->running) {
		if (search->due > clock_monotonic())
			return search->due;
		start_all(search);
	}
	*found = look(search, &pending);
	if (*found == NULL && pending)
		return CLOCK_NEVER;
	cancel_all(search);
	if (*found != NULL)
		return 0;
	say_none(search);
	search->pause = pace_grow(search->pause, PAUSE_FIRST, PAUSE_LAST);
	search->due = clock_monotonic() + pace_jitter(search->pause);
	return search->due;
}

/* Clouds that say nothing inside the machine; SIGTERM is all. */
static void
say_silent_cloud(struct cloud_search *search, const char *name)
{
	struct error error = ERROR_INIT;

	error_set(&error, ERROR_FAILED, CAUSE_UNSUPPORTED, NULL,
	    "this machine is of the cloud \"%s\", which says nothing inside "
	    "it before it goes: only signals and `ckptsync notice` tell",
	    name);
	error_cure(&error, "give the stop of this service the time that the "
	    "cloud gives, and say so with --grace");
	sight_fails(search->lookout->sight, "silent cloud", true, &error);
}

uint64_t
cloud_step(struct cloud_search *search, const struct lookout_cloud **found)
{
	const char *name;

	*found = NULL;
	if (search->running || search->due != 0)
		return step_probes(search, found);
	name = machine_cloud();
	if (name == NULL)
		return step_probes(search, found);
	*found = lookout_find_name(name);
	if (*found != NULL)
		return 0;
	say_silent_cloud(search, name);
	return CLOCK_NEVER;
}
