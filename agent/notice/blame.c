#include "notice/blame.h"

#include <errno.h>
#include <stdbool.h>

#include "base/error.h"
#include "notice/asker.h"
#include "notice/sight.h"

/*
 * What a connect says at once is this machine's own doing: EACCES for a
 * "prohibit" route, EINVAL for a "blackhole", EPERM for a firewall.
 */
static void
blame_route(struct sight *sight, const struct request *request)
{
	struct error error = request->error;

	error_prefix(&error, "the way to the metadata server is blocked");
	error_cure(&error, "allow it: a route or a firewall rule forbids it "
	    "(with systemd-imdsd: systemd.imds.network=unlocked); in a "
	    "container use the host's network");
	sight_fails(sight, "blocked", true, &error);
}

static void
blame_silence(struct sight *sight, const struct request *request)
{
	struct error error = request->error;

	error_prefix(&error, "the metadata server does not answer");
	error_cure(&error, "look for a firewall, a network policy or an agent "
	    "that keeps its address for itself; in a container use the host's "
	    "network");
	sight_fails(sight, "silent", false, &error);
}

static void
blame_status(struct sight *sight, const struct request *request)
{
	struct error error = ERROR_INIT;
	int status = request->status;
	bool passing = status == 404 || status == 408 || status == 410 ||
	    status == 429 || status >= 500;

	error_set(&error, ERROR_FAILED, passing ? CAUSE_UNREACHABLE :
	    CAUSE_DENIED, request->url, "the metadata server answered %d",
	    status);
	if (status >= 300 && status < 400)
		error_cure(&error, "a redirect is not followed; something "
		    "else answers at this address");
	else if (!passing)
		error_cure(&error, "something between here and the metadata "
		    "server refuses or changes the request; no proxy may be "
		    "in the way");
	sight_fails(sight, passing ? "unwell" : "refused", !passing, &error);
}

void
blame_request(struct sight *sight, const struct request *request)
{
	int number = request->system_error;

	if (request->status == 200)
		blame_garbled(sight, request->url);
	else if (request->status != 0)
		blame_status(sight, request);
	else if (number == EACCES || number == EPERM || number == EINVAL ||
	    number == ENETUNREACH || number == EHOSTUNREACH)
		blame_route(sight, request);
	else
		blame_silence(sight, request);
}

void
blame_garbled(struct sight *sight, const char *address)
{
	struct error error = ERROR_INIT;

	error_set(&error, ERROR_DAMAGED, CAUSE_OTHER, address,
	    "what answers there is not this cloud's metadata server");
	error_cure(&error, "check --cloud, and whether something else answers "
	    "at this address");
	sight_fails(sight, "garbled", false, &error);
}
