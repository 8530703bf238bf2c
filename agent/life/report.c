#include "life/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"
#include "base/unit.h"
#include "format/checkpoint.h"
#include "life/uploads.h"

#define TEXT_SIZE 1024
#define BETWEEN (CLOCK_SECOND / 5)

static json_t *
event_object(const struct checkpoint *checkpoint, const char *state,
    const char *message)
{
	json_t *object = json_pack("{s:s, s:s, s:o}", "event", "checkpoint",
	    "state", state, "message", json_text(message));

	if (object == NULL)
		return NULL;
	if (json_set_name(object, "name", checkpoint->name) != 0 ||
	    json_set_u64(object, "size_bytes", checkpoint->size) != 0 ||
	    (checkpoint->has_step &&
	    json_set_u64(object, "step", checkpoint->step) != 0)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

/* What a state means, in words; the level at which it is logged. */
static const struct state_words {
	const char *state;
	enum log_level level;
	const char *words;
} states[] = {
	{ "complete", LOG_INFO, "is complete" },
	{ "torn", LOG_WARNING, "is torn and will not be uploaded" },
	{ "waiting", LOG_INFO, "is not complete yet" },
	{ "known", LOG_INFO, "is durable already" },
	{ "older", LOG_WARNING, "stays here only: the remote's resume point "
	    "is newer" },
	{ "replaced", LOG_INFO, "was replaced by a newer save before its "
	    "upload" },
	{ "changed", LOG_INFO, "was overwritten during its upload; the new "
	    "one goes up when it is complete" },
	{ "gone", LOG_INFO, "was deleted before it was durable" },
};

json_t *
report_seen(const struct checkpoint *checkpoint, const char *state)
{
	const struct state_words *words = NULL;
	char size[UNIT_TEXT_SIZE], text[TEXT_SIZE];
	bool why;
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(states[i].state, state) == 0)
			words = &states[i];
	if (words == NULL)
		return NULL;
	why = (strcmp(state, "complete") == 0 || strcmp(state, "torn") == 0 ||
	    strcmp(state, "waiting") == 0) && checkpoint->reason[0] != '\0';
	snprintf(text, sizeof(text), "%s %s%s%s (%s)", checkpoint->name,
	    words->words, why ? ": " : "", why ? checkpoint->reason : "",
	    unit_size_text(checkpoint->size, size));
	log_event(checkpoint->unreadable ? LOG_WARNING : words->level, state, LOG_FIELDS(
	    LOG_TEXT_FIELD("checkpoint", checkpoint->name),
	    LOG_TEXT_FIELD("layout", checkpoint->layout),
	    LOG_TEXT_FIELD("reason", checkpoint->reason),
	    LOG_NUMBER_FIELD("size_bytes", checkpoint->size)), "%s", text);
	return event_object(checkpoint, state, text);
}

json_t *
report_known(const json_t *event)
{
	char *name = json_get_name(event, "name"), size[UNIT_TEXT_SIZE];
	char text[TEXT_SIZE];
	json_t *known = NULL, *step = json_object_get(event, "step");
	uint64_t bytes;

	if (name == NULL || json_get_u64(event, "size_bytes", &bytes) != 0)
		goto done;
	snprintf(text, sizeof(text), "%s is durable already (%s)", name,
	    unit_size_text(bytes, size));
	known = json_pack("{s:s, s:s, s:o, s:I}", "event", "checkpoint",
	    "state", "known", "message", json_text(text), "size_bytes",
	    (json_int_t)bytes);
	if (known != NULL && (json_set_name(known, "name", name) != 0 ||
	    (step != NULL && json_object_set(known, "step", step) != 0))) {
		json_decref(known);
		known = NULL;
	}
done:
	free(name);
	return known;
}

json_t *
report_durable(const struct checkpoint *checkpoint,
    const struct uploads_result *result, uint64_t since)
{
	char new_text[UNIT_TEXT_SIZE], reused[UNIT_TEXT_SIZE];
	char took[UNIT_TEXT_SIZE], text[TEXT_SIZE];
	uint64_t lag = clock_monotonic() - since;
	json_t *object;

	snprintf(text, sizeof(text), "%s is durable as %s: %s new, %s reused, "
	    "%s after it was written%s%s", checkpoint->name, result->id,
	    unit_size_text(result->new_bytes, new_text),
	    unit_size_text(result->reused_bytes, reused),
	    unit_duration_text(lag, took), result->snapshot ? ", from a " : "",
	    result->snapshot ? result->how : "");
	log_event(LOG_INFO, "durable", LOG_FIELDS(
	    LOG_TEXT_FIELD("checkpoint", checkpoint->name),
	    LOG_TEXT_FIELD("id", result->id),
	    LOG_NUMBER_FIELD("new_bytes", result->new_bytes),
	    LOG_NUMBER_FIELD("reused_bytes", result->reused_bytes),
	    LOG_SECONDS_FIELD("upload_s",
	    (double)result->took / (double)CLOCK_SECOND),
	    LOG_SECONDS_FIELD("durable_s",
	    (double)lag / (double)CLOCK_SECOND)), "%s", text);
	object = event_object(checkpoint, "durable", text);
	if (object != NULL) {
		json_object_set_new(object, "id", json_string(result->id));
		json_set_u64(object, "new_bytes", result->new_bytes);
		json_set_u64(object, "reused_bytes", result->reused_bytes);
		json_object_set_new(object, "durable_s",
		    json_real((double)lag / (double)CLOCK_SECOND));
	}
	return object;
}

json_t *
report_failed(const struct checkpoint *checkpoint, const char *state,
    const struct error *error, uint64_t wait)
{
	char reason[ERROR_TEXT_SIZE], text[TEXT_SIZE + ERROR_TEXT_SIZE];
	char again[UNIT_TEXT_SIZE];
	bool retry = strcmp(state, "retry") == 0;

	error_text(error, reason);
	if (retry)
		snprintf(text, sizeof(text), "%s is not durable yet, next try "
		    "in %s: %s", checkpoint->name,
		    unit_duration_text(wait, again), reason);
	else
		snprintf(text, sizeof(text), "%s is NOT durable: %s",
		    checkpoint->name, reason);
	log_event(retry ? LOG_WARNING : LOG_ERROR, state, LOG_FIELDS(
	    LOG_TEXT_FIELD("checkpoint", checkpoint->name),
	    LOG_TEXT_FIELD("object", error->object),
	    LOG_TEXT_FIELD("cure", error->cure)), "%s", text);
	return event_object(checkpoint, state, text);
}

void
report_line_start(struct report_line *line, bool quiet)
{
	memset(line, 0, sizeof(*line));
	line->terminal = !quiet && isatty(STDERR_FILENO);
}

static unsigned
terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20)
		return 80;
	return size.ws_col > TEXT_SIZE / 2 ? TEXT_SIZE / 2 : size.ws_col;
}

