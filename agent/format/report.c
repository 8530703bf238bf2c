#include "format/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
drop_records(struct format_report *report)
{
	for (size_t i = 0; i < report->record_count; i++)
		free(report->records[i].name);
	free(report->records);
	report->records = NULL;
	report->record_count = 0;
}

void
format_report_free(struct format_report *report)
{
	drop_records(report);
}

int
report_say(struct format_report *report, enum format_verdict verdict,
    const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(report->reason, sizeof(report->reason), format, arguments);
	va_end(arguments);
	for (char *c = report->reason; *c != '\0'; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	report->verdict = verdict;
	if (verdict == FORMAT_TORN)
		drop_records(report);
	return 0;
}

int
report_judge(struct format_report *report, const struct error *error,
    bool failed)
{
	if (failed || error->cause == CAUSE_MEMORY)
		return -1;
	if (error->cause == CAUSE_LIMIT || error->cause == CAUSE_UNSUPPORTED)
		return report_say(report, FORMAT_UNPROVEN, "not checked: %s",
		    error->message);
	return report_say(report, FORMAT_TORN, "%s", error->message);
}

/* Room for one more: the capacity is the next power of two, at least 16. */
static int
make_room(struct format_report *report)
{
	size_t count = report->record_count;
	size_t capacity = count < 16 ? 16 : count * 2;
	struct format_record *records;

	if (count != 0 && (count < 16 || (count & (count - 1)) != 0))
		return 0;
	records = realloc(report->records, capacity * sizeof(*records));
	if (records == NULL)
		return -1;
	report->records = records;
	return 0;
}

int
report_add(struct format_report *report, const char *name,
    size_t length_of_name, uint64_t offset, uint64_t length,
    struct error *error)
{
	struct format_record *record;

	if (report->record_count >= REPORT_RECORDS_MAXIMUM)
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "it has more than %d records", REPORT_RECORDS_MAXIMUM);
	if (length_of_name > REPORT_NAME_MAXIMUM)
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "a record's name is longer than %d bytes",
		    REPORT_NAME_MAXIMUM);
	if (make_room(report) != 0)
		goto no_memory;
	record = &report->records[report->record_count];
	record->name = strndup(name, length_of_name);
	if (record->name == NULL)
		goto no_memory;
	record->offset = offset;
	record->length = length;
	report->record_count++;
	return 0;

no_memory:
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory for the table of records");
}

static int
by_offset(const void *a, const void *b)
{
	const struct format_record *left = a, *right = b;

	if (left->offset != right->offset)
		return left->offset < right->offset ? -1 : 1;
	if (left->length != right->length)
		return left->length < right->length ? -1 : 1;
	return strcmp(left->name, right->name);
}

void
report_sort(struct format_report *report)
{
	if (report->record_count > 1)
		qsort(report->records, report->record_count,
		    sizeof(*report->records), by_offset);
}

void
report_drop_empty(struct format_report *report)
{
	size_t kept = 0;

	for (size_t i = 0; i < report->record_count; i++) {
		if (report->records[i].length == 0)
			free(report->records[i].name);
		else
			report->records[kept++] = report->records[i];
	}
	report->record_count = kept;
	if (kept == 0) {
		free(report->records);
		report->records = NULL;
	}
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int
report_twin(const struct format_report *report, const char **twin,
    struct error *error)
{
	size_t count = report->record_count;
	const char **names;

	*twin = NULL;
	if (count < 2)
		return 0;
	names = malloc(count * sizeof(*names));
	if (names == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for comparing names");
	for (size_t i = 0; i < count; i++)
		names[i] = report->records[i].name;
	qsort(names, count, sizeof(*names), by_text);
	for (size_t i = 1; i < count && *twin == NULL; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			*twin = names[i];
	free(names);
	return 0;
}
