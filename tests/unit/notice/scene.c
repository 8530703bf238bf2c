#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/machine.h"
#include "kit/kit.h"
#include "scene.h"

struct scene scene;

static char *root;

int
scene_set_up(void **state)
{
	static const char *const variables[] = {
		"AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_V1_DISABLED",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "GCE_METADATA_HOST",
	};
	struct timespec start;

	(void)state;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	/* Whoever went through a proxy would get no answer. */
	setenv("http_proxy", "http://127.0.0.1:9", 1);
	setenv("all_proxy", "http://127.0.0.1:9", 1);

	/* A machine whose firmware names no cloud. */
	root = kit_scratch();
	machine_test_root(root);
	assert_int_equal(clock_parse(SCENE_START, &start), 0);
	clock_test_start(start);
	scene = (struct scene){ .mock = mock_start() };
	scene.options.endpoint = mock_url(scene.mock);
	return 0;
}

int
scene_tear_down(void **state)
{
	(void)state;
	notice_free(scene.watch);
	mock_stop(scene.mock);
	clock_test_stop();
	machine_test_root(NULL);
	kit_scratch_remove(root);
	free(root);
	return 0;
}

void
scene_begin(enum notice_cloud cloud)
{
	struct error error = ERROR_INIT;
	char text[ERROR_TEXT_SIZE];

	scene.options.cloud = cloud;
	scene.watch = notice_start(&scene.options, &error);
	if (scene.watch == NULL)
		fail_msg("%s", error_text(&error, text));
}

void
scene_put(const char *path, const char *text)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	kit_write_file(full, text, strlen(text));
}

/* Let the watcher do what is due; its requests take real time. */
static void
settle(void)
{
	if (!clock_test_settle())
		fail_msg("the watcher does not look at the clock any more");
	mock_wait_idle(scene.mock);
}

void
scene_turn(double seconds, double step)
{
	uint64_t nanoseconds = (uint64_t)(step * (double)CLOCK_SECOND);

	settle();
	for (double turned = 0; turned < seconds; turned += step) {
		clock_test_turn(nanoseconds);
		settle();
	}
}

void
scene_poll(const char *key)
{
	size_t before;

	settle();
	before = mock_count(scene.mock, key);
	for (int i = 0; mock_count(scene.mock, key) == before; i++) {
		if (i == 310)
			fail_msg("%s is not asked any more", key);
		clock_test_turn(i < 10 ? 200 * CLOCK_MILLISECOND :
		    CLOCK_SECOND);
		settle();
	}
	mock_wait_idle(scene.mock);
	settle();
}

struct notice
scene_expect(enum notice_kind kind)
{
	struct pollfd fd = { .fd = notice_fd(scene.watch), .events = POLLIN };
	struct notice notice;
	char text[ERROR_TEXT_SIZE];

	if (poll(&fd, 1, 30000) != 1)
		fail_msg("no notice of kind %d came", (int)kind);
	assert_true(notice_next(scene.watch, &notice));
	if (notice.kind != kind)
		fail_msg("a notice of kind %d, not %d: %s, %s, %s, %s",
		    (int)notice.kind, (int)kind, notice.source, notice.id,
		    notice.reason, error_text(&notice.error, text));
	return notice;
}

struct notice
scene_expect_within(enum notice_kind kind, double seconds)
{
	struct pollfd fd = { .fd = notice_fd(scene.watch), .events = POLLIN };

	for (double turned = 0; turned < seconds && poll(&fd, 1, 0) == 0;
	    turned += 0.5)
		scene_turn(0.5, 0.5);
	return scene_expect(kind);
}

void
scene_expect_nothing(const char *key)
{
	struct notice notice;

	scene_poll(key);
	if (notice_next(scene.watch, &notice))
		fail_msg("a notice of kind %d: %s, %s, %s", (int)notice.kind,
		    notice.source, notice.id, notice.error.message);
}

uint64_t
scene_at(double seconds)
{
	return SCENE_MONOTONIC + (uint64_t)(seconds * (double)CLOCK_SECOND);
}

size_t
scene_count_in(const char *key, unsigned seconds)
{
	size_t before = mock_count(scene.mock, key);

	scene_turn(seconds, 0.5);
	return mock_count(scene.mock, key) - before;
}
