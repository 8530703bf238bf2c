#include "unit/move/scene.h"

#include <sys/time.h>

#define MIB ((size_t)1 << 20)

static void
test_file(void **state)
{
	struct scene *scene = scene_new();
	struct restore restore = { .in_flight = 3 };
	struct error error = ERROR_INIT;

	(void)state;
	scene_fill(scene, "last.pt", 40 * MIB + 123, 1);
	scene_push(scene, "last.pt");
	assert_false(scene->outcome.known);
	assert_int_equal(scene->outcome.new_bytes, 40 * MIB + 123);
	assert_int_equal(scene->outcome.reused_bytes, 0);
	assert_string_equal(scene->outcome.manifest->name, "last.pt");
	assert_int_equal(scene->outcome.manifest->size, 40 * MIB + 123);
	assert_int_equal(scene->upload.progress.done, 40 * MIB + 123);
	assert_int_equal(scene->upload.progress.total, 40 * MIB + 123);
	assert_ok(scene_restore(scene, &restore, &error), error);
	scene_same(scene, "last.pt");
	scene_free(scene);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
