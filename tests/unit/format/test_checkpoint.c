#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/checkpoint.h"
#include "kit/kit.h"

/* A folder, a file in it and a link to it. */
static struct checkpoint *
make(void)
{
	struct checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
	struct checkpoint_entry *entries = calloc(3, sizeof(*entries));

	checkpoint->name = strdup("checkpoint-5");
	checkpoint->series = strdup("checkpoint-*");
	strcpy(checkpoint->layout, "hf-trainer");
	checkpoint->step = 5;
	checkpoint->has_step = true;
	checkpoint->entries = entries;
	checkpoint->entry_count = 3;
	entries[0] = (struct checkpoint_entry){ .path = strdup("checkpoint-5"),
		.kind = ENTRY_FOLDER, .mode = 0755,
		.identity = { .inode = 1, .modified = { 100, 0 } } };
	entries[1] = (struct checkpoint_entry){
		.path = strdup("checkpoint-5/model.safetensors"),
		.kind = ENTRY_FILE, .mode = 0644, .same_as = 1,
		.identity = { .device = 3, .inode = 2, .size = 7,
		    .modified = { 100, 5 }, .changed = { 100, 6 } } };
	entries[2] = (struct checkpoint_entry){ .path = strdup("link"),
		.kind = ENTRY_LINK, .target = strdup("checkpoint-5"),
		.same_as = 2 };
	return checkpoint;
}

static void
test_copy(void **state)
{
	struct checkpoint *checkpoint = make();
	struct checkpoint *copy = checkpoint_copy(checkpoint);

	(void)state;
	assert_non_null(copy);
	assert_true(checkpoint_same(checkpoint, copy));
	assert_ptr_not_equal(copy->name, checkpoint->name);
	assert_ptr_not_equal(copy->entries[2].target,
	    checkpoint->entries[2].target);
	checkpoint_free(checkpoint);
	assert_string_equal(copy->name, "checkpoint-5");
	assert_string_equal(copy->series, "checkpoint-*");
	assert_string_equal(copy->layout, "hf-trainer");
	assert_int_equal(copy->step, 5);
	assert_string_equal(copy->entries[2].target, "checkpoint-5");
	assert_null(copy->entries[1].target);
	assert_int_equal(copy->entries[1].identity.size, 7);
	checkpoint_free(copy);
	checkpoint_free(NULL);
}

static void
test_copy_of_nothing(void **state)
{
	struct checkpoint empty = { .name = NULL };
	struct checkpoint *copy = checkpoint_copy(&empty);

	(void)state;
	assert_non_null(copy);
	assert_null(copy->name);
	assert_true(checkpoint_same(&empty, copy));
	checkpoint_free(copy);
}

static void
test_same(void **state)
{
	struct checkpoint *a = make(), *b = make();

	(void)state;
	assert_true(checkpoint_same(a, b));
	/* What trainers touch without changing anything. */
	b->entries[0].identity.modified.tv_sec++;
	b->entries[2].identity.inode++;
	b->order = 77;
	assert_true(checkpoint_same(a, b));

	b->entries[1].identity.changed.tv_nsec++;
	assert_false(checkpoint_same(a, b));
	b->entries[1].identity.changed.tv_nsec--;
	b->entries[1].identity.inode++;
	assert_false(checkpoint_same(a, b));
	b->entries[1].identity.inode--;
	b->entries[1].follow = true;
	assert_false(checkpoint_same(a, b));
	b->entries[1].follow = false;
	b->entries[2].target[0] = 'x';
	assert_false(checkpoint_same(a, b));
	b->entries[2].target[0] = 'c';
	b->entries[2].kind = ENTRY_FOLDER;
	assert_false(checkpoint_same(a, b));
	b->entries[2].kind = ENTRY_LINK;
	b->name[0] = 'x';
	assert_false(checkpoint_same(a, b));
	b->name[0] = 'c';
	assert_true(checkpoint_same(a, b));
	free(b->entries[2].path);
	free(b->entries[2].target);
	b->entry_count = 2;
	assert_false(checkpoint_same(a, b));
	checkpoint_free(a);
	checkpoint_free(b);
}

static void
test_identity(void **state)
{
	struct stat status = { .st_dev = 1, .st_ino = 2, .st_size = 3,
		.st_mtim = { 4, 5 }, .st_ctim = { 6, 7 } };
	struct identity a = identity_of(&status), b;

	(void)state;
	b = a;
	assert_true(identity_same(&a, &b));
	b.device++;
	assert_false(identity_same(&a, &b));
	b = a;
	b.size++;
	assert_false(identity_same(&a, &b));
	b = a;
	b.modified.tv_nsec++;
	assert_false(identity_same(&a, &b));
	assert_int_equal(a.changed.tv_sec, 6);
	assert_int_equal(a.changed.tv_nsec, 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_copy_of_nothing),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
