#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/source.h"
#include "format/format.h"
#include "kit/kit.h"

/* A file of ${header} and ${length} bytes of data 0x5a; the caller frees it. */
static char *
make_file(const char *header, size_t length, size_t *size)
{
	uint64_t text = strlen(header);
	char *file = malloc(8 + text + length);

	memcpy(file, &text, 8);
	memcpy(file + 8, header, text);
	memset(file + 8 + text, 0x5a, length);
	*size = 8 + text + length;
	return file;
}

static void
inspect(const char *data, size_t size, struct format_report *report)
{
	struct source_memory memory = { data, size };
	struct source source = source_from_memory(&memory);
	struct error error = ERROR_INIT;

	assert_ok(format_inspect(&source, "m.safetensors", report, &error),
	    error);
	assert_int_equal(report->kind, FORMAT_SAFETENSORS);
}

static void
expect(const char *header, size_t length, enum format_verdict verdict,
    const char *reason)
{
	struct format_report report;
	size_t size;
	char *file = make_file(header, length, &size);

	inspect(file, size, &report);
	if (report.verdict != verdict || strstr(report.reason, reason) == NULL)
		fail_msg("%s with %zu bytes: verdict %d, %s", header, length,
		    report.verdict, report.reason);
	format_report_free(&report);
	free(file);
}

#define TENSOR(name, dtype, shape, begin, end) \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape \
	",\"data_offsets\":[" begin "," end "]}"

static void
test_whole(void **state)
{
	(void)state;
	expect("{}", 0, FORMAT_WHOLE, "exactly the 10 bytes");
	expect("{\"__metadata__\":{}}  \n", 0, FORMAT_WHOLE, "exactly");
	expect("{" TENSOR("a", "F32", "[2]", "0", "8") "}", 8, FORMAT_WHOLE,
	    "exactly");
	/* In another order than in the file, and with an empty one. */
	expect("{" TENSOR("b", "I64", "[1]", "4", "12") ","
	    TENSOR("z", "F16", "[3,0]", "4", "4") ","
	    TENSOR("a", "U8", "[4]", "0", "4") "}", 12, FORMAT_WHOLE,
	    "exactly");
	/* Four bits an element, and a type of the future. */
	expect("{" TENSOR("a", "F4", "[3,2]", "0", "3") "}", 3, FORMAT_WHOLE,
	    "exactly");
	expect("{" TENSOR("a", "F1024", "[3]", "0", "3") "}", 3, FORMAT_WHOLE,
	    "exactly");
}

static void
test_torn(void **state)
{
	(void)state;
	expect("{" TENSOR("a", "F32", "[2]", "0", "8") "}", 7, FORMAT_TORN,
	    "it ends at byte");
	expect("{" TENSOR("a", "F32", "[2]", "0", "8") "}", 9, FORMAT_TORN,
	    "its tensors end at byte");
	expect("{}", 1, FORMAT_TORN, "its tensors end");
	expect("{" TENSOR("a", "U8", "[4]", "0", "4") ","
	    TENSOR("b", "U8", "[4]", "3", "7") "}", 7, FORMAT_TORN,
	    "not where the one before it ends");
	expect("{" TENSOR("a", "U8", "[4]", "0", "4") ","
	    TENSOR("b", "U8", "[4]", "5", "9") "}", 9, FORMAT_TORN,
	    "not where the one before it ends");
	expect("{" TENSOR("a", "U8", "[4]", "1", "5") "}", 5, FORMAT_TORN,
	    "not where");
	expect("{" TENSOR("a", "F32", "[3]", "0", "8") "}", 8, FORMAT_TORN,
	    "does not fit its shape");
	expect("{" TENSOR("a", "U8", "[4]", "4", "0") "}", 4, FORMAT_TORN,
	    "ends before it begins");
	expect("{" TENSOR("a", "U8", "[4]", "0", "4") ","
	    TENSOR("a", "U8", "[4]", "4", "8") "}", 8, FORMAT_TORN,
	    "two of its tensors are named a");
}

