/* room: format */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/source.h"
#include "format/format.h"

#include "inspection.h"

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

	if (size == 0)
		return 0;
	memory = (struct source_memory){ data + 1, size - 1 };
	source = source_from_memory(&memory);
	if (format_inspect(&source, names[data[0] % 8], &report, &error) != 0 ||
	    report.reason[0] == '\0')
		abort();
	inspection_check(&report, source.size);
	format_report_free(&report);
	return 0;
}
