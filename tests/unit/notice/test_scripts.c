/*
 * Every script of tests/data/notice, played by tests/servers/metadata to a
 * watcher in real time: what it tells, in order, is what the script expects.
 * Scripts that say that they are long are for those who set
 * CKPTSYNC_TEST_LONG.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "kit/kit.h"
#include "notice/notice.h"

#define SERVER TEST_DATA "/../servers/metadata"
#define SCRIPTS TEST_DATA "/notice"
#define TOGETHER 20
#define LIMIT_SECONDS 60
#define LONG_LIMIT_SECONDS 200
#define MOST_REQUESTS 300

struct play {
	char name[64];
	char folder[512];
	json_t *script;
	char url[64];
	struct notice_watch *watch;
	size_t told;		/* how much of "expect" has come */
};

static char *scratch;

static int
run_server(const char *command, const struct play *play, const char *script)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, STDOUT_FILENO);
		if (script != NULL)
			execl(SERVER, SERVER, command, play->folder,
			    "--script", script, "--wait", "300", NULL);
		else
			execl(SERVER, SERVER, command, play->folder, NULL);
		_exit(127);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void
begin(struct play *play)
{
	struct error error = ERROR_INIT;
	struct notice_options options = { .endpoint = play->url };
	char path[1024];
	char *port;
	size_t length;

	snprintf(path, sizeof(path), "%s/%.63s.json", SCRIPTS, play->name);
	snprintf(play->folder, sizeof(play->folder), "%s/%.63s", scratch,
	    play->name);
	if (run_server("start", play, path) != 0)
		fail_msg("%s does not start", play->name);
	snprintf(path, sizeof(path), "%s/port", play->folder);
	port = kit_read_file(path, &length);
	snprintf(play->url, sizeof(play->url), "http://127.0.0.1:%d",
	    atoi(port));
	free(port);
	assert_int_equal(notice_cloud_parse(json_get_text(play->script,
	    "cloud"), &options.cloud), 0);
	play->watch = notice_start(&options, &error);
	assert_non_null(play->watch);
}

static void
touch(const struct play *play, const char *name)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", play->folder, name);
	kit_write_file(path, "", 0);
}

static const char *
kind_text(enum notice_kind kind)
{
	static const char *const texts[] = { "seeing", "blind", "hint",
	    "deadline", "withdrawn" };

	return texts[kind];
}

/* Take what came; each step of a script follows on what it expects. */
static void
take(struct play *play)
{
	const json_t *expected = json_object_get(play->script, "expect");
	struct notice notice;
	char text[ERROR_TEXT_SIZE];

	while (notice_next(play->watch, &notice)) {
		const char *kind = kind_text(notice.kind);
		const char *wanted = json_string_value(json_array_get(expected,
		    play->told));

		if (wanted == NULL || strcmp(kind, wanted) != 0)
			fail_msg("%s: %s (%s, %s) instead of %s", play->name,
			    kind, notice.id, error_text(&notice.error, text),
			    wanted != NULL ? wanted : "nothing more");
		play->told++;
		touch(play, notice.kind == NOTICE_DEADLINE ? "vanish" :
		    "notice");
	}
}

static bool
is_over(const struct play *play)
{
	return play->told >= json_array_size(json_object_get(play->script,
	    "expect"));
}

/* A busy loop would fill this file. */
static void
end(struct play *play)
{
	char path[1024], *requests;
	size_t lines = 0, length;

	notice_free(play->watch);
	assert_int_equal(run_server("stop", play, NULL), 0);
	snprintf(path, sizeof(path), "%s/requests", play->folder);
	requests = kit_read_file(path, &length);
	for (const char *at = requests; *at != '\0'; at++)
		lines += *at == '\n';
	free(requests);
	if (lines > MOST_REQUESTS)
		fail_msg("%s: %zu requests", play->name, lines);
	json_decref(play->script);
}

static void
run_together(struct play *plays, size_t count)
{
	time_t limit = time(NULL) + (getenv("CKPTSYNC_TEST_LONG") != NULL ?
	    LONG_LIMIT_SECONDS : LIMIT_SECONDS);
	size_t over = 0;

	for (size_t i = 0; i < count; i++)
		begin(&plays[i]);
	while (over < count) {
		struct pollfd fds[TOGETHER];

		for (size_t i = 0; i < count; i++)
			fds[i] = (struct pollfd){ .events = POLLIN,
			    .fd = notice_fd(plays[i].watch) };
		poll(fds, count, 1000);
		over = 0;
		for (size_t i = 0; i < count; i++) {
			take(&plays[i]);
			over += is_over(&plays[i]);
			if (!is_over(&plays[i]) && time(NULL) > limit)
				fail_msg("%s: only %zu notices came",
				    plays[i].name, plays[i].told);
		}
	}
	for (size_t i = 0; i < count; i++)
		end(&plays[i]);
}

static size_t
load(struct play *plays, size_t size)
{
	DIR *folder = opendir(SCRIPTS);
	struct dirent *entry;
	size_t count = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder)) != NULL) {
		struct play *play = &plays[count];
		char path[1024];
		const char *dot = strrchr(entry->d_name, '.');

		if (dot == NULL || strcmp(dot, ".json") != 0)
			continue;
		assert_true(count < size);
		*play = (struct play){ .told = 0 };
		snprintf(play->name, sizeof(play->name), "%.*s",
		    (int)(dot - entry->d_name), entry->d_name);
		snprintf(path, sizeof(path), "%s/%s", SCRIPTS, entry->d_name);
		play->script = json_load_file(path, 0, NULL);
		if (play->script == NULL)
			fail_msg("%s is no JSON", path);
		if (json_is_true(json_object_get(play->script, "long")) &&
		    getenv("CKPTSYNC_TEST_LONG") == NULL)
			json_decref(play->script);
		else
			count++;
	}
	closedir(folder);
	return count;
}

static void
plays_every_script(void **state)
{
	struct play plays[100];
	size_t count = load(plays, 100);

	(void)state;
	assert_true(count > 30);
	scratch = kit_scratch();
	for (size_t i = 0; i < count; i += TOGETHER)
		run_together(&plays[i], count - i < TOGETHER ? count - i :
		    TOGETHER);
	kit_scratch_remove(scratch);
	free(scratch);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plays_every_script),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
