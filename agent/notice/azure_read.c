#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "notice/azure.h"
#include "notice/ledger.h"
#include "notice/wall_time.h"

/*
 * An event without a time has started, or will so soon that nobody knew when:
 * machines are often gone in less (Azure/karpenter-provider-azure#1769).
 */
#define USUAL (10 * CLOCK_SECOND)

/* What is further away is a hint. */
#define NEAR (10 * 60 * (int64_t)CLOCK_SECOND)

/* Names of machines are compared as Azure does, whatever their case. */
static bool
names(const json_t *event, const char *name, size_t *others)
{
	const json_t *resources = json_object_get(event, "Resources");
	bool found = false;
	size_t i;
	json_t *resource;

	*others = 0;
	json_array_foreach(resources, i, resource) {
		if (!found && json_is_string(resource) &&
		    strcasecmp(json_string_value(resource), name) == 0)
			found = true;
		else
			(*others)++;
	}
	return found;
}

static bool
is_over(const json_t *event)
{
	const char *status = json_get_text(event, "EventStatus");

	return status != NULL && (strcasecmp(status, "Completed") == 0 ||
	    strcasecmp(status, "Canceled") == 0 ||
	    strcasecmp(status, "Cancelled") == 0);
}

/*
 * A freeze is a pause of seconds that programs outlive; a rebalance
 * recommendation announces nothing.  A type that is unknown is the end.
 */
static bool
is_only_a_hint(const char *type)
{
	return strcasecmp(type, "Freeze") == 0 ||
	    strcasestr(type, "Rebalance") != NULL;
}

static void
write_id(char id[96], const char *event)
{
	snprintf(id, 96, "azure-%.80s", event);
}

static void
read_event(struct ledger *ledger, const json_t *event, const char *name)
{
	const char *type = json_get_text(event, "EventType");
	const char *number = json_get_text(event, "EventId");
	const char *time = json_get_text(event, "NotBefore");
	const char *from = json_get_text(event, "EventSource");
	char source[32], id[96], reason[160];
	struct timespec when;
	size_t others;
	struct ledger_word word = { .kind = NOTICE_DEADLINE,
	    .source = source, .id = id, .reason = reason, .usual = USUAL };

	if (!names(event, name, &others) || is_over(event))
		return;
	if (type == NULL)
		type = "unknown event";
	snprintf(source, sizeof(source), "azure %.24s", type);
	write_id(id, number != NULL ? number : type);
	snprintf(reason, sizeof(reason), "%.64s%s%.64s", type,
	    from != NULL ? " by " : "", from != NULL ? from : "");
	word.survives = strcasecmp(type, "Freeze") == 0 ||
	    strcasecmp(type, "Reboot") == 0;
	if (time != NULL && wall_time_parse(time, 0, &when) == 0)
		word.stated = &when;
	if (is_only_a_hint(type) ||
	    (word.stated != NULL && wall_time_left(when) > NEAR))
		word.kind = NOTICE_HINT;
	ledger_tell(ledger, &word);
}

static json_t *
read_document(const char *text, size_t length, json_t **events,
    json_int_t *incarnation)
{
	struct error ignored = ERROR_INIT;
	json_t *document = json_read(text, length, "notice", &ignored);
	const json_t *number = json_object_get(document,
	    "DocumentIncarnation");

	*events = json_object_get(document, "Events");
	if (!json_is_array(*events)) {
		json_decref(document);
		return NULL;
	}
	*incarnation = json_is_integer(number) ? json_integer_value(number) :
	    0;
	return document;
}

int
azure_read(struct ledger *ledger, const char *text, size_t length,
    const char *name, int64_t *incarnation)
{
	json_int_t number;
	json_t *events, *event;
	json_t *document = read_document(text, length, &events, &number);
	size_t i;

	if (document == NULL)
		return -1;
	if (*incarnation < 0 || number >= *incarnation) {
		*incarnation = number;
		ledger_begin(ledger, 0);
		json_array_foreach(events, i, event)
			read_event(ledger, event, name);
		ledger_end(ledger, true);
	}
	json_decref(document);
	return 0;
}

bool
azure_is_ours_alone(const char *text, size_t length, const char *name,
    const char *id, char event[AZURE_EVENT_SIZE])
{
	json_int_t number;
	json_t *events, *one;
	json_t *document = read_document(text, length, &events, &number);
	bool found = false;
	size_t i, others;

	json_array_foreach(events, i, one) {
		const char *own = json_get_text(one, "EventId");
		char own_id[96];

		if (own == NULL || strlen(own) >= AZURE_EVENT_SIZE)
			continue;
		write_id(own_id, own);
		if (strcmp(own_id, id) != 0 || !names(one, name, &others) ||
		    others > 0)
			continue;
		snprintf(event, AZURE_EVENT_SIZE, "%s", own);
		found = true;
	}
	json_decref(document);
	return found;
}
