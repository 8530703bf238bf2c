#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "format/format.h"
#include "kit/kit.h"

#define BLOCK 512

/* A tar (POSIX.1-1988 ustar) in memory. */
struct tar {
	char *bytes;
	size_t length;
};

static void
add_blocks(struct tar *tar, const void *data, size_t length)
{
	size_t padded = (length + BLOCK - 1) / BLOCK * BLOCK;

	tar->bytes = realloc(tar->bytes, tar->length + padded);
	memset(tar->bytes + tar->length, 0, padded);
	if (length > 0)
		memcpy(tar->bytes + tar->length, data, length);
	tar->length += padded;
}

/* A header that says ${size}, as eleven octal digits or in base 256. */
static void
add_header(struct tar *tar, const char *name, char type, uint64_t size)
{
	char header[BLOCK] = "";
	unsigned sum = 0;

	strncpy(header, name, 100);
	strcpy(header + 100, "0000644");
	strcpy(header + 108, "0000000");
	strcpy(header + 116, "0000000");
	strcpy(header + 136, "00000000000");
	if (size < UINT64_C(1) << 33) {
		sprintf(header + 124, "%011llo", (unsigned long long)size);
	} else {
		header[124] = (char)0x80;
		for (int i = 0; i < 8; i++)
			header[135 - i] = (char)(size >> (8 * i));
	}
	memcpy(header + 257, "ustar\0" "00", 8);
	header[156] = type;
	memset(header + 148, ' ', 8);
	for (int i = 0; i < BLOCK; i++)
		sum += (unsigned char)header[i];
	sprintf(header + 148, "%06o", sum);
	add_blocks(tar, header, BLOCK);
}

static void
add_file(struct tar *tar, const char *name, const char *data)
{
	add_header(tar, name, '0', strlen(data));
	add_blocks(tar, data, strlen(data));
}

static void
add_end(struct tar *tar, size_t blocks)
{
	char zeros[BLOCK] = "";

	while (blocks-- > 0)
		add_blocks(tar, zeros, BLOCK);
}

static struct format_report
inspect(const struct tar *tar)
{
	struct source_memory memory = { tar->bytes, tar->length };
	struct source source = source_from_memory(&memory);
	struct format_report report;
	struct error error = ERROR_INIT;

	assert_ok(format_inspect(&source, "m.nemo", &report, &error), error);
	assert_int_equal(report.kind, FORMAT_TAR);
	return report;
}

static void
expect(struct tar *tar, enum format_verdict verdict, const char *reason)
{
	struct format_report report = inspect(tar);

	if (report.verdict != verdict || strstr(report.reason, reason) == NULL)
		fail_msg("verdict %d: %s; expected %s", report.verdict,
		    report.reason, reason);
	format_report_free(&report);
	free(tar->bytes);
	*tar = (struct tar){ NULL, 0 };
}

static void
test_whole(void **state)
{
	struct tar tar = { NULL, 0 };
	struct format_report report;

	(void)state;
	add_header(&tar, "folder/", '5', 0);
	add_file(&tar, "folder/weights.ckpt", "weights");
	add_file(&tar, "empty", "");
	add_header(&tar, "link", '2', 0);
	add_file(&tar, "config.yaml", "config");
	add_end(&tar, 2);
	report = inspect(&tar);
	assert_int_equal(report.verdict, FORMAT_WHOLE);
	assert_int_equal(report.record_count, 2);
	assert_string_equal(report.records[0].name, "folder/weights.ckpt");
	assert_int_equal(report.records[0].offset, 2 * BLOCK);
	assert_int_equal(report.records[0].length, 7);
	assert_string_equal(report.records[1].name, "config.yaml");
	assert_memory_equal(tar.bytes + report.records[1].offset, "config", 6);
	format_report_free(&report);
	add_end(&tar, 16);
	expect(&tar, FORMAT_WHOLE, "members of the tar (5)");

	/* The last member has no bytes. */
	add_file(&tar, "a", "x");
	add_header(&tar, "folder/", '5', 0);
	add_end(&tar, 2);
	expect(&tar, FORMAT_WHOLE, "members of the tar (2)");
}

static void
test_end_mark(void **state)
{
	struct tar tar = { NULL, 0 };

	(void)state;
	add_file(&tar, "a", "x");
	expect(&tar, FORMAT_TORN, "without the mark of its end");
	add_file(&tar, "a", "x");
	add_end(&tar, 1);
	expect(&tar, FORMAT_TORN, "without the mark of its end");

	/* Zeros inside the last member are no mark. */
	add_header(&tar, "a", '0', 4 * BLOCK);
	add_end(&tar, 4);
	expect(&tar, FORMAT_TORN, "without the mark of its end");

	/* Not a number of blocks. */
	add_file(&tar, "a", "x");
	add_end(&tar, 3);
	tar.length--;
	expect(&tar, FORMAT_TORN, "without the mark of its end");
}

static void
test_hostile(void **state)
{
	struct tar tar = { NULL, 0 };

	(void)state;
	add_header(&tar, "a", '0', 5000);
	add_end(&tar, 2);
	expect(&tar, FORMAT_TORN, "inside a member of 5000 bytes");

	add_header(&tar, "a", '0', UINT64_C(1) << 40);
	add_end(&tar, 2);
	expect(&tar, FORMAT_TORN, "inside a member");

	add_header(&tar, "a", '0', INT64_MAX);
	add_end(&tar, 2);
	expect(&tar, FORMAT_TORN, "");

	/* A damaged second header. */
	add_file(&tar, "a", "x");
	add_file(&tar, "b", "x");
	add_end(&tar, 2);
	tar.bytes[2 * BLOCK + 3] ^= 1;
	expect(&tar, FORMAT_TORN, "");

	/* A long name that never comes. */
	add_header(&tar, "././@LongLink", 'L', UINT64_C(1) << 32);
	add_end(&tar, 2);
	expect(&tar, FORMAT_TORN, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_end_mark),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
