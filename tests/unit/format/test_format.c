#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "format/format.h"
#include "kit/kit.h"

static void
expect(const char *name, const void *data, size_t length,
    enum format_kind kind, enum format_verdict verdict, const char *reason)
{
	struct source_memory memory = { data, length };
	struct source source = source_from_memory(&memory);
	struct format_report report;
	struct error error = ERROR_INIT;

	assert_ok(format_inspect(&source, name, &report, &error), error);
	if (report.kind != kind || report.verdict != verdict ||
	    strstr(report.reason, reason) == NULL)
		fail_msg("%s: %s, verdict %d, %s", name,
		    format_kind_text(report.kind), report.verdict,
		    report.reason);
	assert_int_equal(report.record_count, 0);
	format_report_free(&report);
}

static void
test_empty(void **state)
{
	(void)state;
	expect("last.pt", "", 0, FORMAT_TORCH, FORMAT_TORN, "it is empty");
	expect("a/last.ckpt", "", 0, FORMAT_TORCH, FORMAT_TORN, "empty");
	expect("model.bin", "", 0, FORMAT_TORCH, FORMAT_TORN, "empty");
	expect("m.safetensors", "", 0, FORMAT_SAFETENSORS, FORMAT_TORN,
	    "empty");
	expect("m.h5", "", 0, FORMAT_HDF5, FORMAT_TORN, "empty");
	expect("m.keras", "", 0, FORMAT_ZIP, FORMAT_TORN, "empty");
	expect("m.nemo", "", 0, FORMAT_TAR, FORMAT_TORN, "empty");
	expect("x.json", "", 0, FORMAT_JSON, FORMAT_TORN, "empty");
	expect("__0_0.distcp", "", 0, FORMAT_UNKNOWN, FORMAT_UNPROVEN,
	    "empty");
	expect("README.md", "", 0, FORMAT_UNKNOWN, FORMAT_UNPROVEN, "empty");
}

static void
test_garbage(void **state)
{
	char garbage[2000];

	(void)state;
	kit_random(garbage, sizeof(garbage), 5);
	garbage[0] = 'x';
	for (int zeros = 0; zeros < 2; zeros++) {
		expect("last.pt", garbage, sizeof(garbage), FORMAT_TORCH,
		    FORMAT_TORN, "no zip end record");
		expect("last.PTH", garbage, sizeof(garbage), FORMAT_TORCH,
		    FORMAT_TORN, "no zip end record");
		expect("m.npz", garbage, sizeof(garbage), FORMAT_ZIP,
		    FORMAT_TORN, "no zip end record");
		expect("m.weights.h5", garbage, sizeof(garbage), FORMAT_HDF5,
		    FORMAT_TORN, "no HDF5 signature");
		expect("m.nemo", garbage, sizeof(garbage), FORMAT_TAR,
		    FORMAT_TORN, "it is no tar");
		expect("m.safetensors", garbage, sizeof(garbage),
		    FORMAT_SAFETENSORS, FORMAT_TORN, "");
		expect("model.ckpt", garbage, sizeof(garbage),
		    FORMAT_UNKNOWN, FORMAT_UNPROVEN, "no structure");
		expect("train.bin", garbage, sizeof(garbage), FORMAT_UNKNOWN,
		    FORMAT_UNPROVEN, "no structure");
		expect("ckpt-1.data-00000-of-00001", garbage,
		    sizeof(garbage), FORMAT_UNKNOWN, FORMAT_UNPROVEN,
		    "no structure");
		memset(garbage, 0, sizeof(garbage));
	}
}

/* What begins like a zip must end like one, whatever its name. */
static void
test_cut_zip(void **state)
{
	static const char zip[] = "PK\3\4 and so on for a while";

	(void)state;
	expect("last.ckpt", zip, sizeof(zip), FORMAT_TORCH, FORMAT_TORN,
	    "no zip end record");
	expect("model_best.pth.tar", zip, sizeof(zip), FORMAT_TORCH,
	    FORMAT_TORN, "no zip end record");
	expect("checkpoint-7", zip, sizeof(zip), FORMAT_ZIP, FORMAT_TORN,
	    "no zip end record");
	expect("__1_0.distcp", zip, sizeof(zip), FORMAT_UNKNOWN,
	    FORMAT_UNPROVEN, "no structure");
	expect("x.pt", "PK", 2, FORMAT_TORCH, FORMAT_TORN, "no zip end");
}

