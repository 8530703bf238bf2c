#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "format/format.h"
#include "kit/kit.h"

/*
 * A file of ${size} bytes with a superblock at ${place}: addresses of ${width}
 * bytes, the end of file ${end}.
 */
static void
expect(unsigned version, unsigned width, uint64_t place, uint64_t size,
    uint64_t end, unsigned flags, enum format_verdict verdict,
    const char *reason)
{
	uint8_t *file = calloc(1, size), *block = file + place;
	struct source_memory memory = { file, size };
	struct source source = source_from_memory(&memory);
	struct format_report report;
	struct error error = ERROR_INIT;
	unsigned at = version == 0 ? 24 : version == 1 ? 28 : 12;

	memcpy(block, "\x89HDF\r\n\x1a\n", 8);
	block[8] = (uint8_t)version;
	block[version < 2 ? 13 : 9] = (uint8_t)width;
	if (version >= 2)
		block[11] = (uint8_t)flags;
	for (unsigned i = 0; i < width && i < 8 &&
	    place + at + 3 * width <= size; i++)
		block[at + 2 * width + i] = (uint8_t)(end >> (8 * i));
	assert_ok(format_inspect(&source, "m.h5", &report, &error), error);
	assert_int_equal(report.kind, FORMAT_HDF5);
	if (report.verdict != verdict || strstr(report.reason, reason) == NULL)
		fail_msg("version %u, width %u: verdict %d, %s", version,
		    width, report.verdict, report.reason);
	format_report_free(&report);
	free(file);
}

static void
test_versions(void **state)
{
	(void)state;
	for (unsigned version = 0; version <= 3; version++) {
		for (unsigned width = 2; width <= 8; width *= 2) {
			expect(version, width, 0, 3000, 3000, 0,
			    FORMAT_WHOLE, "ends at byte 3000");
			expect(version, width, 0, 3000, 3001, 0, FORMAT_TORN,
			    "it ends at byte 3000, its superblock says 3001");
			expect(version, width, 0, 3000, 2999, 0, FORMAT_TORN,
			    "says 2999");
			expect(version, width, 0, 3000, UINT64_MAX, 0,
			    FORMAT_TORN, "no end of file yet");
		}
	}
	expect(4, 8, 0, 3000, 3000, 0, FORMAT_UNPROVEN, "version 4");
	expect(255, 8, 0, 3000, 3000, 0, FORMAT_UNPROVEN, "version 255");
}

static void
test_open_writer(void **state)
{
	(void)state;
	expect(3, 8, 0, 3000, 3000, 1, FORMAT_TORN, "has not closed it");
	expect(3, 8, 0, 3000, 3000, 4, FORMAT_TORN, "has not closed it");
	expect(3, 8, 0, 3000, 3000, 2, FORMAT_WHOLE, "ends at");
	/* Version 2 has no such flags. */
	expect(2, 8, 0, 3000, 3000, 1, FORMAT_WHOLE, "ends at");
}

static void
test_user_block(void **state)
{
	(void)state;
	expect(0, 8, 512, 3000, 3000, 0, FORMAT_WHOLE, "ends at byte 3000");
	expect(2, 8, 2048, 3000, 3000, 0, FORMAT_WHOLE, "ends at byte 3000");
	expect(2, 8, 100, 3000, 3000, 0, FORMAT_TORN, "no HDF5 signature");
}

static void
test_damaged(void **state)
{
	(void)state;
	for (unsigned width = 0; width < 256; width++)
		if (width != 2 && width != 4 && width != 8)
			expect(0, width, 0, 3000, 3000, 0, FORMAT_TORN,
			    "addresses of");
	expect(0, 8, 0, 47, 47, 0, FORMAT_TORN, "inside its HDF5 superblock");
	expect(1, 8, 0, 51, 51, 0, FORMAT_TORN, "inside its HDF5 superblock");
	expect(3, 8, 0, 35, 35, 0, FORMAT_TORN, "inside its HDF5 superblock");
	expect(3, 8, 0, 36, 36, 0, FORMAT_WHOLE, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_open_writer),
		cmocka_unit_test(test_user_block),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
