/* room: format */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/source.h"
#include "format/format.h"
#include "format/shard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the bytes are: unproven, and records in order within the file. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_memory memory = { data, size };
	struct source source = source_from_memory(&memory);
	struct format_report report = { .verdict = FORMAT_UNPROVEN };
	struct error error = ERROR_INIT;
	uint64_t at = 0;

	if (shard_inspect(&source, &report, &error) != 0 ||
	    report.verdict != FORMAT_UNPROVEN)
		abort();
	for (size_t i = 0; i < report.record_count; i++) {
		if (report.records[i].offset < at)
			abort();
		at = report.records[i].offset + report.records[i].length;
	}
	if (at > size)
		abort();
	format_report_free(&report);
	return 0;
}
