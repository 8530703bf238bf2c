#include "format/shard.h"

#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/format.h"
#include "format/report.h"
#include "format/slice.h"
#include "format/zip_directory.h"
#include "format/zip_end.h"

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

/* From the last zip to the first one. */
static int
walk(const struct source *source, struct format_report *report, bool *failed,
    struct error *error)
{
	struct slice whole = { source, 0 }, slice = { source, 0 };
	struct source before;
	struct zip_end end;
	uint64_t size = source->size;
	unsigned count = 0;

	while (size > 0) {
		if (++count > ZIPS_MAXIMUM)
			return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT,
			    NULL, "it holds more than %d zips", ZIPS_MAXIMUM);
		before = slice_source(&whole, size);
		if (zip_end_read(&before, &end, failed, error) != 0)
			return -1;
		slice.offset = end.behind;
		if (add_zip(&slice, size - end.behind, report, failed,
		    error) != 0)
			return -1;
		size = end.behind;
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
