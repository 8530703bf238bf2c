#include "notice/aws.h"

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
#include "s3/metadata.h"

#define ANSWER_LIMIT (256 * 1024)
#define PROBE_TIMEOUT CLOCK_SECOND

/* A server that has answered before is asked often again, whatever it does. */
#define PAUSE_FIRST (250 * CLOCK_MILLISECOND)
#define PAUSE_SEEN (2 * CLOCK_SECOND)
#define PAUSE_NEVER_SEEN (30 * CLOCK_SECOND)

static const struct {
	const char *path;
	uint64_t interval;
} items[AWS_ITEMS] = {
	[AWS_SPOT] = { "/latest/meta-data/spot/instance-action",
	    CLOCK_SECOND },
	[AWS_LIFECYCLE] = {
	    "/latest/meta-data/autoscaling/target-lifecycle-state",
	    5 * CLOCK_SECOND },
	[AWS_REBALANCE] = {
	    "/latest/meta-data/events/recommendations/rebalance",
	    10 * CLOCK_SECOND },
	[AWS_MAINTENANCE] = {
	    "/latest/meta-data/events/maintenance/scheduled",
	    30 * CLOCK_SECOND },
};

struct aws {
	struct lookout *lookout;
	struct metadata *metadata;	/* NULL: switched off */
	uint64_t due[AWS_ITEMS];
	uint64_t pause;
	struct buffer answer;
	struct request probe;		/* a plain GET, to find the cause */
	struct error failure;		/* that the probe looks into */
};

static void
close_aws(void *state)
{
	struct aws *aws = state;

	asker_cancel(aws->lookout->asker, &aws->probe);
	metadata_free(aws->metadata);
	buffer_free(&aws->answer);
	free(aws);
}

