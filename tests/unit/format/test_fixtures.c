#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "format/format.h"
#include "kit/kit.h"

/* Real files (tests/data/format/make.py): what each one is. */
static const struct fixture {
	const char *name;
	enum format_kind kind;
	enum format_verdict verdict;
	size_t records;
	const char *record;	/* one of them, or NULL */
	uint64_t length;	/* its length */
	const char *reason;	/* a part of it */
} fixtures[] = {
	{ "torch-1.13.pt", FORMAT_TORCH, FORMAT_WHOLE, 21,
	    "torch-1.13/data/0", 512, "data.pkl names are there" },
	{ "torch-2.4.pt", FORMAT_TORCH, FORMAT_WHOLE, 16,
	    "archive/.data/serialization_id", 40, "data.pkl names are there" },
	{ "torch-2.8.pt", FORMAT_TORCH, FORMAT_WHOLE, 18,
	    "archive/data/11", 31 * 4, "data.pkl names are there" },
	{ "torch-protocol-4.pt", FORMAT_TORCH, FORMAT_WHOLE, 21,
	    "torch-protocol-4/data/10", 4, "data.pkl names are there" },
	{ "torch-class.pt", FORMAT_TORCH, FORMAT_WHOLE, 4,
	    "torch-class/data/1", 16, "data.pkl names are there" },
	{ "torch-failed.pt", FORMAT_TORCH, FORMAT_TORN, 0, NULL, 0,
	    "without data.pkl" },
	{ "torch-legacy.pt", FORMAT_TORCH_LEGACY, FORMAT_WHOLE, 2, NULL, 0,
	    "2 storages end exactly where the file ends" },
	{ "weights.npz", FORMAT_ZIP, FORMAT_WHOLE, 2, "b.npy", 368,
	    "members of the zip (2)" },
	{ "packed.npz", FORMAT_ZIP, FORMAT_WHOLE, 0, NULL, 0,
	    "members of the zip (1)" },
	{ "model.safetensors", FORMAT_SAFETENSORS, FORMAT_WHOLE, 3,
	    "head.gr\xc3\xb6\xc3\x9f" "e", 30, "covers exactly the 551" },
	{ "model-0.h5", FORMAT_HDF5, FORMAT_WHOLE, 0, NULL, 0, "2208" },
	{ "model-3.h5", FORMAT_HDF5, FORMAT_WHOLE, 0, NULL, 0, "2208" },
	{ "model.nemo", FORMAT_TAR, FORMAT_WHOLE, 2, "model.safetensors", 551,
	    "members of the tar (2)" },
	{ "trainer_state.json", FORMAT_JSON, FORMAT_WHOLE, 0, NULL, 0,
	    "ends where" },
	{ "model.safetensors.index.json", FORMAT_JSON, FORMAT_WHOLE, 0, NULL,
	    0, "ends where" },
};

#define FIXTURES (sizeof(fixtures) / sizeof(fixtures[0]))

static char *
read_fixture(const struct fixture *fixture, size_t *length)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/format/%s", TEST_DATA, fixture->name);
	return kit_read_file(path, length);
}

/* The report on ${length} bytes under the name ${name}. */
static struct format_report
inspect(const void *data, size_t length, const char *name)
{
	struct source_memory memory = { data, length };
	struct source source = source_from_memory(&memory);
	struct format_report report;
	struct error error = ERROR_INIT;

	assert_ok(format_inspect(&source, name, &report, &error), error);
	return report;
}

static const struct format_record *
find_record(const struct format_report *report, const char *name)
{
	for (size_t i = 0; i < report->record_count; i++)
		if (strcmp(report->records[i].name, name) == 0)
			return &report->records[i];
	return NULL;
}

static void
check_order(const struct format_report *report, size_t size)
{
	uint64_t at = 0;

	for (size_t i = 0; i < report->record_count; i++) {
		assert_true(report->records[i].offset >= at);
		assert_true(report->records[i].length > 0);
		at = report->records[i].offset + report->records[i].length;
	}
	assert_true(at <= size);
}

static void
test_whole_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < FIXTURES; i++) {
		const struct fixture *fixture = &fixtures[i];
		const struct format_record *record;
		struct format_report report;
		size_t length;
		char *data = read_fixture(fixture, &length);

		report = inspect(data, length, fixture->name);
		if (report.verdict != fixture->verdict ||
		    report.kind != fixture->kind ||
		    strstr(report.reason, fixture->reason) == NULL)
			fail_msg("%s is %s, %d: %s", fixture->name,
			    format_kind_text(report.kind), report.verdict,
			    report.reason);
		assert_int_equal(report.record_count, fixture->records);
		check_order(&report, length);
		if (fixture->record != NULL) {
			record = find_record(&report, fixture->record);
			assert_non_null(record);
			assert_int_equal(record->length, fixture->length);
		}
		format_report_free(&report);
		free(data);
	}
}

