#include "format/shard.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/format.h"
#include "format/report.h"
#include "format/slice.h"
#include "format/zip_directory.h"

#define END_SIZE 22		/* end of central directory record */
#define LOCATOR_SIZE 20		/* zip64 end of central directory locator */
#define END64_SIZE 56		/* zip64 end of central directory record */
#define ENDS_SIZE (END64_SIZE + LOCATOR_SIZE + END_SIZE)

/* A file of more zips is cut as one that is not known. */
#define ZIPS_MAXIMUM 1000000

/* Smaller ones are nowhere cut out (cutter.h). */
#define RECORD_MINIMUM 4096

/* The storages of the zip that is ${length} bytes long. */
static int
add_zip(struct slice *slice, uint64_t length, struct format_report *report,
    bool *failed, struct error *error)
{
	struct source source = slice_source(slice, length);
	struct zip_directory directory;
	uint64_t place;
	int result;

	result = zip_directory_read(&source, &directory, error);
	for (size_t i = 0; i < directory.count && result == 0; i++) {
		const struct zip_record *record = &directory.records[i];

		if (!record->stored || record->length < RECORD_MINIMUM)
			continue;
		result = zip_directory_place(&directory, record, &place,
		    error);
		if (result == 0)
			result = report_add(report, record->name,
			    record->name_length, slice->offset + place,
			    record->length, error);
	}
	*failed = directory.failed;
	zip_directory_free(&directory);
	return result;
}

static uint64_t
number(const uint8_t *bytes, int width)
{
	uint64_t value = 0;

	for (int i = width - 1; i >= 0; i--)
		value = value << 8 | bytes[i];
	return value;
}

/*
 * Where the zip begins that ends at ${size} of ${source}: its directory lies
 * just before its end records, and they say how long it is and how far from
 * the beginning (APPNOTE.TXT 4.3.14 to 4.3.16).  zip_end_read cannot tell: the
 * place of the zip64 record counts from a beginning that is not known yet.
 */
static int
find_start(const struct source *source, uint64_t size, uint64_t *start,
    bool *failed, struct error *error)
{
	uint8_t bytes[ENDS_SIZE] = { 0 };
	size_t length = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
	const uint8_t *end = bytes + sizeof(bytes) - END_SIZE;
	uint64_t directory, place, left = size - END_SIZE;

	if (size < END_SIZE)
		goto other;
	*failed = source_read(source, size - length,
	    bytes + sizeof(bytes) - length, length, error) != 0;
	if (*failed)
		return -1;
	if (memcmp(end, "PK\5\6", 4) != 0 || number(end + 20, 2) != 0)
		goto other;
	directory = number(end + 12, 4);
	place = number(end + 16, 4);
	if (memcmp(end - LOCATOR_SIZE, "PK\6\7", 4) == 0 &&
	    memcmp(bytes, "PK\6\6", 4) == 0) {
		directory = number(bytes + 40, 8);
		place = number(bytes + 48, 8);
		left = size - ENDS_SIZE;
	}
	if (directory > left || place > left - directory)
		goto other;
	*start = left - directory - place;
	return 0;

other:
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
	    "something that is no zip ends at byte %" PRIu64, size);
}

/* From the last zip to the first one. */
static int
walk(const struct source *source, struct format_report *report, bool *failed,
    struct error *error)
{
	struct slice slice = { source, 0 };
	uint64_t size = source->size, start = 0;
	unsigned count = 0;

	while (size > 0) {
		if (++count > ZIPS_MAXIMUM)
			return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT,
			    NULL, "it holds more than %d zips", ZIPS_MAXIMUM);
		if (find_start(source, size, &start, failed, error) != 0)
			return -1;
		slice.offset = start;
		if (add_zip(&slice, size - start, report, failed, error) != 0)
			return -1;
		size = start;
	}
	return 0;
}

int
shard_inspect(const struct source *source, struct format_report *report,
    struct error *error)
{
	bool failed = false;

	if (walk(source, report, &failed, error) != 0) {
		if (failed || error->cause == CAUSE_MEMORY)
			return -1;
		error_clear(error);
		format_report_free(report);
		return report_say(report, FORMAT_UNPROVEN,
		    "it has no structure that is known");
	}
	report_sort(report);
	return report_say(report, FORMAT_UNPROVEN,
	    "it is a part of a distributed checkpoint, which does not tell "
	    "whether all is there");
}