static void *
open_aws(struct lookout *lookout, struct error *error)
{
	struct aws *aws = calloc(1, sizeof(*aws));

	if (aws == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	aws->lookout = lookout;
	buffer_init(&aws->answer, ANSWER_LIMIT);
	request_init(&aws->probe);
	if (lookout->options->endpoint == NULL && metadata_disabled())
		return aws;
	aws->metadata = metadata_new_at(lookout->options->endpoint,
	    lookout->interrupt, error);
	if (aws->metadata == NULL) {
		close_aws(aws);
		return NULL;
	}
	return aws;
}

static void
say_switched_off(struct aws *aws)
{
	struct error error = ERROR_INIT;

	error_set(&error, ERROR_FAILED, CAUSE_UNSUPPORTED, NULL,
	    "AWS_EC2_METADATA_DISABLED is set, so the metadata server is not "
	    "asked for notices");
	error_cure(&error, "unset it for ckptsync");
	sight_fails(aws->lookout->sight, "switched off", true, &error);
}

/*
 * The token call got no answer.  Its answer may travel only one hop by
 * default, so a container on a bridge never gets it, while a plain request is
 * answered with 401 (DataDog/datadog-agent#55269).
 */
static void
start_probe(struct aws *aws, const struct error *failure)
{
	struct request *probe = &aws->probe;

	aws->failure = *failure;
	snprintf(probe->url, sizeof(probe->url), "%s/latest/meta-data/",
	    metadata_address(aws->metadata));
	probe->timeout = PROBE_TIMEOUT;
	asker_start(aws->lookout->asker, probe);
}

static void
take_probe(struct aws *aws)
{
	struct error error = aws->failure;

	aws->probe.state = REQUEST_IDLE;
	if (aws->probe.status == 0) {
		blame_request(aws->lookout->sight, &aws->probe);
		return;
	}
	error_prefix(&error, "the metadata server answers a plain request "
	    "(%d) and not the call for a token, as behind a container's "
	    "bridge", aws->probe.status);
	error_cure(&error, "let its answers travel further: aws ec2 "
	    "modify-instance-metadata-options --http-put-response-hop-limit 2 "
	    "--instance-id ID; or use the host's network");
	sight_fails(aws->lookout->sight, "hop limit", true, &error);
}

static void
say_failure(struct aws *aws, const struct error *failure)
{
	struct error error = *failure;

	if (failure->cause == CAUSE_UNREACHABLE &&
	    strstr(failure->object, "/api/token") != NULL) {
		if (aws->probe.state == REQUEST_IDLE)
			start_probe(aws, failure);
		return;
	}
	if (error.cure[0] == '\0')
		error_cure(&error, "look for a firewall, an iptables rule or "
		    "an agent in front of the metadata server");
	sight_fails(aws->lookout->sight, failure->cause == CAUSE_DENIED ?
	    "refused" : "unwell", failure->cause == CAUSE_DENIED, &error);
}

/* The server is not well: ask nothing for a moment. */
static void
put_off(struct aws *aws)
{
	uint64_t until;

	aws->pause = pace_grow(aws->pause, PAUSE_FIRST,
	    sight_ever(aws->lookout->sight) ? PAUSE_SEEN : PAUSE_NEVER_SEEN);
	until = clock_monotonic() + pace_jitter(aws->pause);
	for (int i = 0; i < AWS_ITEMS; i++)
		if (aws->due[i] < until)
			aws->due[i] = until;
}

/* Take the answer, "" for one that says that there is nothing. */
static void
take_answer(struct aws *aws, enum aws_item item)
{
	struct ledger *ledger = aws->lookout->ledger;
	struct sight *sight = aws->lookout->sight;
	int result = 0;

	ledger_begin(ledger, item);
	if (aws->answer.length > 0)
		result = aws_read(ledger, item, buffer_text(&aws->answer),
		    aws->answer.length);
	if (result == 0)
		ledger_end(ledger, item == AWS_MAINTENANCE ||
		    item == AWS_LIFECYCLE);
	if (item != AWS_SPOT)
		return;
	if (result == 0) {
		aws->pause = 0;
		sight_works(sight);
	} else {
		blame_garbled(sight, items[item].path);
		put_off(aws);
	}
}

/* Return false when the server is not well. */
static bool
ask(struct aws *aws, enum aws_item item)
{
	struct error error = ERROR_INIT;
	uint64_t started = clock_monotonic();

	aws->due[item] = started + pace_jitter(items[item].interval);
	buffer_clear(&aws->answer);
	if (metadata_get(aws->metadata, items[item].path, &aws->answer,
	    &error) == 0) {
		take_answer(aws, item);
		return true;
	}
	buffer_clear(&aws->answer);
	if (error.cause == CAUSE_NOT_FOUND) {
		take_answer(aws, item);
		return true;
	}
	if (error.cause == CAUSE_CANCELLED)
		return false;

	/* A filter that lets only some items through refuses the others. */
	if (error.cause == CAUSE_DENIED && item != AWS_SPOT)
		return true;
	say_failure(aws, &error);
	put_off(aws);
	return false;
}

static uint64_t
step_aws(void *state)
{
	struct aws *aws = state;
	uint64_t next = CLOCK_NEVER;

	if (aws->metadata == NULL) {
		say_switched_off(aws);
		return CLOCK_NEVER;
	}
	if (aws->probe.state == REQUEST_DONE)
		take_probe(aws);
	for (int i = 0; i < AWS_ITEMS; i++)
		if (aws->due[i] <= clock_monotonic() && !ask(aws, i))
			break;
	for (int i = 0; i < AWS_ITEMS; i++)
		if (aws->due[i] < next)
			next = aws->due[i];
	return next;
}

const struct lookout_cloud aws_cloud = {
	.cloud = NOTICE_CLOUD_AWS,
	.name = "aws",
	.window = 120 * CLOCK_SECOND,
	.patience = 60 * CLOCK_SECOND,
	.open = open_aws,
	.step = step_aws,
	.close = close_aws,
};
