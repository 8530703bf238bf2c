/* room: format */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/source.h"
#include "format/format.h"
#include "format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the bytes are: a verdict, and records that tile the end. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_memory memory = { data, size };
	struct source source = source_from_memory(&memory);
	struct format_report report = { .verdict = FORMAT_UNPROVEN };
	struct error error = ERROR_INIT;
	uint64_t at = 0;

	if (safetensors_inspect(&source, &report, &error) != 0)
		abort();
	for (size_t i = 0; i < report.record_count; i++) {
		if (report.records[i].offset < at)
			abort();
		at = report.records[i].offset + report.records[i].length;
	}
	if (at > size || (report.verdict == FORMAT_WHOLE && at != size &&
	    report.record_count > 0))
		abort();
	format_report_free(&report);
	return 0;
}
