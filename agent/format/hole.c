#include "format/hole.h"

#include <inttypes.h>

#include "base/source.h"
#include "format/format.h"
#include "format/report.h"

/*
 * Where what has to be written ends.  A tar ends in zeros, up to a full block
 * of 10 KiB: a sparse copy has a hole there, and nothing is missing.
 */
static uint64_t
find_end(const struct source *source, const struct format_report *report)
{
	const struct format_record *last;

	if (report->kind != FORMAT_TAR)
		return source->size;
	if (report->record_count == 0)
		return 0;
	last = &report->records[report->record_count - 1];
	return last->offset + last->length;
}

/*
 * HDF5 gives a file the size that its superblock tells when it closes it,
 * whether or not all room in it was used (H5FD_truncate).
 */
static bool
must_be_written(const struct format_report *report)
{
	return report->kind != FORMAT_HDF5;
}

void
hole_judge(const struct source *source, struct format_report *report)
{
	uint64_t last = find_end(source, report), start, end;

	if (source->find_hole == NULL || last == 0)
		return;
	if (source->find_hole(source->context, last - 1, &start, &end) == 0 &&
	    start < last && end >= source->size && must_be_written(report)) {
		report_say(report, FORMAT_TORN, "its end was never written: a "
		    "save was cut off after the file had got its full size");
		return;
	}
	if (source->find_hole(source->context, 0, &start, &end) != 0 ||
	    start >= last)
		return;
	if (end > source->size)
		end = source->size;
	report_say(report, FORMAT_UNPROVEN, "bytes %" PRIu64 " to %" PRIu64
	    " were never written", start, end - 1);
	report->hollow = true;
}
