#include <stdio.h>
#include <stdlib.h>

#include "zipper.h"

static void
test_storages(void **state)
{
	struct zipper *zipper = new_zipper();

	(void)state;
	add(zipper, *pickle("FloatStorage", "0", 3));
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, true);
	expect(zipper, FORMAT_WHOLE, "all storages");

	zipper = new_zipper();
	add(zipper, *pickle("FloatStorage", "0", 4));
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, true);
	expect(zipper, FORMAT_TORN,
	    "a/data/0 has 12 bytes, data.pkl says 4 elements of 4");

	zipper = new_zipper();
	add(zipper, *pickle("FloatStorage", "1", 3));
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "names a/data/1, which is not there");

	/* The folder of another prefix is not its own. */
	zipper = new_zipper();
	add(zipper, *pickle("HalfStorage", "0", 3));
	add_text(zipper, "b/data/0", "twelve bytes");
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "names a/data/0, which is not there");

	/* A type of the future: it must be there, with any length. */
	zipper = new_zipper();
	add(zipper, *pickle("FutureStorage", "0", 1 << 30));
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, false);
	expect(zipper, FORMAT_WHOLE, "all storages");

	zipper = new_zipper();
	add(zipper, *pickle("FutureStorage", "", 3));
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, false);
	expect(zipper, FORMAT_WHOLE, "all storages");
}

static void
test_refused_pickles(void **state)
{
	struct zipper *zipper = new_zipper();

	(void)state;
	/* A persistent id of protocol 0. */
	add_text(zipper, "a/data.pkl", "\x80\2Pid\n.");
	finish(zipper, false);
	expect(zipper, FORMAT_WHOLE, "storages were not checked");

	zipper = new_zipper();
	add_text(zipper, "a/data.pkl", "\x80\2N");
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "ends in the middle");

	zipper = new_zipper();
	add_text(zipper, "a/data.pkl", "\x80\2t.");
	finish(zipper, false);
	expect(zipper, FORMAT_TORN, "the pickle is damaged");
}

static void
test_without_pickle(void **state)
{
	struct zipper *zipper = new_zipper();

	(void)state;
	add_text(zipper, "a/version", "3\n");
	finish(zipper, true);
	expect(zipper, FORMAT_TORN, "without data.pkl");

	/* As 2.8 leaves it, under a name that says nothing. */
	zipper = new_zipper();
	add_text(zipper, "a/.format_version", "1");
	add_text(zipper, "a/.storage_alignment", "64");
	add_text(zipper, "a/byteorder", "little");
	add_text(zipper, "a/version", "3\n");
	add_text(zipper, "a/.data/serialization_id", "00");
	finish(zipper, true);
	expect_named(zipper, "state", FORMAT_TORN, "without data.pkl");

	zipper = new_zipper();
	add_text(zipper, "a/data/0", "twelve bytes");
	finish(zipper, true);
	expect(zipper, FORMAT_TORN, "without data.pkl");

	zipper = new_zipper();
	add_text(zipper, "a/.data/extern_modules", "torch");
	finish(zipper, true);
	expect(zipper, FORMAT_WHOLE, "all members of the zip (1)");

	zipper = new_zipper();
	add_text(zipper, "metadata.json", "{}");
	add_text(zipper, "model.weights.h5", "x");
	finish(zipper, false);
	expect_named(zipper, "model.keras", FORMAT_WHOLE, "zip (2)");

	/* numpy.savez without an array. */
	zipper = new_zipper();
	finish(zipper, false);
	expect_named(zipper, "none.npz", FORMAT_WHOLE, "zip (0)");
}

/* Listing the 194 members of 310 MB reads 1.6 % of them at most. */
static void
test_cost_of_reading(void **state)
{
	struct zipper *zipper = new_zipper();
	struct holed holed = { .zipper = zipper };
	struct source source = { .read_at = read_holed, .context = &holed,
		.name = "usual" };
	struct format_report report;
	struct error error = ERROR_INIT;
	char names[194][32];

	(void)state;
	add(zipper, *pickle("FloatStorage", "0", 400000));
	for (int i = 0; i < 192; i++) {
		sprintf(names[i], "a/data/%d", i);
		add(zipper, (struct member){ .name = names[i],
		    .length = 1600000 + i, .extra = 4 + i });
	}
	add_text(zipper, "a/version", "3\n");
	finish(zipper, true);
	source.size = offset_of(zipper);
	assert_ok(format_inspect(&source, "a.pt", &report, &error), error);
	assert_int_equal(report.verdict, FORMAT_WHOLE);
	assert_int_equal(report.record_count, 194);
	for (int i = 0; i < 192; i++) {
		assert_string_equal(report.records[i + 1].name, names[i]);
		assert_int_equal(report.records[i + 1].length, 1600000 + i);
	}
	assert_true(holed.read < source.size * 16 / 1000);
	format_report_free(&report);
	free(zipper);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storages),
		cmocka_unit_test(test_refused_pickles),
		cmocka_unit_test(test_without_pickle),
		cmocka_unit_test(test_cost_of_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
