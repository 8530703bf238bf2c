#ifndef FUZZ_INSPECTION_H
#define FUZZ_INSPECTION_H

#include <stdint.h>
#include <stdlib.h>

#include "format/format.h"

/**
 * inspection_check(report, size):
 * Abort unless the records of ${report}, about a file of ${size} bytes, are in
 * order within the file.  Return where the last one ends, 0: none.
 */
static inline uint64_t
inspection_check(const struct format_report *report, uint64_t size)
{
	uint64_t at = 0;

	for (size_t i = 0; i < report->record_count; i++) {
		if (report->records[i].offset < at)
			abort();
		at = report->records[i].offset + report->records[i].length;
	}
	if (at > size)
		abort();
	return at;
}

#endif
