#include "format/safetensors.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/source.h"
#include "format/format.h"
#include "format/report.h"
#include "format/safetensors_header.h"

#define PAGE 4096

/* Whether all bytes of the last page, but none of the header, are zeros. */
static int
ends_in_zeros(const struct source *source, uint64_t data, struct error *error)
{
	uint8_t page[PAGE];
	uint64_t start = (source->size - 1) / PAGE * PAGE;
	size_t length;

	if (start < data)
		start = data;
	length = (size_t)(source->size - start);
	if (source_read(source, start, page, length, error) != 0)
		return -1;
	for (size_t i = 0; i < length; i++)
		if (page[i] != 0)
			return 0;
	return 1;
}

/* The structure fits; say whether the end was ever written. */
static int
judge_tail(uint64_t data, const struct source *source,
    struct format_report *report, struct error *error)
{
	uint64_t hole, end;
	int zeros;

	if (source->size > data && source->find_hole != NULL &&
	    source->find_hole(source->context, source->size - 1, &hole,
	    &end) == 0) {
		if (hole < source->size)
			return report_say(report, FORMAT_TORN,
			    "its end was never written: a save was cut off "
			    "after the file had got its full size");
	} else if (source->size > data) {
		zeros = ends_in_zeros(source, data, error);
		if (zeros < 0)
			return -1;
		if (zeros > 0)
			return report_say(report, FORMAT_UNPROVEN,
			    "its header covers exactly the file, but the end "
			    "is zeros and may never have been written");
	}
	return report_say(report, FORMAT_WHOLE,
	    "its header covers exactly the %" PRIu64 " bytes of the file",
	    source->size);
}

int
safetensors_claimed(const struct source *source, struct error *error)
{
	uint8_t start[9];

	if (source->size < 10)
		return 0;
	if (source_read(source, 0, start, sizeof(start), error) != 0)
		return -1;
	return safetensors_header_claimed(start, sizeof(start));
}

int
safetensors_inspect(const struct source *source, struct format_report *report,
    struct error *error)
{
	uint64_t data;
	bool failed;
	int result;

	report->kind = FORMAT_SAFETENSORS;
	if (safetensors_header_read(source, NULL, NULL, report, &data, &failed,
	    error) == 0)
		result = judge_tail(data, source, report, error);
	else
		result = report_judge(report, error, failed);
	report_drop_empty(report);
	return result;
}
