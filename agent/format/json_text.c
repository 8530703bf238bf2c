#include "format/json_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/format.h"
#include "format/report.h"
#include "format/window.h"

/*
 * jansson alone will not do: it refuses NaN and Infinity, which Python writes
 * (a trainer_state.json with a loss that became NaN), comments and a byte
 * order mark, and needs up to fifty bytes of memory for each byte of text.  So
 * brackets and strings are followed here, in windows, and jansson has its say
 * on small files without such things.
 */
#define PARSE_MAXIMUM (1 << 20)
#define DEPTH_MAXIMUM 2048	/* as jansson has it */

struct scan {
	uint8_t open[DEPTH_MAXIMUM];	/* the brackets that are open */
	size_t depth;
	bool bracketed;		/* the outermost value is an object or array */
	bool ended;		/* and it is closed */
	bool text;		/* inside a string */
	bool escape;		/* behind a backslash in it */
	bool begun;		/* a value was seen */
	bool several;		/* another one follows: JSON Lines */
	bool lax;		/* something that jansson refuses was seen */
};

static int
open_bracket(struct scan *scan, uint8_t closing, struct error *error)
{
	if (scan->depth == DEPTH_MAXIMUM)
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "its brackets are nested over %d deep", DEPTH_MAXIMUM);
	if (scan->depth == 0)
		scan->bracketed = true;
	scan->open[scan->depth++] = closing;
	return 0;
}

static int
scan_byte(struct scan *scan, uint8_t byte, struct error *error)
{
	if (byte < 0x20 && (scan->text || strchr("\t\r\n", byte) == NULL ||
	    byte == '\0'))
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "it holds a byte %u, which is not JSON", byte);
	if (scan->text) {
		if (scan->escape)
			scan->escape = false;
		else if (byte == '\\')
			scan->escape = true;
		else if (byte == '"')
			scan->text = false;
		return 0;
	}
	if (strchr(" \t\r\n", byte) != NULL)
		return 0;
	if (scan->ended && byte != '{' && byte != '[')
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "something follows the end of its JSON");
	if (scan->ended)
		scan->several = true;
	scan->ended = false;
	scan->begun = true;
	if (byte == '"')
		scan->text = true;
	else if (byte == 'N' || byte == 'I' || byte == '/' || byte >= 0x80)
		scan->lax = true;
	else if (byte == '{' || byte == '[')
		return open_bracket(scan, byte == '{' ? '}' : ']', error);
	else if (byte == '}' || byte == ']') {
		if (scan->depth == 0 || scan->open[scan->depth - 1] != byte)
			return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    NULL, "its brackets do not match");
		scan->ended = --scan->depth == 0;
	}
	return 0;
}

static int
scan_all(struct scan *scan, struct window *window, struct error *error)
{
	while (window_left(window) > 0) {
		size_t length = WINDOW_SIZE;
		const uint8_t *bytes = window_peek(window, &length, error);

		if (bytes == NULL)
			return -1;
		for (size_t i = 0; i < length; i++)
			if (scan_byte(scan, bytes[i], error) != 0)
				return -1;
		window->at += length;
	}
	if (scan->depth > 0 || scan->text || !scan->begun)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "its JSON ends in the middle, at byte %" PRIu64,
		    window->end);
	return 0;
}

static int
parse_small(struct window *window, struct error *error)
{
	json_error_t problem;
	size_t length = (size_t)window->end;
	char *text = malloc(length);
	json_t *value = NULL;
	int result = -1;

	if (text == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for JSON");
		goto done;
	}
	window->at = 0;
	if (window_take(window, text, length, error) != 0)
		goto done;
	/* Integers as reals: Python's have no limit. */
	value = json_loadb(text, length, JSON_DECODE_ANY |
	    JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &problem);
	if (value == NULL) {
		error_set(error, ERROR_DAMAGED, json_error_code(&problem) ==
		    json_error_out_of_memory ? CAUSE_MEMORY : CAUSE_OTHER,
		    NULL, "it is not JSON: %s", problem.text);
		goto done;
	}
	result = 0;

done:
	json_decref(value);
	free(text);
	return result;
}

int
json_text_inspect(const struct source *source, struct format_report *report,
    struct error *error)
{
	struct window *window = malloc(sizeof(*window));
	struct scan *scan = calloc(1, sizeof(*scan));
	int result;

	report->kind = FORMAT_JSON;
	if (window == NULL || scan == NULL) {
		result = error_set(error, ERROR_FAILED, CAUSE_MEMORY,
		    source->name, "out of memory");
		goto done;
	}
	window_init(window, source, 0, source->size);
	result = scan_all(scan, window, error);
	if (result == 0 && source->size <= PARSE_MAXIMUM && !scan->lax &&
	    !scan->several)
		result = parse_small(window, error);
	if (result != 0)
		result = report_judge(report, error, window->failed);
	else if (scan->several)
		result = report_say(report, FORMAT_UNPROVEN,
		    "it holds several JSON values, and more might be missing");
	else if (!scan->bracketed)
		result = report_say(report, FORMAT_UNPROVEN,
		    "its JSON has no bracket that could close");
	else
		result = report_say(report, FORMAT_WHOLE,
		    "its JSON ends where the file ends");

done:
	free(scan);
	free(window);
	return result;
}
