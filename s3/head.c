#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/unit.h"
#include "s3/head.h"

#define LINE_LIMIT 1024
#define YEAR_SECONDS (366L * 24 * 3600)

static bool
number_read(const char *text, uint64_t limit, uint64_t *number)
{
	struct error ignored = ERROR_INIT;

	return unit_parse_number(text, 0, limit, number, &ignored) == 0;
}

/* "bytes 0-9/100", "bytes 0-9/\*", "bytes \*\/100" */
static void
range_read(struct head *head, char *text)
{
	char *dash = strchr(text, '-');
	char *slash = strchr(text, '/');

	if (strncmp(text, "bytes ", 6) != 0 || slash == NULL)
		return;
	*slash++ = '\0';
	head->has_total = number_read(slash, INT64_MAX, &head->range_total);
	if (dash == NULL || dash > slash)
		return;
	*dash++ = '\0';
	head->has_range = number_read(text + 6, INT64_MAX,
	    &head->range_first) && number_read(dash, INT64_MAX,
	    &head->range_last) && head->range_first <= head->range_last &&
	    (!head->has_total || head->range_last < head->range_total);
}

/* Retry-After: 3 (seconds; a date is taken as not there);
 * x-amz-retry-after: 300 (milliseconds, as botocore reads it). */
static void
retry_after_read(struct head *head, const char *text, uint64_t unit)
{
	uint64_t number;

	if (number_read(text, 3600 * 1000, &number))
		head->retry_after = number * unit;
}

static void
field_read(struct head *head, const char *name, char *value)
{
	struct { const char *name; char *target; size_t size; } texts[] = {
		{ "x-amz-request-id", head->request_id,
		    sizeof(head->request_id) },
		{ "x-amz-bucket-region", head->region, sizeof(head->region) },
		{ "etag", head->etag, sizeof(head->etag) },
		{ "location", head->location, sizeof(head->location) },
	};
	uint64_t number;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcasecmp(name, texts[i].name) == 0)
			snprintf(texts[i].target, texts[i].size, "%s", value);
	if (strcasecmp(name, "content-length") == 0)
		head->has_length = number_read(value, INT64_MAX,
		    &head->length);
	else if (strcasecmp(name, "content-range") == 0)
		range_read(head, value);
	else if (strcasecmp(name, "retry-after") == 0)
		retry_after_read(head, value, CLOCK_SECOND);
	else if (strcasecmp(name, "x-amz-retry-after") == 0)
		retry_after_read(head, value, CLOCK_MILLISECOND);
	else if (strcasecmp(name, "date") == 0)
		head->date = curl_getdate(value, NULL);
	else if (strcasecmp(name, "age") == 0 &&
	    number_read(value, YEAR_SECONDS, &number))
		head->age = (time_t)number;
}

/* "HTTP/1.1 200 OK" */
static void
status_read(struct head *head, const char *line)
{
	const char *blank = strchr(line, ' ');

	memset(head, 0, sizeof(*head));
	head->status = blank != NULL ? atoi(blank + 1) : 0;
	if (head->status < 100 || head->status > 999)
		head->status = 0;
}

void
head_read_line(struct head *head, const char *line, size_t length)
{
	char text[LINE_LIMIT];
	char *value;

	while (length > 0 && (line[length - 1] == '\r' ||
	    line[length - 1] == '\n' || line[length - 1] == ' ' ||
	    line[length - 1] == '\t'))
		length--;
	if (length >= sizeof(text) || memchr(line, '\0', length) != NULL)
		return;
	memcpy(text, line, length);
	text[length] = '\0';
	if (strncmp(text, "HTTP/", 5) == 0) {
		status_read(head, text);
		return;
	}
	value = strchr(text, ':');
	if (value == NULL)
		return;
	*value++ = '\0';
	value += strspn(value, " \t");
	field_read(head, text, value);
}

time_t
head_server_time(const struct head *head)
{
	return head->date > 0 ? head->date + head->age : 0;
}
