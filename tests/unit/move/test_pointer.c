#include "move/pointer.h"

#include "unit/move/scene.h"

static bool
names(const char *text, const char *name, int step)
{
	struct checkpoint checkpoint = {
		.name = (char *)name,
		.has_step = step >= 0,
		.step = step >= 0 ? (uint64_t)step : 0
	};
	struct pointer pointer = {
		.entry = { .kind = ENTRY_FILE }, .data = (char *)text
	};
	bool result = pointer_names(&pointer, &checkpoint);

	pointer.entry.kind = ENTRY_LINK;
	pointer.entry.target = (char *)text;
	assert_int_equal(pointer_names(&pointer, &checkpoint), result);
	return result;
}

static void
test_names(void **state)
{
	(void)state;
	assert_true(names("global_step600", "global_step600", -1));
	assert_true(names("global_step600\n", "out/global_step600", 600));
	assert_false(names("global_step6000", "global_step600", 600));
	assert_false(names("old_global_step600", "global_step600", -1));
	assert_true(names("/data/run/epoch_12.pth", "epoch_12.pth", 12));
	assert_true(names("model_checkpoint_path: \"ckpt-12\"\n"
	    "all_model_checkpoint_paths: \"ckpt-1\"\n", "ckpt-12", 12));
	assert_true(names("ckpt-12 ckpt-1", "ckpt-1", 1));
	assert_true(names("epoch=3-step=30.ckpt", "epoch=3-step=30.ckpt", 30));
	assert_false(names("epoch=13-step=30.ckpt", "epoch=3-step=30.ckpt",
	    30));
	/* A tracker that holds a step alone. */
	assert_true(names("600", "iter_0000600", 600));
	assert_true(names("600\n", "iter_0000600", 600));
	assert_false(names("6000\n", "iter_0000600", 600));
	assert_false(names("600 7\n", "iter_0000600", 600));
	assert_false(names("600", "iter_0000600", -1));
	assert_false(names("", "iter_0000600", 600));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
