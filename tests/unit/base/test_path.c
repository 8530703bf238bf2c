#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/path.h"
#include "kit/kit.h"

static int
make_scratch(void **state)
{
	*state = kit_scratch();
	return 0;
}

static int
remove_scratch(void **state)
{
	kit_scratch_remove(*state);
	free(*state);
	return 0;
}

static size_t
count_entries(const char *folder)
{
	DIR *open_folder = opendir(folder);
	size_t count = 0;

	assert_non_null(open_folder);
	while (readdir(open_folder) != NULL)
		count++;
	closedir(open_folder);
	return count - 2;
}

static void
joins(void **state)
{
	static const struct {
		const char *folder, *name, *path;
	} cases[] = {
		{ "a", "b", "a/b" }, { "a/", "b", "a/b" }, { "/", "b", "/b" },
		{ "", "b", "b" }, { ".", "b", "b" }, { "./a", "b", "./a/b" },
		{ "..", "b", "../b" }, { "a", "", "a/" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *path = path_join(cases[i].folder, cases[i].name);

		assert_string_equal(path, cases[i].path);
		free(path);
	}
}

static void
finds_the_last_component(void **state)
{
	(void)state;
	assert_string_equal(path_base("a/b/c"), "c");
	assert_string_equal(path_base("c"), "c");
	assert_string_equal(path_base("/c"), "c");
	assert_string_equal(path_base(""), "");
}

static void
knows_harmless_paths(void **state)
{
	static const char *const good[] = { "a", "a/b", "a.b", "...", ".a",
	    "..a", "a/...b/c", "a b\n", "\xff", "a\\b", "C:" };
	static const char *const bad[] = { "", "/", "/a", "a/", "a//b", ".",
	    "..", "./a", "../a", "a/.", "a/..", "a/../b", "a/./b", "//a",
	    "a/b/" };
	char *long_path = malloc(5000);

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(path_is_harmless(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(path_is_harmless(bad[i]));

	assert_non_null(long_path);
	memset(long_path, 'a', 4999);
	long_path[256] = '\0';
	assert_false(path_is_harmless(long_path));
	long_path[255] = '\0';
	assert_true(path_is_harmless(long_path));
	long_path[255] = long_path[256] = 'a';
	for (size_t i = 200; i < 4999; i += 200)
		long_path[i] = '/';
	long_path[4096] = '\0';
	assert_false(path_is_harmless(long_path));
	long_path[4095] = '\0';
	assert_true(path_is_harmless(long_path));
	free(long_path);
}

/* The patterns themselves have a test of their own: test_glob.c. */
static void
matches(void **state)
{
	(void)state;
	assert_true(path_matches("*.pt", "a/last.pt"));
	assert_false(path_matches("/*.pt", "a/last.pt"));
}

static void
reads_files(void **state)
{
	const char *folder = *state;
	char *path = path_join(folder, "file");
	struct error error = ERROR_INIT;
	struct buffer buffer;
	char data[40000];
	int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	kit_random(data, sizeof(data), 1);
	kit_write_file(path, data, sizeof(data));
	buffer_init(&buffer, sizeof(data) + 2);
	assert_ok(buffer_append(&buffer, "ab", 2, &error), error);
	assert_ok(path_read_at(folder_fd, "file", &buffer, &error), error);
	assert_int_equal(buffer.length, sizeof(data) + 2);
	assert_memory_equal(buffer.data + 2, data, sizeof(data));

	/* One byte too many, and the buffer is as it was. */
	buffer_clear(&buffer);
	assert_ok(buffer_append(&buffer, "abc", 3, &error), error);
	assert_int_equal(path_read_at(AT_FDCWD, path, &buffer, &error), -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);
	assert_string_equal(error.object, path);
	assert_string_equal(error.message,
	    "is too large: more than 40002 bytes");
	assert_string_equal(buffer_text(&buffer), "abc");

	assert_int_equal(path_read_at(folder_fd, "none", &buffer, &error), -1);
	assert_int_equal(error.cause, CAUSE_NOT_FOUND);
	assert_int_equal(path_read_at(AT_FDCWD, folder, &buffer, &error), -1);
	assert_non_null(strstr(error.message, "Is a directory"));
	assert_ok(path_read_at(AT_FDCWD, "/dev/null", &buffer, &error), error);
	assert_string_equal(buffer_text(&buffer), "abc");
	assert_int_equal(path_read_at(AT_FDCWD, "/dev/zero", &buffer, &error),
	    -1);
	assert_int_equal(error.cause, CAUSE_LIMIT);

	/* A pipe that nobody writes to does not hold us up. */
	assert_int_equal(mkfifoat(folder_fd, "pipe", 0600), 0);
	(void)path_read_at(folder_fd, "pipe", &buffer, &error);
	assert_string_equal(buffer_text(&buffer), "abc");
	buffer_free(&buffer);
	close(folder_fd);
	free(path);
}

static void
writes_files_whole(void **state)
{
	char *path = path_join(*state, "file"), *text, *other;
	struct error error = ERROR_INIT;
	struct stat status;
	mode_t mask = umask(022);
	size_t length;

	assert_ok(path_write(path, "one", 3, 0640, &error), error);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0640);
	assert_ok(path_write(path, "", 0, 0600, &error), error);
	assert_ok(path_write(path, "three", 5, 0600, &error), error);
	text = kit_read_file(path, &length);
	assert_string_equal(text, "three");
	free(text);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(count_entries(*state), 1);

	/* The longest name there is. */
	other = malloc(strlen(*state) + 300);
	assert_non_null(other);
	sprintf(other, "%s/%0255d", (char *)*state, 7);
	assert_ok(path_write(other, "x", 1, 0600, &error), error);
	assert_int_equal(count_entries(*state), 2);
	free(other);

	/* A link is replaced, not followed. */
	other = path_join(*state, "link");
	assert_int_equal(symlink("file", other), 0);
	assert_ok(path_write(other, "new", 3, 0600, &error), error);
	text = kit_read_file(path, &length);
	assert_string_equal(text, "three");
	free(text);
	free(other);
	umask(mask);
	free(path);
}

static void
a_failed_write_leaves_nothing(void **state)
{
	char *path = path_join(*state, "folder"), *beneath, *missing;
	struct error error = ERROR_INIT;
	struct rlimit limit, small;

	/* A folder cannot be replaced by a file. */
	assert_int_equal(mkdir(path, 0700), 0);
	beneath = path_join(path, "file");
	kit_write_file(beneath, "old", 3);
	assert_int_equal(path_write(path, "x", 1, 0600, &error), -1);
	assert_string_equal(error.object, path);
	assert_int_equal(count_entries(*state), 1);

	missing = path_join(*state, "none/file");
	assert_int_equal(path_write(missing, "x", 1, 0600, &error), -1);
	assert_int_equal(error.cause, CAUSE_NOT_FOUND);

	/* A disk that takes only the first 1000 bytes. */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = 1000;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	{
		char data[5000] = "";
		size_t length;
		char *text;

		assert_int_equal(path_write(beneath, data, sizeof(data), 0600,
		    &error), -1);
		assert_non_null(strstr(error.message, "could not be written"));
		text = kit_read_file(beneath, &length);
		assert_string_equal(text, "old");
		free(text);
	}
	setrlimit(RLIMIT_FSIZE, &limit);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(count_entries(path), 1);
	free(missing);
	free(beneath);
	free(path);
}

static void
makes_folders(void **state)
{
	char *path = path_join(*state, "a/b//c/"), *file, *beneath;
	struct error error = ERROR_INIT;
	struct stat status;

	assert_ok(path_make_folders(path, 0500, &error), error);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0500);
	assert_ok(path_make_folders(path, 0700, &error), error);
	assert_ok(path_make_folders("/", 0700, &error), error);
	assert_ok(path_make_folders(".", 0700, &error), error);
	assert_int_equal(path_make_folders("", 0700, &error), -1);
	assert_int_equal(error.cause, CAUSE_NOT_FOUND);

	file = path_join(*state, "file");
	kit_write_file(file, "", 0);
	assert_int_equal(path_make_folders(file, 0700, &error), -1);
	assert_non_null(strstr(error.message, "Not a directory"));
	assert_string_equal(error.object, file);
	beneath = path_join(file, "x/y");
	assert_int_equal(path_make_folders(beneath, 0700, &error), -1);
	assert_string_equal(error.object, file);
	free(beneath);
	free(file);
	free(path);
}

static void
removes_trees_and_follows_nothing(void **state)
{
	char *tree = path_join(*state, "tree"), *outside, *link;
	struct error error = ERROR_INIT;
	int folder_fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	outside = path_join(*state, "outside/kept");
	kit_write_file(outside, "kept", 4);
	assert_ok(path_remove_tree(folder_fd, "tree", &error), error);
	for (int i = 0; i < 300; i++) {
		char path[64];
		char *file;

		snprintf(path, sizeof(path), "tree/%d/%d/file", i % 7, i);
		file = path_join(*state, path);
		kit_write_file(file, "x", 1);
		free(file);
	}
	link = path_join(tree, "3/link");
	assert_int_equal(symlink("../../outside", link), 0);
	free(link);
	link = path_join(tree, "dangling");
	assert_int_equal(symlink("none", link), 0);
	free(link);
	assert_int_equal(mkfifoat(folder_fd, "tree/pipe", 0600), 0);
	assert_ok(path_remove_tree(folder_fd, "tree", &error), error);
	assert_int_equal(access(tree, F_OK), -1);
	assert_int_equal(access(outside, F_OK), 0);

	/* A link at the top goes, what it names stays. */
	assert_int_equal(symlinkat("outside", folder_fd, "tree"), 0);
	assert_ok(path_remove_tree(folder_fd, "tree", &error), error);
	assert_int_equal(access(outside, F_OK), 0);

	/* One file. */
	assert_ok(path_remove_tree(AT_FDCWD, outside, &error), error);
	assert_int_equal(access(outside, F_OK), -1);
	assert_int_equal(path_remove_tree(AT_FDCWD, "/dev/null/x", &error), -1);
	assert_string_equal(error.object, "/dev/null/x");
	close(folder_fd);
	free(outside);
	free(tree);
}

/* A thousand folders in each other, far longer than any path may be. */
static void
removes_deep_trees_with_few_descriptors(void **state)
{
	struct error error = ERROR_INIT;
	struct rlimit limit, small;
	int top = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = dup(top);
	static const char name[] = "a-folder-with-a-name-of-some-length";

	for (int i = 0; i < 1000; i++) {
		int next;

		assert_int_equal(mkdirat(fd, i == 0 ? "tree" : name, 0700), 0);
		assert_int_equal(mkdirat(fd, "beside", 0700) == 0 ||
		    errno == EEXIST, 1);
		next = openat(fd, i == 0 ? "tree" : name, O_RDONLY |
		    O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	small = limit;
	small.rlim_cur = (rlim_t)top + 48;
	setrlimit(RLIMIT_NOFILE, &small);
	assert_ok(path_remove_tree(top, "tree", &error), error);
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(faccessat(top, "tree", F_OK, 0), -1);
	assert_int_equal(count_entries(*state), 1);
	close(top);
}

static void
says_what_it_could_not_remove(void **state)
{
	char *tree = path_join(*state, "tree"), *file;
	struct error error = ERROR_INIT;

	if (geteuid() == 0) {
		/* Root may remove everything. */
		free(tree);
		skip();
	}
	file = path_join(tree, "locked/file");
	kit_write_file(file, "x", 1);
	*strrchr(file, '/') = '\0';
	assert_int_equal(chmod(file, 0500), 0);
	assert_int_equal(path_remove_tree(AT_FDCWD, tree, &error), -1);
	assert_int_equal(error.cause, CAUSE_DENIED);
	assert_string_equal(error.object, tree);
	assert_non_null(strstr(error.message, "file could not be removed"));
	assert_int_equal(chmod(file, 0700), 0);
	free(file);
	free(tree);
}

static void
syncs_folders(void **state)
{
	char *file = path_join(*state, "file");
	struct error error = ERROR_INIT;

	assert_ok(path_sync_folder(*state, &error), error);
	kit_write_file(file, "", 0);
	assert_int_equal(path_sync_folder(file, &error), -1);
	assert_string_equal(error.object, file);
	free(file);
}

static void
writes_all_or_says_why(void **state)
{
	char *path = path_join(*state, "file"), *text;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	size_t length;

	assert_int_equal(path_write_all(fd, "hello", 5), 0);
	assert_int_equal(path_write_all_at(fd, "y", 1, 0), 0);
	assert_int_equal(path_write_all_at(fd, "!!", 2, 6), 0);
	assert_int_equal(path_write_all(fd, NULL, 0), 0);
	text = kit_read_file(path, &length);
	assert_int_equal(length, 8);
	assert_memory_equal(text, "yello\0!!", 8);
	free(text);
	close(fd);

	assert_int_equal(path_write_all(full, "x", 1), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(path_write_all_at(full, "x", 1, 5), -1);
	assert_int_equal(errno, ENOSPC);
	close(full);
	free(path);
}

#define SCRATCH(test) \
	cmocka_unit_test_setup_teardown(test, make_scratch, remove_scratch)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joins),
		cmocka_unit_test(finds_the_last_component),
		cmocka_unit_test(knows_harmless_paths),
		cmocka_unit_test(matches),
		SCRATCH(reads_files),
		SCRATCH(writes_files_whole),
		SCRATCH(a_failed_write_leaves_nothing),
		SCRATCH(makes_folders),
		SCRATCH(removes_trees_and_follows_nothing),
		SCRATCH(removes_deep_trees_with_few_descriptors),
		SCRATCH(says_what_it_could_not_remove),
		SCRATCH(syncs_folders),
		SCRATCH(writes_all_or_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
