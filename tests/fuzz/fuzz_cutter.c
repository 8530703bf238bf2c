/* room: format */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/cutter.h"
#include "format/format.h"

#define RECORDS_MAXIMUM 64
#define CALLS_MAXIMUM 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t
take_number(const uint8_t **data, size_t *size, size_t width)
{
	uint64_t number = 0;

	for (size_t i = 0; i < width && *size > 0; i++, (*data)++, (*size)--)
		number = number << 8 | **data;
	return number;
}

/* Records with gaps as the input says; returns the size of the file. */
static uint64_t
make_records(struct format_record *records, struct format_report *report,
    const uint8_t **data, size_t *size)
{
	uint64_t at = 0;

	while (*size > 6 && report->record_count < RECORDS_MAXIMUM) {
		struct format_record *record =
		    &records[report->record_count++];

		at += take_number(data, size, 3);
		record->offset = at;
		record->length = take_number(data, size, 4) % (64 << 20) + 1;
		at += record->length;
	}
	return at + take_number(data, size, 3);
}

/* With records nothing is looked at, so the file needs no bytes. */
static void
cut(const struct format_report *report, const uint8_t *bytes, uint64_t size,
    uint64_t target, uint64_t step)
{
	struct error error;
	struct cutter *cutter = cutter_new(report, size, target, &error);
	uint64_t at = 0, start = 0;

	if (cutter == NULL)
		abort();
	for (int calls = 0; at < size && calls < CALLS_MAXIMUM; calls++) {
		uint64_t length = size - at < step ? size - at : step;
		bool ends = false, small = false;
		size_t taken = cutter_take(cutter,
		    bytes == NULL ? NULL : bytes + at, (size_t)length, &ends,
		    &small);

		if (taken == 0 || taken > length || (!ends && taken < length))
			abort();
		at += taken;
		if (at == size && !ends)
			abort();
		if (!ends)
			continue;
		if (at - start > target || (small && at - start >= target / 8))
			abort();
		start = at;
	}
	cutter_free(cutter);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct format_record records[RECORDS_MAXIMUM];
	struct format_report report = { .records = records };
	uint64_t target = ((take_number(&data, &size, 1) & 63) + 1) << 20;
	uint64_t step = take_number(&data, &size, 3) + 1;
	uint64_t length;

	if (target % (2 << 20) == 0) {
		length = make_records(records, &report, &data, &size);
		if (report.record_count > 0)
			cut(&report, NULL, length, target, step);
	} else if (size > 0) {
		/* The input again and again: 4 MiB of it. */
		uint8_t *bytes = malloc(4 << 20);

		for (size_t i = 0; i < 4 << 20; i += size)
			memcpy(bytes + i, data,
			    size < (4u << 20) - i ? size : (4u << 20) - i);
		cut(NULL, bytes, 4 << 20, 1 << 20, step);
		free(bytes);
	}
	return 0;
}
