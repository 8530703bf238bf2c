/* room: format */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/source.h"
#include "format/format.h"
#include "format/shard.h"

#include "inspection.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the bytes are: unproven, and records in order within the file. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_memory memory = { data, size };
	struct source source = source_from_memory(&memory);
	struct format_report report = { .verdict = FORMAT_UNPROVEN };
	struct error error = ERROR_INIT;

	if (shard_inspect(&source, &report, &error) != 0 ||
	    report.verdict != FORMAT_UNPROVEN)
		abort();
	inspection_check(&report, size);
	format_report_free(&report);
	return 0;
}
