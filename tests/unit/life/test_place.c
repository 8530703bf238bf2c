#include "kit/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "life/control.h"
#include "life/loop.h"
#include "life/place.h"
#include "life/state.h"

/* A folder under a name short enough for a socket's address. */
static char *folder;

static int
set_up(void **state)
{
	(void)state;
	folder = kit_scratch();
	unsetenv("CKPTSYNC_SOCKET");
	unsetenv("CKPTSYNC_STATE_DIR");
	unsetenv("XDG_STATE_HOME");
	setenv("XDG_RUNTIME_DIR", folder, 1);
	return chmod(folder, 0700);
}

static int
tear_down(void **state)
{
	(void)state;
	kit_scratch_remove(folder);
	free(folder);
	return 0;
}

static char *
inside(const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
	return path;
}

static void
one_name_for_one_directory(void **state)
{
	struct error error = ERROR_INIT;
	char *direct = inside("run"), *linked = inside("link");
	char *slashed = inside("run//");
	struct place *a, *b, *c;

	(void)state;
	assert_int_equal(mkdir(direct, 0700), 0);
	assert_int_equal(symlink(direct, linked), 0);
	a = place_new(direct, NULL, &error);
	b = place_new(linked, NULL, &error);
	c = place_new(slashed, NULL, &error);
	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_string_equal(place_socket(a), place_socket(b));
	assert_string_equal(place_socket(a), place_socket(c));
	assert_string_equal(place_folder(b), place_folder(a));
	assert_true(strncmp(place_socket(a), folder, strlen(folder)) == 0);
	place_free(a);
	place_free(b);
	place_free(c);
	free(direct);
	free(linked);
	free(slashed);
}

static void
a_directory_that_is_not_there_yet_has_a_place(void **state)
{
	struct error error = ERROR_INIT;
	char *path = inside("not/yet/there/");
	struct place *place = place_new(path, NULL, &error);
	size_t length;

	(void)state;
	assert_non_null(place);
	length = strlen(place_folder(place));
	assert_string_equal(place_folder(place) + length - 13,
	    "not/yet/there");
	place_free(place);
	free(path);
}

static void
a_relative_name_is_resolved(void **state)
{
	struct error error = ERROR_INIT;
	struct place *place = place_new("ckptsync-nothing-here", NULL, &error);

	(void)state;
	assert_non_null(place);
	assert_true(place_folder(place)[0] == '/');
	place_free(place);
}

static void
a_second_one_does_not_get_the_lock(void **state)
{
	struct error error = ERROR_INIT;
	struct place *first = place_new(folder, NULL, &error);
	struct place *second = place_new(folder, NULL, &error);

	(void)state;
	assert_ok(place_lock(first, &error), error);
	assert_int_equal(place_lock(second, &error), -1);
	assert_int_equal(error.cause, CAUSE_EXISTS);
	place_free(first);
	assert_ok(place_lock(second, &error), error);
	place_free(second);
}

static void
an_agent_is_found_although_the_environment_differs(void **state)
{
	struct error error = ERROR_INIT;
	char *other = inside("other");
	struct place *first = place_new(folder, NULL, &error), *second;
	char *socket = strdup(place_socket(first));

	(void)state;
	/* It was started where XDG_RUNTIME_DIR was not set. */
	unsetenv("XDG_RUNTIME_DIR");
	place_free(first);
	first = place_new(folder, NULL, &error);
	assert_non_null(first);
	assert_ok(place_lock(first, &error), error);
	setenv("XDG_RUNTIME_DIR", folder, 1);
	second = place_new(folder, NULL, &error);
	assert_non_null(second);
	assert_string_equal(place_socket(second), place_socket(first));
	assert_string_not_equal(place_socket(second), socket);
	assert_int_equal(place_lock(second, &error), -1);
	place_free(first);
	place_free(second);
	free(socket);
	free(other);
}

static void
a_runtime_folder_that_others_may_write_to_is_not_used(void **state)
{
	struct error error = ERROR_INIT;
	struct place *place;

	(void)state;
	assert_int_equal(chmod(folder, 0777), 0);
	place = place_new(folder, NULL, &error);
	assert_non_null(place);
	assert_true(strncmp(place_socket(place), folder,
	    strlen(folder)) != 0);
	place_free(place);
}

