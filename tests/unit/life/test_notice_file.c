#include "kit/kit.h"

#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "life/causes.h"
#include "life/launcher.h"
#include "life/notice_file.h"

static char *folder;
static size_t length;	/* of a file that was read */

static int
set_up(void **state)
{
	(void)state;
	folder = kit_scratch();
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	kit_scratch_remove(folder);
	free(folder);
	return 0;
}

static unsigned
count_names(const char *name)
{
	DIR *directory = opendir(name);
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory)) != NULL)
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

static void
it_says_when_and_why(void **state)
{
	const struct cause cause = { .source = "aws spot",
	    .reason = "a \"quoted\" reason", .when = 1025 * CLOCK_SECOND,
	    .survives = true };
	struct error error = ERROR_INIT;
	char *path = path_join(folder, "notice"), *text;
	struct timespec end;
	json_t *object;

	(void)state;
	clock_test_start((struct timespec){ 1700000000, 0 });
	assert_ok(notice_file_write(path, &cause, 1000 * CLOCK_SECOND,
	    &error), error);
	clock_test_stop();
	text = kit_read_file(path, &length);
	object = json_loads(text, 0, NULL);
	assert_non_null(object);
	assert_string_equal(json_string_value(json_object_get(object,
	    "source")), "aws spot");
	assert_string_equal(json_string_value(json_object_get(object,
	    "reason")), "a \"quoted\" reason");
	assert_true(json_is_true(json_object_get(object, "survives")));
	assert_int_equal(json_number_value(json_object_get(object, "left_s")),
	    25);
	assert_int_equal(clock_parse(json_string_value(json_object_get(object,
	    "deadline")), &end), 0);
	assert_int_equal(end.tv_sec, 1700000025);
	json_decref(object);
	free(text);
	/* Nothing else is left beside it. */
	assert_int_equal(count_names(folder), 1);
	notice_file_remove(path);
	assert_int_equal(access(path, F_OK), -1);
	notice_file_remove(path);
	free(path);
}

static void
a_folder_that_is_gone_is_said(void **state)
{
	const struct cause cause = { .when = 1 };
	struct error error = ERROR_INIT;
	char *path = path_join(folder, "no/notice");

	(void)state;
	assert_int_equal(notice_file_write(path, &cause, 0, &error), -1);
	assert_non_null(strstr(error.message, "notice file"));
	free(path);
}

static void
it_lies_outside_of_the_directory(void **state)
{
	char *inside = path_join(folder, "checkpoints");
	char *beside = path_join(folder, "checkpoints-2"), *path, *found;
	struct error error = ERROR_INIT;

	(void)state;
	assert_int_equal(mkdir(inside, 0700), 0);
	assert_int_equal(mkdir(beside, 0700), 0);
	path = path_join(inside, "notice");
	assert_null(notice_file_check(inside, path, &error));
	assert_int_equal(error.class, ERROR_USAGE);
	free(path);
	path = path_join(inside, "none/notice");
	assert_null(notice_file_check(inside, path, &error));
	assert_int_equal(error.class, ERROR_USAGE);
	free(path);
	path = path_join(beside, "../checkpoints/notice");
	assert_null(notice_file_check(inside, path, &error));
	free(path);
	path = path_join(inside, "../checkpoints-2/notice");
	found = notice_file_check(inside, path, &error);
	assert_non_null(found);
	assert_non_null(strstr(found, "/checkpoints-2/notice"));
	assert_null(strstr(found, ".."));
	free(found);
	free(path);
	assert_null(notice_file_check(inside, "/tmp/", &error));
	free(inside);
	free(beside);
}

/* What a user has at that path, by mistake, is his. */
static void
what_is_not_ours_stays(void **state)
{
	const struct cause cause = { .source = "s", .reason = "r" };
	struct error error = ERROR_INIT;
	char *inside = path_join(folder, "checkpoints");
	char *path = path_join(folder, "notes"), *text;
	char *link = path_join(folder, "link");

	(void)state;
	kit_write_file(path, "a thesis", 8);
	assert_int_equal(symlink(path, link), 0);
	assert_null(notice_file_check(inside, path, &error));
	assert_int_equal(error.class, ERROR_USAGE);
	assert_non_null(strstr(error.object, "/notes"));
	assert_null(notice_file_check(inside, link, &error));
	assert_int_equal(notice_file_write(path, &cause, 0, &error), -1);
	assert_int_equal(notice_file_write(link, &cause, 0, &error), -1);
	notice_file_remove(path);
	notice_file_remove(link);
	text = kit_read_file(path, &length);
	assert_int_equal(length, 8);
	assert_memory_equal(text, "a thesis", 8);
	free(text);
	assert_int_equal(access(link, F_OK), 0);
	assert_null(notice_file_check(inside, "/dev/null", &error));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_null(notice_file_check(inside, path, &error));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(notice_file_check(inside, path, &error));
	assert_int_equal(notice_file_write(path, &cause, 0, &error), -1);
	assert_int_equal(count_names(folder), 2);
	free(inside);
	free(path);
	free(link);
}

static void
ours_is_replaced(void **state)
{
	const struct cause cause = { .source = "s", .reason = "r" };
	struct error error = ERROR_INIT;
	char *path = path_join(folder, "notice"), *beside, *text;

	(void)state;
	assert_true(asprintf(&beside, "%s.%ld", path, (long)getpid()) > 0);
	kit_write_file(beside, "a thesis", 8);
	kit_write_file(path, "", 0);
	assert_ok(notice_file_write(path, &cause, 0, &error), error);
	assert_ok(notice_file_write(path, &cause, 1, &error), error);
	text = kit_read_file(beside, &length);
	assert_int_equal(length, 8);
	free(text);
	notice_file_remove(path);
	assert_int_equal(count_names(folder), 1);
	free(beside);
	free(path);
}

static void
the_end_of_a_job_is_believed_within_reason(void **state)
{
	static const char *const wrong[] = { "999", "1000", "-5", "soon",
	    "1e9", "99999999999999999999", "99999999999" };
	struct error error = ERROR_INIT;
	size_t i;

	(void)state;
	unsetenv("SLURM_JOB_END_TIME");
	assert_int_equal(launcher_job_end(1000, &error), 0);
	assert_int_equal(error.class, ERROR_NONE);
	setenv("SLURM_JOB_END_TIME", "5000", 1);
	assert_int_equal(launcher_job_end(1000, &error), 5000);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		error_clear(&error);
		setenv("SLURM_JOB_END_TIME", wrong[i], 1);
		assert_int_equal(launcher_job_end(1000, &error), 0);
		assert_int_equal(error.class, ERROR_FAILED);
	}
	unsetenv("SLURM_JOB_END_TIME");
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(it_says_when_and_why),
		FILE_TEST(a_folder_that_is_gone_is_said),
		FILE_TEST(it_lies_outside_of_the_directory),
		FILE_TEST(what_is_not_ours_stays),
		FILE_TEST(ours_is_replaced),
		cmocka_unit_test(the_end_of_a_job_is_believed_within_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