static void
test_damaged_headers(void **state)
{
	static const char *const headers[] = {
		"[]", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1}", "{\"a\":{}}",
		"{,}", "{} {}", "{}x", "{\"a\":{\"dtype\":\"U8\"},}", "x{}",
		"{" TENSOR("a", "U8", "4", "0", "4") "}",
		"{" TENSOR("a", "U8", "[-4]", "0", "4") "}",
		"{" TENSOR("a", "U8", "[4]", "-1", "4") "}",
		"{" TENSOR("a", "U8", "[4]", "0.5", "4") "}",
		"{" TENSOR("a", "U8", "[4]", "0", "99999999999999999999") "}",
		"{" TENSOR("a", "U8", "[4]", "0", "9223372036854775807") "}",
		/* Shapes that overflow, also to the right number. */
		"{" TENSOR("a", "F64", "[4611686018427387904,4]", "0", "4")
		    "}",
		"{" TENSOR("a", "U8", "[9223372036854775807,2,2]", "0", "4")
		    "}",
		"{" TENSOR("a", "U8", "[4],\"shape\":[4]", "0", "4") "}",
		"{" TENSOR("a\\u0000b", "U8", "[4]", "0", "4") "}",
		"{" TENSOR("a\xff", "U8", "[4]", "0", "4") "}",
		"{\"__metadata__\":{\"a\":1}}", "{\"__metadata__\":[]}",
		"{\"__metadata__\":{\"a\":[[[[]]]]}}", "{1:2}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		expect(headers[i], 4, FORMAT_TORN, "");
}

/* The length field against the file. */
static void
test_header_length(void **state)
{
	static const struct {
		uint64_t length;
		const char *reason;
	} cases[] = {
		{ 0, "its length is 0" },
		{ 3, "its header at byte 11" },
		{ 100000000, "its header at byte 100000008" },
		{ 100000001, "longer than 100,000,000" },
		{ UINT64_MAX, "longer than 100,000,000" },
		{ UINT64_MAX - 7, "longer than 100,000,000" },
	};
	struct format_report report;
	char file[10];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(file, &cases[i].length, 8);
		memcpy(file + 8, "{}", 2);
		inspect(file, sizeof(file), &report);
		assert_int_equal(report.verdict, FORMAT_TORN);
		assert_non_null(strstr(report.reason, cases[i].reason));
		format_report_free(&report);
	}
	inspect(file, 5, &report);
	assert_int_equal(report.verdict, FORMAT_TORN);
	assert_non_null(strstr(report.reason, "ends at byte 5"));
	format_report_free(&report);
}

/* Deep nesting is refused by its depth, not by the stack. */
static void
test_deep_header(void **state)
{
	size_t depth = 1000000, size;
	char *header = malloc(depth + 6), *file;
	struct format_report report;

	(void)state;
	memcpy(header, "{\"a\":", 5);
	memset(header + 5, '[', depth);
	header[depth + 5] = '\0';
	file = make_file(header, 0, &size);
	inspect(file, size, &report);
	assert_int_not_equal(report.verdict, FORMAT_WHOLE);
	format_report_free(&report);
	free(file);
	free(header);
}

/* What is over a limit is not proven torn. */
static void
test_limits(void **state)
{
	size_t length = 70000, size;
	char *header = malloc(2 * length), *file;
	struct format_report report;

	(void)state;
	sprintf(header, "{\"%0*d\":{\"dtype\":\"U8\",\"shape\":[1],"
	    "\"data_offsets\":[0,1]}}", 5000, 7);
	file = make_file(header, 1, &size);
	inspect(file, size, &report);
	assert_int_equal(report.verdict, FORMAT_UNPROVEN);
	assert_non_null(strstr(report.reason, "longer than 4096"));
	format_report_free(&report);
	free(file);

	sprintf(header, "{\"a\":{\"dtype\":\"U8\",\"other\":\"%0*d\"}}",
	    (int)length, 7);
	file = make_file(header, 1, &size);
	inspect(file, size, &report);
	assert_int_equal(report.verdict, FORMAT_UNPROVEN);
	assert_non_null(strstr(report.reason, "longer than 65536"));
	format_report_free(&report);
	free(file);
	free(header);
}

/* A header over many windows: names, order and offsets hold. */
static void
test_long_header(void **state)
{
	const size_t count = 20000;
	char *header = malloc(count * 90 + 10), *end = header, *file;
	struct format_report report;
	char name[32];
	size_t size;

	(void)state;
	end += sprintf(end, "{\"__metadata__\":{\"k\":\"%09000d\"}", 1);
	for (size_t i = 0; i < count; i++)
		end += sprintf(end, ",\"layer.%zu.w\":{\"dtype\":\"U8\","
		    "\"shape\":[2,1],\"data_offsets\":[%zu,%zu]}", i, 2 * i,
		    2 * i + 2);
	strcpy(end, "}");
	file = make_file(header, 2 * count, &size);
	inspect(file, size, &report);
	assert_int_equal(report.verdict, FORMAT_WHOLE);
	assert_int_equal(report.record_count, count);
	for (size_t i = 0; i < count; i++) {
		sprintf(name, "layer.%zu.w", i);
		assert_string_equal(report.records[i].name, name);
		assert_int_equal(report.records[i].offset,
		    8 + strlen(header) + 2 * i);
	}
	format_report_free(&report);
	free(file);
	free(header);
}

/* A source in memory that knows where it was written. */
struct holed {
	struct source memory;
	uint64_t hole;		/* the file is unwritten from here... */
	uint64_t end;		/* ...to here */
	int known;
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

	if (!holed->known)
		return -1;
	*start = *end = holed->memory.size;
	if (offset < holed->end && holed->hole < holed->end) {
		*start = offset > holed->hole ? offset : holed->hole;
		*end = holed->end;
	}
	return 0;
}