static void
the_users_own_socket_is_taken_as_it_is(void **state)
{
	struct error error = ERROR_INIT;
	char *path = inside("s"), longer[300];
	struct place *place = place_new(folder, path, &error);

	(void)state;
	assert_non_null(place);
	assert_string_equal(place_socket(place), path);
	place_free(place);
	setenv("CKPTSYNC_SOCKET", path, 1);
	place = place_new(folder, NULL, &error);
	assert_non_null(place);
	assert_string_equal(place_socket(place), path);
	place_free(place);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	assert_null(place_new(folder, longer, &error));
	assert_int_equal(error.class, ERROR_USAGE);
	unsetenv("CKPTSYNC_SOCKET");
	free(path);
}

/* A socket at ${path}, left by a program that has ended unless it listens. */
static int
make_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_true(strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
	    sizeof(address)), 0);
	return fd;
}

static void
assert_refused(const char *socket, const char *object)
{
	const struct control_handler handler = { 0 };
	struct error error = ERROR_INIT;
	struct place *place = place_new(folder, socket, &error);
	struct loop *loop = loop_new(&error);

	assert_non_null(place);
	assert_int_equal(place_lock(place, &error), -1);
	assert_int_equal(error.class, ERROR_USAGE);
	assert_int_not_equal(error.cause, CAUSE_EXISTS);
	assert_string_equal(error.object, object);
	if (strcmp(socket, object) == 0)
		assert_null(control_new(loop, socket, &handler, &error));
	loop_free(loop);
	place_free(place);
}

/* --socket may name anything by mistake, and nothing of it may be lost. */
static void
what_is_not_ours_is_no_place_for_a_socket(void **state)
{
	char *path = inside("thing"), *lock = inside("free.lock");
	char *vacant = inside("free"), *text;
	size_t length;
	int fd;

	(void)state;
	kit_write_file(path, "a thesis", 8);
	assert_refused(path, path);
	text = kit_read_file(path, &length);
	assert_int_equal(length, 8);
	free(text);
	unlink(path);
	assert_int_equal(symlink("nowhere", path), 0);
	assert_refused(path, path);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_refused(path, path);
	rmdir(path);
	/* Another program's socket, which is in use. */
	fd = make_socket(path);
	assert_int_equal(listen(fd, 1), 0);
	assert_refused(path, path);
	assert_int_equal(access(path, F_OK), 0);
	close(fd);
	/* The lock file beside it. */
	kit_write_file(lock, "a thesis", 8);
	assert_refused(vacant, lock);
	text = kit_read_file(lock, &length);
	assert_int_equal(length, 8);
	free(text);
	unlink(lock);
	assert_int_equal(mkdir(lock, 0700), 0);
	assert_refused(vacant, lock);
	rmdir(lock);
	assert_int_equal(mkfifo(lock, 0600), 0);
	assert_refused(vacant, lock);
	unlink(lock);
	assert_int_equal(symlink("/dev/null", lock), 0);
	assert_refused(vacant, lock);
	free(vacant);
	free(lock);
	free(path);
}

static void
a_dead_socket_of_ours_is_replaced(void **state)
{
	const struct control_handler handler = { 0 };
	struct error error = ERROR_INIT;
	char *path = inside("thing");
	struct place *place = place_new(folder, path, &error);
	struct loop *loop = loop_new(&error);
	struct control *control;

	(void)state;
	close(make_socket(path));
	assert_ok(place_lock(place, &error), error);
	control = control_new(loop, path, &handler, &error);
	assert_non_null(control);
	control_free(control);
	assert_int_equal(access(path, F_OK), -1);
	/* What somebody put there meanwhile is his. */
	control = control_new(loop, path, &handler, &error);
	unlink(path);
	kit_write_file(path, "a thesis", 8);
	control_free(control);
	assert_int_equal(access(path, F_OK), 0);
	loop_free(loop);
	place_free(place);
	free(path);
}

