/* room: format */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/source.h"
#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any bytes under any name: a verdict with a reason, records in order. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "x.json", "x.pt", "x.bin", "x",
		"x.nemo", "x.h5", "x.safetensors", "x.distcp" };
	struct source_memory memory;
	struct source source;
	struct format_report report;
	struct error error = ERROR_INIT;
	uint64_t at = 0;

	if (size == 0)
		return 0;
	memory = (struct source_memory){ data + 1, size - 1 };
	source = source_from_memory(&memory);
	if (format_inspect(&source, names[data[0] % 8], &report, &error) != 0 ||
	    report.reason[0] == '\0')
		abort();
	for (size_t i = 0; i < report.record_count; i++) {
		if (report.records[i].offset < at)
			abort();
		at = report.records[i].offset + report.records[i].length;
	}
	if (at > source.size)
		abort();
	format_report_free(&report);
	return 0;
}