static void
test_pickles(void **state)
{
	(void)state;
	expect("x.pt", "\x80\4N.", 4, FORMAT_UNKNOWN, FORMAT_UNPROVEN,
	    "it is a pickle");
	expect("x.pt", "\x80\4N", 3, FORMAT_UNKNOWN, FORMAT_TORN,
	    "does not end like one");
	expect("random_states_0.pkl", "\x80\4N.", 4, FORMAT_UNKNOWN,
	    FORMAT_UNPROVEN, "it is a pickle");
	/* Raw bytes may follow a pickle, or begin like one. */
	expect("x.bin", "\x80\4N", 3, FORMAT_UNKNOWN, FORMAT_UNPROVEN,
	    "it is a pickle");
}

static void
test_gzip(void **state)
{
	(void)state;
	expect("old.nemo", "\x1f\x8b\x8 and so on", 12, FORMAT_TAR,
	    FORMAT_UNPROVEN, "compressed");
	expect("x.tar.gz", "\x1f\x8b\x8 and so on", 12, FORMAT_UNKNOWN,
	    FORMAT_UNPROVEN, "compressed");
	expect("x.pt", "\x1f\x8b\x8 and so on", 12, FORMAT_TORCH,
	    FORMAT_TORN, "no zip end record");
}

static void
test_kind_text(void **state)
{
	(void)state;
	assert_string_equal(format_kind_text(FORMAT_UNKNOWN), "unknown");
	assert_string_equal(format_kind_text(FORMAT_SAFETENSORS),
	    "safetensors");
	assert_string_equal(format_kind_text(FORMAT_TORCH), "torch");
	assert_string_equal(format_kind_text(FORMAT_TORCH_LEGACY),
	    "torch-legacy");
	assert_string_equal(format_kind_text(FORMAT_ZIP), "zip");
	assert_string_equal(format_kind_text(FORMAT_HDF5), "hdf5");
	assert_string_equal(format_kind_text(FORMAT_TAR), "tar");
	assert_string_equal(format_kind_text(FORMAT_JSON), "json");
}

static int
collect(void *context, const char *name, struct error *error)
{
	char *names = context;

	if (strcmp(name, "stop") == 0)
		return error_set(error, ERROR_FAILED, CAUSE_CANCELLED, name,
		    "stopped");
	strcat(strcat(names, name), " ");
	return 0;
}

static int
shards(const char *index, char *names, struct error *error)
{
	struct source_memory memory = { index, strlen(index) };
	struct source source = source_from_memory(&memory);

	names[0] = '\0';
	return format_index_shards(&source, collect, names, error);
}

static void
test_index(void **state)
{
	static const char *const bad[] = {
		"", "{}", "[]", "{\"weight_map\": 1}",
		"{\"weight_map\": {\"a\": 1}}",
		"{\"weight_map\": {\"a\": \"../x\"}}",
		"{\"weight_map\": {\"a\": \"/etc/passwd\"}}",
		"{\"weight_map\": {\"a\": \"\"}}",
		"{\"weight_map\": {\"a\": \"x\"}",
	};
	char names[200];
	struct error error = ERROR_INIT;

	(void)state;
	assert_ok(shards("{\"weight_map\": {\"a\": \"1\", \"b\": \"2\","
	    "\"c\": \"1\", \"d\": \"sub/3\"}}", names, &error), error);
	assert_string_equal(names, "1 2 sub/3 ");
	assert_ok(shards("{\"weight_map\": {}}", names, &error), error);
	assert_string_equal(names, "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		error_clear(&error);
		assert_int_equal(shards(bad[i], names, &error), -1);
		assert_int_equal(error.class, ERROR_DAMAGED);
	}
	assert_int_equal(shards("{\"weight_map\": {\"a\": \"stop\"}}", names,
	    &error), -1);
	assert_int_equal(error.cause, CAUSE_CANCELLED);
}

/* An index that claims to be larger than one may be is not read at all. */
static int
read_never(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	(void)context, (void)offset, (void)data, (void)length, (void)error;
	fail_msg("it was read");
	return -1;
}

static void
test_large_index(void **state)
{
	struct source source = { .size = UINT64_C(1) << 40,
		.read_at = read_never, .name = "index" };
	char names[200];
	struct error error = ERROR_INIT;

	(void)state;
	assert_int_equal(format_index_shards(&source, collect, names, &error),
	    -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_cut_zip),
		cmocka_unit_test(test_pickles),
		cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_kind_text),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_large_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