/* As another user, whose name in /tmp somebody has taken. */
static void
a_folder_of_somebody_else_is_refused(void **state)
{
	char path[64];
	pid_t child;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip();
	snprintf(path, sizeof(path), "/tmp/ckptsync-%u", 54321U);
	assert_int_equal(mkdir(path, 0777), 0);
	if ((child = fork()) == 0) {
		struct error error = ERROR_INIT;

		unsetenv("XDG_RUNTIME_DIR");
		if (setuid(54321) != 0)
			_exit(3);
		_exit(place_new("/nothing", NULL, &error) == NULL &&
		    error.cause == CAUSE_DENIED &&
		    strstr(error.cure, "--socket") != NULL ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(rmdir(path), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
state_has_a_place_or_none(void **state)
{
	struct error error = ERROR_INIT;
	char *own = inside("state/deep");
	struct place *place;

	(void)state;
	setenv("CKPTSYNC_STATE_DIR", own, 1);
	place = place_new(folder, NULL, &error);
	assert_non_null(place_state(place));
	assert_true(strncmp(place_state(place), own, strlen(own)) == 0);
	place_free(place);
	unsetenv("CKPTSYNC_STATE_DIR");
	setenv("HOME", "/proc/nobody", 1);
	place = place_new(folder, NULL, &error);
	assert_null(place_state(place));
	assert_null(place_state(place));
	place_free(place);
	free(own);
}

static void
the_last_term_is_remembered(void **state)
{
	struct state saved = { .term = { .node = 0, .number = 7,
	    .random = UINT64_C(0x0123456789abcdef) },
	    .opened = { .tv_sec = 1234, .tv_nsec = 5 } }, loaded;
	char *path = inside("state.json");

	(void)state;
	assert_false(state_load(NULL, "/d", "s3://b/r", &loaded));
	assert_false(state_load(path, "/d", "s3://b/r", &loaded));
	state_save(path, "/d", "s3://b/r", &saved);
	assert_true(state_load(path, "/d", "s3://b/r", &loaded));
	assert_true(term_same(&saved.term, &loaded.term));
	assert_int_equal(loaded.opened.tv_sec, 1234);
	assert_int_equal(loaded.opened.tv_nsec, 5);
	/* Of another directory or remote it says nothing. */
	assert_false(state_load(path, "/e", "s3://b/r", &loaded));
	assert_false(state_load(path, "/d", "s3://b/s", &loaded));
	assert_int_equal(loaded.term.number, 0);
	unlink(path);
	assert_int_equal(symlink("elsewhere", path), 0);
	state_save(path, "/d", "s3://b/r", &saved);
	assert_int_equal(readlink(path, (char[16]){ 0 }, 16), 9);
	free(path);
}

static void
damaged_state_counts_as_lost(void **state)
{
	static const char *const texts[] = { "", "{", "[]", "{}",
	    ("{\"directory\":\"/d\",\"remote\":\"r\",\"node\":0,"
	    "\"term\":99999999999,\"random\":\"0123456789abcdef\","
	    "\"opened\":{\"s\":1,\"ns\":1}}"),
	    ("{\"directory\":\"/d\",\"remote\":\"r\",\"node\":0,\"term\":1,"
	    "\"random\":\"xyz\",\"opened\":{\"s\":1,\"ns\":1}}") };
	char *path = inside("state.json");
	struct state loaded;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		kit_write_file(path, texts[i], strlen(texts[i]));
		assert_false(state_load(path, "/d", "r", &loaded));
	}
	free(path);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static void
count_socket(void *context, const char *socket)
{
	assert_non_null(strstr(socket, ".sock"));
	if (strncmp(socket, folder, strlen(folder)) == 0)
		(*(unsigned *)context)++;
}

static void
all_sockets_are_visited_and_nothing_else(void **state)
{
	static const char *const names[] = {
		"ckptsync-0123456789abcdef0123.sock",
		"ckptsync-fedcba98765432100123.sock",
		"ckptsync-0123456789abcdef0123.lock",
		"ckptsync-0123.sock", "other-0123456789abcdef01234.sock",
	};
	unsigned count = 0;
	char *path;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		path = inside(names[i]);
		kit_write_file(path, "", 0);
		free(path);
	}
	place_visit(count_socket, &count);
	assert_int_equal(count, 2);
	/* What others could have put there is not believed. */
	assert_int_equal(chmod(folder, 0777), 0);
	count = 0;
	place_visit(count_socket, &count);
	assert_int_equal(count, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_name_for_one_directory),
		TEST(a_directory_that_is_not_there_yet_has_a_place),
		TEST(a_relative_name_is_resolved),
		TEST(a_second_one_does_not_get_the_lock),
		TEST(an_agent_is_found_although_the_environment_differs),
		TEST(a_runtime_folder_that_others_may_write_to_is_not_used),
		TEST(the_users_own_socket_is_taken_as_it_is),
		TEST(what_is_not_ours_is_no_place_for_a_socket),
		TEST(a_dead_socket_of_ours_is_replaced),
		TEST(a_folder_of_somebody_else_is_refused),
		TEST(state_has_a_place_or_none),
		TEST(the_last_term_is_remembered),
		TEST(damaged_state_counts_as_lost),
		TEST(all_sockets_are_visited_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
