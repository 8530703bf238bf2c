/* room: notice */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "notice/alibaba.h"
#include "notice/aws.h"
#include "notice/azure.h"
#include "notice/google.h"
#include "notice/ledger.h"
#include "notice/outbox.h"
#include "notice/tencent.h"
#include "notice/wall_time.h"

/*
 * What a metadata server, or whoever sits in its place, answers.  The first
 * byte says whose answer the rest is.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(int holds)
{
	if (!holds)
		abort();
}

static void
read_answer(struct ledger *ledger, uint8_t which, const char *text,
    size_t length)
{
	char event[AZURE_EVENT_SIZE];
	int64_t incarnation = which & 8 ? 3 : -1;
	struct timespec when;

	if (which % 8 == 4 || which % 8 == 5)
		ledger_begin(ledger, which % 2);
	switch (which % 8) {
	case 0:
	case 1:
	case 2:
	case 3:
		ledger_begin(ledger, which % 8);
		if (aws_read(ledger, which % 8, text, length) == 0)
			ledger_end(ledger, which & 8);
		break;
	case 4:
		google_read(ledger, which & 8 ? GOOGLE_PREEMPTED :
		    GOOGLE_MAINTENANCE, text, 25 * CLOCK_SECOND);
		ledger_end(ledger, true);
		break;
	case 5:
		termination_read(ledger, which & 8 ? &alibaba_plan :
		    &tencent_plan, text);
		ledger_end(ledger, false);
		break;
	case 6:
		azure_read(ledger, text, length, "vm", &incarnation);
		if (azure_is_ours_alone(text, length, "vm", "azure-1", event))
			require(strcmp(event, "1") == 0);
		break;
	default:
		if (wall_time_parse(text, which & 8 ? 28800 : 0, &when) == 0)
			require(wall_time_deadline(when) <= clock_monotonic() +
			    900 * CLOCK_SECOND);
	}
}

static void
check(const struct notice *notice)
{
	require(notice->kind == NOTICE_HINT ||
	    notice->kind == NOTICE_DEADLINE ||
	    notice->kind == NOTICE_WITHDRAWN);
	require(notice->id[0] != '\0' && notice->source[0] != '\0');
	for (const char *at = notice->reason; *at != '\0'; at++)
		require(*at >= 0x20 && *at < 0x7f);
	if (notice->kind == NOTICE_DEADLINE)
		require(notice->deadline <= clock_monotonic() +
		    900 * CLOCK_SECOND);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct timespec now = { .tv_sec = 1796040000 };
	struct error error = ERROR_INIT;
	struct outbox *outbox = outbox_new(&error);
	struct ledger *ledger = ledger_new(outbox, &error);
	struct notice notice;
	char *text = malloc(size + 1);

	require(text != NULL && ledger != NULL);
	clock_test_start(now);
	if (size > 0) {
		/* Readers get a string, as buffer_text gives one. */
		memcpy(text, data + 1, size - 1);
		text[size - 1] = '\0';
		read_answer(ledger, data[0], text, size - 1);
		read_answer(ledger, data[0], text, size - 1);
	}
	while (outbox_take(outbox, &notice))
		check(&notice);
	clock_test_stop();
	free(text);
	ledger_free(ledger);
	outbox_free(outbox);
	return 0;
}
