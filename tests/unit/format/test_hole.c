#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/source.h"
#include "format/format.h"
#include "kit/kit.h"

/*
 * Whole files of each format of which some bytes were never written: left
 * behind by a save into a file that had its full size at once, or by a copy
 * that leaves out zeros.
 */

#define TO_THE_END UINT64_MAX

/* A file that knows which of its bytes were never written. */
struct holed {
	struct source memory;
	uint64_t start, end;
};

static int
read_holed(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	struct holed *holed = context;

	return source_read(&holed->memory, offset, data, length, error);
}

static int
find_holed(void *context, uint64_t offset, uint64_t *start, uint64_t *end)
{
	const struct holed *holed = context;

	*start = *end = holed->memory.size;
	if (offset < holed->end && holed->start < holed->end) {
		*start = offset > holed->start ? offset : holed->start;
		*end = holed->end;
	}
	return 0;
}

static struct format_report
inspect(const char *fixture, uint64_t start, uint64_t end)
{
	struct format_report report;
	struct error error = ERROR_INIT;
	struct source_memory memory;
	struct holed holed;
	struct source source;
	char path[512], *data;

	snprintf(path, sizeof(path), "%s/format/%s", TEST_DATA, fixture);
	data = kit_read_file(path, &memory.length);
	memory.data = data;
	holed = (struct holed){ source_from_memory(&memory), start, end };
	if (end == TO_THE_END)
		holed.end = memory.length;
	source = (struct source){ .size = memory.length,
		.read_at = read_holed, .find_hole = find_holed,
		.context = &holed, .name = fixture };
	assert_ok(format_inspect(&source, fixture, &report, &error), error);
	free(data);
	return report;
}

static void
expect(const char *fixture, uint64_t start, uint64_t end,
    enum format_verdict verdict, const char *reason)
{
	struct format_report report = inspect(fixture, start, end);

	if (report.verdict != verdict ||
	    (reason != NULL && strcmp(report.reason, reason) != 0) ||
	    report.hollow != (verdict == FORMAT_UNPROVEN))
		fail_msg("%s: verdict %d, hollow %d: %s", fixture,
		    report.verdict, report.hollow, report.reason);
	format_report_free(&report);
}

static void
hole_amid_is_unproven(void **state)
{
	static const char *const fixtures[] = { "model.safetensors",
		"torch-2.8.pt", "torch-legacy.pt", "weights.npz",
		"packed.npz", "model.nemo", "model-0.h5", "model-3.h5" };

	(void)state;
	for (size_t i = 0; i < sizeof(fixtures) / sizeof(*fixtures); i++) {
		expect(fixtures[i], 0, 0, FORMAT_WHOLE, NULL);
		expect(fixtures[i], 100, 200, FORMAT_UNPROVEN,
		    "bytes 100 to 199 were never written");
	}
}

static void
hole_at_the_end_is_torn(void **state)
{
	static const char *const reason = "its end was never written: a save "
	    "was cut off after the file had got its full size";

	(void)state;
	expect("model.safetensors", 540, TO_THE_END, FORMAT_TORN, reason);
	expect("torch-legacy.pt", 500, TO_THE_END, FORMAT_TORN, reason);
	/* From inside a member on: its end is no end, it was never written. */
	expect("model.nemo", 600, TO_THE_END, FORMAT_TORN, reason);
}

/* Where zeros are no content, a copy may leave them out. */
static void
hole_where_nothing_is_harms_nothing(void **state)
{
	struct format_report report = inspect("model.nemo", 0, 0);
	const struct format_record *last;
	uint64_t end;

	(void)state;
	last = &report.records[report.record_count - 1];
	end = last->offset + last->length;
	format_report_free(&report);
	expect("model.nemo", end, TO_THE_END, FORMAT_WHOLE, NULL);
	expect("model.nemo", end - 1, TO_THE_END, FORMAT_TORN, NULL);
	/* HDF5 closes a file with room at its end that it did not use. */
	expect("model-3.h5", 2200, TO_THE_END, FORMAT_UNPROVEN,
	    "bytes 2200 to 2207 were never written");
}

/* A real file, where the file system can tell. */
static void
hole_on_disk(void **state)
{
	static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":"
	    "[4194240],\"data_offsets\":[0,4194240]}}";
	char *folder = kit_scratch(), path[512], *data;
	size_t size = 8 + strlen(header) + 4194240;
	struct source_file opened = { .name = "m.safetensors" };
	struct format_report report;
	struct error error = ERROR_INIT;
	struct source source;
	uint64_t start, end;

	(void)state;
	data = malloc(size);
	kit_random(data, size, 1);
	memset(data, 0, 8);
	data[0] = (char)strlen(header);
	memcpy(data + 8, header, strlen(header));
	snprintf(path, sizeof(path), "%s/m.safetensors", folder);
	opened.fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(opened.fd >= 0);
	assert_int_equal(ftruncate(opened.fd, (off_t)size), 0);
	assert_int_equal(pwrite(opened.fd, data, 1 << 20, 0), 1 << 20);
	assert_int_equal(pwrite(opened.fd, data + (2 << 20), size - (2 << 20),
	    2 << 20), size - (2 << 20));
	source = source_from_file(&opened, size);
	assert_ok(format_inspect(&source, path, &report, &error), error);
	if (source.find_hole(source.context, 0, &start, &end) == 0) {
		assert_int_equal(start, 1 << 20);
		assert_int_equal(end, 2 << 20);
		assert_int_equal(report.verdict, FORMAT_UNPROVEN);
		assert_string_equal(report.reason,
		    "bytes 1048576 to 2097151 were never written");
	}
	format_report_free(&report);
	assert_int_equal(pwrite(opened.fd, data + (1 << 20), 1 << 20,
	    1 << 20), 1 << 20);
	assert_ok(format_inspect(&source, path, &report, &error), error);
	assert_int_equal(report.verdict, FORMAT_WHOLE);
	format_report_free(&report);
	close(opened.fd);
	free(data);
	kit_scratch_remove(folder);
	free(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hole_amid_is_unproven),
		cmocka_unit_test(hole_at_the_end_is_torn),
		cmocka_unit_test(hole_where_nothing_is_harms_nothing),
		cmocka_unit_test(hole_on_disk)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
