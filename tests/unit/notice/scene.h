#ifndef TESTS_NOTICE_SCENE_H
#define TESTS_NOTICE_SCENE_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "notice/notice.h"

#include "mock.h"

/*
 * A watcher, its metadata server and a clock that the test turns: one scene at
 * a time, made and cleaned by cmocka's setup and teardown.
 */
extern struct scene {
	struct mock *mock;
	struct notice_watch *watch;
	struct notice_options options;
} scene;

/* At which time of day, and of clock_monotonic(), a scene begins. */
#define SCENE_START "2026-11-30T12:00:00Z"
#define SCENE_MONOTONIC (1000 * CLOCK_SECOND)

int scene_set_up(void **state);
int scene_tear_down(void **state);

/**
 * scene_begin(cloud):
 * Start the watcher with scene.options.
 */
void scene_begin(enum notice_cloud cloud);

/**
 * scene_put(path, text):
 * Write a file of the machine's (machine.h); the test begins with none.
 */
void scene_put(const char *path, const char *text);

/**
 * scene_turn(seconds, step):
 * Turn the clock in steps, also in seconds, and let the watcher do what is due
 * after each.
 */
void scene_turn(double seconds, double step);

/**
 * scene_poll(key):
 * Turn the clock until ${key} is asked for once more and that is
 * answered, or held.  The test fails after five minutes of the clock.
 */
void scene_poll(const char *key);

/**
 * scene_expect(kind):
 * The next notice, for which half a minute of real time is waited without
 * turning the clock; the test fails when it is of another kind.
 */
struct notice scene_expect(enum notice_kind kind);

/**
 * scene_expect_within(kind, seconds):
 * The same, turning the clock by up to ${seconds} until one comes.
 */
struct notice scene_expect_within(enum notice_kind kind, double seconds);

/**
 * scene_expect_nothing(key):
 * No notice waits, also after ${key} was polled once more.
 */
void scene_expect_nothing(const char *key);

/**
 * scene_at(seconds):
 * clock_monotonic() that long after SCENE_START.
 */
uint64_t scene_at(double seconds);

/**
 * scene_count_in(key, seconds):
 * How often ${key} is asked in ${seconds} of the clock.
 */
size_t scene_count_in(const char *key, unsigned seconds);

#endif