/* The bytes of records are those that lie in the members. */
static void
test_records_hold_their_bytes(void **state)
{
	struct format_report report;
	size_t length;
	char *data = read_fixture(&fixtures[2], &length);
	float first;

	(void)state;
	report = inspect(data, length, "x.pt");
	memcpy(&first, data + find_record(&report, "archive/data/7")->offset,
	    sizeof(first));
	assert_true(first == 7.0f);
	assert_memory_equal(data + find_record(&report,
	    "archive/byteorder")->offset, "little", 6);
	format_report_free(&report);
	free(data);

	data = read_fixture(&fixtures[9], &length);
	report = inspect(data, length, "model.safetensors");
	assert_memory_equal(data + find_record(&report, "scale")->offset,
	    "\7\7\7\7\7\7\7\7\7", 9);
	format_report_free(&report);
	free(data);
}

/* Cut at every byte: never whole, and records are no part of a torn file. */
static void
test_every_truncation(void **state)
{
	(void)state;
	for (size_t i = 0; i < FIXTURES; i++) {
		size_t length, needed;
		char *data = read_fixture(&fixtures[i], &length);

		/* A tar is padded behind its end mark of two blocks. */
		needed = fixtures[i].kind == FORMAT_TAR ? 4096 : length;
		for (size_t cut = 0; cut < length; cut++) {
			/* Of its own size, so that ASan sees its end. */
			char *part = malloc(cut + 1);
			struct format_report report;

			memcpy(part, data, cut);
			report = inspect(part, cut, fixtures[i].name);
			if (report.verdict == FORMAT_WHOLE &&
			    (cut < needed || cut % 512 != 0))
				fail_msg("%s cut at %zu of %zu is whole: %s",
				    fixtures[i].name, cut, length,
				    report.reason);
			if (report.verdict == FORMAT_TORN)
				assert_int_equal(report.record_count, 0);
			assert_true(report.reason[0] != '\0');
			format_report_free(&report);
			free(part);
		}
		free(data);
	}
}

/* Torn by a cut at any place but inside the first few bytes. */
static void
test_truncation_is_torn(void **state)
{
	(void)state;
	for (size_t i = 0; i < FIXTURES; i++) {
		size_t length;
		char *data = read_fixture(&fixtures[i], &length);

		for (size_t cut = 0; cut < length; cut += 7) {
			struct format_report report = inspect(data, cut,
			    fixtures[i].name);

			if (report.verdict != FORMAT_TORN &&
			    fixtures[i].kind != FORMAT_TAR)
				fail_msg("%s cut at %zu is not torn: %s",
				    fixtures[i].name, cut, report.reason);
			format_report_free(&report);
		}
		free(data);
	}
}

/* A byte more at the end is not the file that was written either. */
static void
test_one_byte_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < FIXTURES; i++) {
		size_t length;
		char *data = read_fixture(&fixtures[i], &length);
		struct format_report report;

		data = realloc(data, length + 1);
		data[length] = 'x';
		report = inspect(data, length + 1, fixtures[i].name);
		assert_int_not_equal(report.verdict, FORMAT_WHOLE);
		format_report_free(&report);
		free(data);
	}
}

/* A source that fails at one read, and counts. */
struct failing {
	struct source memory;
	unsigned reads;
	unsigned fails_at;	/* 0: never */
};

static int
read_failing(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	struct failing *failing = context;

	assert_true(length <= 65536);
	if (++failing->reads == failing->fails_at)
		return error_set(error, ERROR_FAILED, CAUSE_CHANGED, "here",
		    "has become shorter");
	return source_read(&failing->memory, offset, data, length, error);
}

/* An unreadable file gives no verdict, whichever read fails. */
static void
test_every_read_fails(void **state)
{
	(void)state;
	for (size_t i = 0; i < FIXTURES; i++) {
		size_t length;
		char *data = read_fixture(&fixtures[i], &length);
		struct source_memory memory = { data, length };
		struct failing failing = { source_from_memory(&memory), 0, 0 };
		struct source source = { .size = length,
			.read_at = read_failing, .context = &failing,
			.name = "failing" };
		struct format_report report;
		struct error error = ERROR_INIT;
		unsigned reads;

		assert_ok(format_inspect(&source, fixtures[i].name, &report,
		    &error), error);
		format_report_free(&report);
		reads = failing.reads;
		for (unsigned at = 1; at <= reads; at++) {
			failing.reads = 0;
			failing.fails_at = at;
			error_clear(&error);
			if (format_inspect(&source, fixtures[i].name, &report,
			    &error) != -1)
				fail_msg("%s: read %u of %u failed: %s",
				    fixtures[i].name, at, reads,
				    report.reason);
			assert_int_equal(error.class, ERROR_FAILED);
			assert_int_equal(error.cause, CAUSE_CHANGED);
		}
		free(data);
	}
}

/* Every byte damaged in turn: any verdict, but no crash and sane records. */
static void
test_damage_is_survived(void **state)
{
	(void)state;
	for (size_t i = 0; i < FIXTURES; i++) {
		size_t length;
		char *data = read_fixture(&fixtures[i], &length);

		for (size_t at = 0; at < length; at++) {
			struct format_report report;
			char before = data[at];

			data[at] = (char)(before ^ (0x81 << (at % 3)));
			report = inspect(data, length, fixtures[i].name);
			check_order(&report, length);
			format_report_free(&report);
			data[at] = before;
		}
		free(data);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_files),
		cmocka_unit_test(test_records_hold_their_bytes),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_truncation_is_torn),
		cmocka_unit_test(test_one_byte_more),
		cmocka_unit_test(test_every_read_fails),
		cmocka_unit_test(test_damage_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
