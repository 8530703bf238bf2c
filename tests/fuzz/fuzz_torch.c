/* room: format */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/source.h"
#include "format/format.h"
#include "format/legacy.h"
#include "format/torch.h"

#include "inspection.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Whatever the bytes are, as a zip or as the legacy format: a verdict, and
 * records in order within the file.
 */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_memory memory = { data, size };
	struct source source = source_from_memory(&memory);
	struct format_report report = { .verdict = FORMAT_UNPROVEN };
	struct error error = ERROR_INIT;
	int result;

	if (legacy_claimed(data, size))
		result = legacy_inspect(&source, &report, &error);
	else
		result = torch_inspect(&source, size % 2 == 0, &report, &error);
	if (result != 0)
		abort();
	inspection_check(&report, size);
	format_report_free(&report);
	return 0;
}