void
report_line_show(struct report_line *line, const char *what, uint64_t done,
    uint64_t total, bool force)
{
	char text[TEXT_SIZE], done_text[UNIT_TEXT_SIZE];
	char total_text[UNIT_TEXT_SIZE], rate_text[UNIT_TEXT_SIZE];
	char left_text[UNIT_TEXT_SIZE] = "";
	uint64_t now = clock_monotonic(), rate = 0;
	double seconds;
	int length, width = (int)terminal_width() - 1;

	if (!line->terminal || (!force && line->shown &&
	    now - line->last < BETWEEN))
		return;
	if (line->began == 0 || done < line->began_bytes) {
		line->began = now;
		line->began_bytes = done;
	}
	seconds = (double)(now - line->began) / (double)CLOCK_SECOND;
	if (seconds > 0.3)
		rate = (uint64_t)((double)(done - line->began_bytes) /
		    seconds);
	if (rate > 0 && total >= done)
		unit_duration_text((uint64_t)((double)(total - done) /
		    (double)rate * (double)CLOCK_SECOND), left_text);
	length = snprintf(text, sizeof(text), "%s  %s of %s", what,
	    unit_size_text(done, done_text),
	    unit_size_text(total, total_text));
	if (rate > 0 && length > 0 && (size_t)length < sizeof(text))
		snprintf(text + length, sizeof(text) - (size_t)length,
		    "  %s/s  %s left", unit_size_text(rate, rate_text),
		    left_text);
	fprintf(stderr, "\r%.*s\033[K", width, text);
	fflush(stderr);
	line->shown = true;
	line->last = now;
}

void
report_line_clear(struct report_line *line)
{
	if (line->shown) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	line->shown = false;
}
