#include "kit/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/checkpoint.h"
#include "life/aside.h"
#include "life/inventory.h"
#include "store/manifest.h"
#include "watch/view.h"

static struct checkpoint
local(const char *name, enum role role, uint64_t step)
{
	struct checkpoint checkpoint = { .name = (char *)name, .role = role,
	    .has_step = true, .step = step, .state = CHECKPOINT_COMPLETE };

	return checkpoint;
}

static void
the_newer_one_here_is_gone_on_from(void **state)
{
	struct manifest resume = { .role = ROLE_RESUME };
	struct checkpoint a = local("a", ROLE_RESUME, 5);
	struct checkpoint b = local("b", ROLE_RESUME, 7);
	struct checkpoint best = local("best", ROLE_BEST, 99);
	struct inventory_item items[] = {
		{ &a, NULL, INVENTORY_NEWER }, { &b, NULL, INVENTORY_NEWER },
		{ &best, NULL, INVENTORY_NEWER },
	};
	struct inventory inventory = { items, 3 };
	struct view view = { 0 };

	(void)state;
	assert_ptr_equal(inventory_resume(&inventory, &view, &resume),
	    &items[1]);
	assert_ptr_equal(inventory_resume(&inventory, &view, NULL),
	    &items[1]);
	/* Only the best one is new: the remote's resume point is brought. */
	items[0].standing = items[1].standing = INVENTORY_OLDER;
	assert_null(inventory_resume(&inventory, &view, &resume));
	/* ... unless it lies here. */
	items[0].standing = INVENTORY_KNOWN;
	items[0].known = &resume;
	assert_ptr_equal(inventory_resume(&inventory, &view, &resume),
	    &items[0]);
	assert_true(inventory_holds(&inventory, &resume));
	inventory.count = 0;
	assert_null(inventory_resume(&inventory, &view, NULL));
	assert_false(inventory_holds(&inventory, &resume));
}

static void
the_unknown_are_sorted_by_precedence(void **state)
{
	struct manifest resume = { .role = ROLE_RESUME, .has_step = true,
	    .step = 6 };
	struct precedence precedence = { .resume = &resume };
	struct checkpoint a = local("a", ROLE_RESUME, 5);
	struct checkpoint b = local("b", ROLE_RESUME, 7);
	struct checkpoint best = local("best", ROLE_BEST, 1);
	struct checkpoint known = local("known", ROLE_RESUME, 99);
	struct inventory_item items[] = {
		{ &a, NULL, INVENTORY_NEWER }, { &b, NULL, INVENTORY_NEWER },
		{ &best, NULL, INVENTORY_NEWER },
		{ &known, &resume, INVENTORY_KNOWN },
	};
	struct inventory inventory = { items, 4 };

	(void)state;
	inventory_sort(&inventory, &precedence);
	assert_int_equal(items[0].standing, INVENTORY_OLDER);
	assert_int_equal(items[1].standing, INVENTORY_NEWER);
	assert_int_equal(items[2].standing, INVENTORY_NEWER);
	assert_int_equal(items[3].standing, INVENTORY_KNOWN);
	/* Where nothing is restored and the resume point is not here. */
	precedence.local_first = true;
	inventory_sort(&inventory, &precedence);
	assert_int_equal(items[0].standing, INVENTORY_NEWER);
}

static void
put(const char *folder, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	kit_write_file(path, name, strlen(name));
}

static bool
is_there(const char *folder, const char *inside, const char *name)
{
	struct stat status;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s%s%s", folder, inside,
	    inside[0] != '\0' ? "/" : "", name);
	return lstat(path, &status) == 0;
}

static void
a_directory_is_moved_whole_and_nothing_else(void **state)
{
	char *folder = kit_scratch();
	struct aside aside = { .folder = folder, .kind = "torn" };
	struct checkpoint_entry entries[] = {
		{ .path = "run/checkpoint-5", .kind = ENTRY_FOLDER },
		{ .path = "run/checkpoint-5/a", .kind = ENTRY_FILE },
	};
	struct checkpoint checkpoint = { .name = "run/checkpoint-5",
	    .entries = entries, .entry_count = 2 };
	struct error error = ERROR_INIT;

	(void)state;
	put(folder, "run/checkpoint-5/a");
	put(folder, "run/checkpoint-5/unlisted");
	put(folder, "run/checkpoint-4/a");
	assert_ok(aside_move(&aside, &checkpoint, &error), error);
	assert_true(strncmp(aside.name, ".ckptsync-torn-", 15) == 0);
	assert_true(is_there(folder, aside.name, "run/checkpoint-5/a"));
	assert_true(is_there(folder, aside.name,
	    "run/checkpoint-5/unlisted"));
	assert_false(is_there(folder, "", "run/checkpoint-5"));
	assert_true(is_there(folder, "", "run/checkpoint-4/a"));
	/* What is gone already is fine. */
	assert_ok(aside_move(&aside, &checkpoint, &error), error);
	kit_scratch_remove(folder);
	free(folder);
}

static void
files_without_a_folder_of_their_own_are_moved_one_by_one(void **state)
{
	char *folder = kit_scratch();
	struct aside aside = { .folder = folder, .kind = "replaced" };
	struct aside again = { .folder = folder, .kind = "replaced" };
	struct checkpoint_entry entries[] = {
		{ .path = "run", .kind = ENTRY_FOLDER },
		{ .path = "run/ckpt-5.data", .kind = ENTRY_FILE },
		{ .path = "run/ckpt-5.index", .kind = ENTRY_FILE },
	};
	struct checkpoint checkpoint = { .name = "run/ckpt-5",
	    .entries = entries, .entry_count = 3 };
	struct error error = ERROR_INIT;

	(void)state;
	put(folder, "run/ckpt-5.data");
	put(folder, "run/ckpt-5.index");
	put(folder, "run/ckpt-4.index");
	assert_ok(aside_move(&aside, &checkpoint, &error), error);
	assert_true(is_there(folder, aside.name, "run/ckpt-5.data"));
	assert_true(is_there(folder, aside.name, "run/ckpt-5.index"));
	assert_true(is_there(folder, "", "run/ckpt-4.index"));
	/* A second move in the same second has a folder of its own. */
	put(folder, "run/ckpt-5.index");
	assert_ok(aside_move(&again, &checkpoint, &error), error);
	assert_true(is_there(folder, again.name, "run/ckpt-5.index"));
	assert_string_not_equal(aside.name, again.name);
	kit_scratch_remove(folder);
	free(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newer_one_here_is_gone_on_from),
		cmocka_unit_test(the_unknown_are_sorted_by_precedence),
		cmocka_unit_test(a_directory_is_moved_whole_and_nothing_else),
		cmocka_unit_test(
		    files_without_a_folder_of_their_own_are_moved_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
