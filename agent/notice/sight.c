#include "notice/sight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "notice/notice.h"
#include "notice/outbox.h"

#define FIRST_PATIENCE (3 * CLOCK_SECOND)
#define AGAIN (600 * CLOCK_SECOND)
#define CAUSES 16

struct sight {
	struct outbox *outbox;
	const char *source;
	uint64_t patience;
	bool ever;
	uint64_t failing_since;		/* 0: not failing */
	bool told;			/* whether anything was said at all */
	bool told_seeing;		/* what was said last */
	const char *told_cause;
	struct {
		const char *cause;
		uint64_t when;
	} causes[CAUSES];
	size_t cause_count;
};

struct sight *
sight_new(struct outbox *outbox, struct error *error)
{
	struct sight *sight = calloc(1, sizeof(*sight));

	if (sight == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	sight->outbox = outbox;
	sight->source = "cloud";
	return sight;
}

void
sight_free(struct sight *sight)
{
	free(sight);
}

void
sight_name(struct sight *sight, const char *source, uint64_t patience)
{
	sight->source = source;
	sight->patience = patience;
}

bool
sight_ever(const struct sight *sight)
{
	return sight->ever;
}

static int
say(struct sight *sight, enum notice_kind kind, const char *reason,
    const struct error *error)
{
	struct notice notice = { .kind = kind };

	snprintf(notice.source, sizeof(notice.source), "%s", sight->source);
	snprintf(notice.reason, sizeof(notice.reason), "%s", reason);
	if (error != NULL)
		notice.error = *error;
	return outbox_put(sight->outbox, &notice);
}

void
sight_works(struct sight *sight)
{
	sight->ever = true;
	sight->failing_since = 0;
	if (sight->told && sight->told_seeing)
		return;
	if (say(sight, NOTICE_SEEING, "", NULL) != 0)
		return;
	sight->told = true;
	sight->told_seeing = true;
}

/* Where ${cause} is noted, a new place for a new one; NULL: said just now. */
static uint64_t *
may_say(struct sight *sight, const char *cause, uint64_t now)
{
	for (size_t i = 0; i < sight->cause_count; i++)
		if (strcmp(sight->causes[i].cause, cause) == 0)
			return now - sight->causes[i].when < AGAIN ? NULL :
			    &sight->causes[i].when;
	if (sight->cause_count == CAUSES)
		return NULL;
	sight->causes[sight->cause_count].cause = cause;
	return &sight->causes[sight->cause_count].when;
}

void
sight_fails(struct sight *sight, const char *cause, bool certain,
    const struct error *error)
{
	uint64_t now = clock_monotonic(), patience, *when;

	if (sight->failing_since == 0)
		sight->failing_since = now;
	patience = sight->ever ? sight->patience :
	    certain ? 0 : FIRST_PATIENCE;
	if (now - sight->failing_since < patience)
		return;
	if (sight->told && !sight->told_seeing &&
	    strcmp(sight->told_cause, cause) == 0)
		return;
	when = may_say(sight, cause, now);
	if (when == NULL || say(sight, NOTICE_BLIND, cause, error) != 0)
		return;
	*when = now;
	if (when == &sight->causes[sight->cause_count].when)
		sight->cause_count++;
	sight->told = true;
	sight->told_seeing = false;
	sight->told_cause = cause;
}