static enum format_verdict
verdict_of_holed(char *file, size_t size, uint64_t hole, int known)
{
	struct source_memory memory = { file, size };
	struct holed holed = { source_from_memory(&memory), hole, size,
	    known };
	struct source source = { .size = size, .read_at = read_holed,
		.find_hole = find_holed, .context = &holed, .name = "holed" };
	struct format_report report;
	struct error error = ERROR_INIT;

	assert_ok(format_inspect(&source, "m.safetensors", &report, &error),
	    error);
	format_report_free(&report);
	return report.verdict;
}

/* A full-size file whose writer was killed, and one that ends in zeros. */
static void
test_unwritten_end(void **state)
{
	size_t size;
	char *file = make_file("{" TENSOR("a", "U8", "[40000]", "0", "40000")
	    "}", 40000, &size);

	(void)state;
	assert_int_equal(verdict_of_holed(file, size, size, 1), FORMAT_WHOLE);
	assert_int_equal(verdict_of_holed(file, size, size, 0), FORMAT_WHOLE);
	memset(file + 8192, 0, size - 8192);
	/* Zeros that were written are as good as other bytes. */
	assert_int_equal(verdict_of_holed(file, size, size, 1), FORMAT_WHOLE);
	assert_int_equal(verdict_of_holed(file, size, size, 0),
	    FORMAT_UNPROVEN);
	assert_int_equal(verdict_of_holed(file, size, 8192, 1), FORMAT_TORN);
	assert_int_equal(verdict_of_holed(file, size, size - 1, 1),
	    FORMAT_TORN);
	/* The last page holds a byte: not a killed writer's. */
	file[size - 1] = 1;
	assert_int_equal(verdict_of_holed(file, size, size, 0), FORMAT_WHOLE);
	free(file);
}

/* The same with a real file, where the file system can tell. */
static void
test_unwritten_end_on_disk(void **state)
{
	char *folder = kit_scratch(), path[512], zeros[4096] = { 0 };
	size_t size;
	char *file = make_file("{" TENSOR("a", "U8", "[4000000]", "0",
	    "4000000") "}", 4000000, &size);
	struct source_file opened = { .name = "m.safetensors" };
	struct format_report report;
	struct error error = ERROR_INIT;
	struct source source;
	uint64_t hole, end;

	(void)state;
	snprintf(path, sizeof(path), "%s/m.safetensors", folder);
	opened.fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(opened.fd >= 0);
	assert_int_equal(ftruncate(opened.fd, (off_t)size), 0);
	assert_int_equal(pwrite(opened.fd, file, 1 << 20, 0), 1 << 20);
	source = source_from_file(&opened, size);
	assert_ok(format_inspect(&source, path, &report, &error), error);
	if (source.find_hole(source.context, size - 1, &hole, &end) == 0)
		assert_int_equal(report.verdict, FORMAT_TORN);
	else
		assert_int_equal(report.verdict, FORMAT_UNPROVEN);
	format_report_free(&report);

	for (size_t at = 1 << 20; at < size; at += sizeof(zeros)) {
		size_t left = size - at;
		size_t part = left < sizeof(zeros) ? left : sizeof(zeros);

		assert_int_equal(pwrite(opened.fd, zeros, part, (off_t)at),
		    part);
	}
	assert_ok(format_inspect(&source, path, &report, &error), error);
	assert_int_not_equal(report.verdict, FORMAT_TORN);
	format_report_free(&report);
	close(opened.fd);
	free(file);
	kit_scratch_remove(folder);
	free(folder);
}

/* Found by its content under another name, but then never called torn. */
static void
test_other_name(void **state)
{
	struct format_report report;
	struct error error = ERROR_INIT;
	size_t size;
	char *file = make_file("{" TENSOR("a", "U8", "[4]", "0", "4") "}", 4,
	    &size);
	struct source_memory memory = { file, size };
	struct source source = source_from_memory(&memory);

	(void)state;
	assert_ok(format_inspect(&source, "model.bin", &report, &error),
	    error);
	assert_int_equal(report.kind, FORMAT_SAFETENSORS);
	assert_int_equal(report.verdict, FORMAT_WHOLE);
	format_report_free(&report);
	source.size--;
	assert_ok(format_inspect(&source, "blob", &report, &error), error);
	assert_int_equal(report.kind, FORMAT_UNKNOWN);
	assert_int_equal(report.verdict, FORMAT_UNPROVEN);
	format_report_free(&report);
	free(file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_damaged_headers),
		cmocka_unit_test(test_header_length),
		cmocka_unit_test(test_deep_header),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_long_header),
		cmocka_unit_test(test_unwritten_end),
		cmocka_unit_test(test_unwritten_end_on_disk),
		cmocka_unit_test(test_other_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
