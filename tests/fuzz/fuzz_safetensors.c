/* room: format */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/source.h"
#include "format/format.h"
#include "format/safetensors.h"

#include "inspection.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the bytes are: a verdict, and records that tile the end. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_memory memory = { data, size };
	struct source source = source_from_memory(&memory);
	struct format_report report = { .verdict = FORMAT_UNPROVEN };
	struct error error = ERROR_INIT;
	uint64_t at;

	if (safetensors_inspect(&source, &report, &error) != 0)
		abort();
	at = inspection_check(&report, size);
	if (report.verdict == FORMAT_WHOLE && at != size &&
	    report.record_count > 0)
		abort();
	format_report_free(&report);
	return 0;
}
