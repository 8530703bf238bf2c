#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/source.h"
#include "kit/kit.h"

static void
reads_memory(void **state)
{
	struct source_memory memory = { .data = "0123456789", .length = 10 };
	struct source source = source_from_memory(&memory);
	struct error error = ERROR_INIT;
	char data[11] = "";

	(void)state;
	assert_int_equal(source.size, 10);
	assert_non_null(source.name);
	assert_ok(source_read(&source, 0, data, 10, &error), error);
	assert_string_equal(data, "0123456789");
	assert_ok(source_read(&source, 7, data, 3, &error), error);
	assert_memory_equal(data, "789", 3);
	assert_ok(source_read(&source, 10, data, 0, &error), error);
}

static void
refuses_what_lies_past_the_end(void **state)
{
	struct source_memory memory = { .data = "0123456789", .length = 10 };
	struct source source = source_from_memory(&memory);
	static const struct {
		uint64_t offset;
		size_t length;
	} cases[] = {
		{ 10, 1 }, { 11, 0 }, { 0, 11 }, { 5, 6 }, { UINT64_MAX, 1 },
		{ UINT64_MAX, SIZE_MAX }, { 1, SIZE_MAX }, { UINT64_MAX, 0 },
	};

	(void)state;
	source.name = "last.pt";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = ERROR_INIT;
		char data[16];

		assert_int_equal(source_read(&source, cases[i].offset, data,
		    cases[i].length, &error), -1);
		assert_int_equal(error.class, ERROR_DAMAGED);
		assert_string_equal(error.object, "last.pt");
		assert_non_null(strstr(error.message, "past its end at 10"));
	}
}

static void
reads_a_file_and_sees_it_shrink(void **state)
{
	char *folder = kit_scratch(), *path = path_join(folder, "data");
	struct error error = ERROR_INIT;
	struct source_file file = { .name = "data" };
	struct source source;
	char data[6] = "";

	(void)state;
	kit_write_file(path, "hello world", 11);
	file.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(file.fd >= 0);
	source = source_from_file(&file, 11);
	assert_ok(source_read(&source, 6, data, 5, &error), error);
	assert_string_equal(data, "world");

	/* Half of what is wanted is still there. */
	assert_int_equal(truncate(path, 8), 0);
	assert_int_equal(source_read(&source, 6, data, 5, &error), -1);
	assert_int_equal(error.cause, CAUSE_CHANGED);
	assert_int_equal(error.class, ERROR_FAILED);
	assert_string_equal(error.object, "data");
	assert_string_equal(error.message, "has become shorter: it ends at 8");
	close(file.fd);

	/* A descriptor that cannot be read. */
	file.fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(source_read(&source, 0, data, 1, &error), -1);
	assert_int_equal(error.cause, CAUSE_OTHER);
	assert_non_null(strstr(error.message, "Bad file descriptor"));
	close(file.fd);
	kit_scratch_remove(folder);
	free(path);
	free(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_memory),
		cmocka_unit_test(refuses_what_lies_past_the_end),
		cmocka_unit_test(reads_a_file_and_sees_it_shrink),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
