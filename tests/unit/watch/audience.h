#ifndef TESTS_UNIT_WATCH_AUDIENCE_H
#define TESTS_UNIT_WATCH_AUDIENCE_H

#include <poll.h>

#include "scene.h"

#include "base/clock.h"
#include "watch/watch.h"

/*
 * One who listens to a watch, and never waits for anything but an event.
 */

/* Longer than anything takes, unless it never comes. */
#define AUDIENCE_PATIENCE (60 * CLOCK_SECOND)

static inline struct watch *
audience_start(const char *folder, const struct view_options *options)
{
	struct error error = ERROR_INIT;
	char text[ERROR_TEXT_SIZE];
	struct watch *watch = watch_start(folder, options, &error);

	if (watch == NULL)
		fail_msg("%s", error_text(&error, text));
	return watch;
}

/* The next event, whatever it is. */
static inline struct watch_event *
audience_next(struct watch *watch, const char *awaited)
{
	uint64_t end = clock_monotonic() + AUDIENCE_PATIENCE;
	struct watch_event *event;

	while ((event = watch_next(watch)) == NULL) {
		struct pollfd ready = { .fd = watch_fd(watch),
		    .events = POLLIN };

		if (clock_monotonic() > end)
			fail_msg("%s did not come", awaited);
		poll(&ready, 1, 1000);
	}
	return event;
}

static inline bool
audience_is(const struct watch_event *event, enum watch_kind kind,
    const char *name)
{
	return event->kind == kind && (name == NULL ||
	    (event->checkpoint != NULL &&
	    strcmp(event->checkpoint->name, name) == 0));
}

/*
 * Wait for an event of that kind about ${name} (NULL: any).  One of kind
 * ${never} about it before that fails the test.
 */
static inline struct watch_event *
audience_await(struct watch *watch, enum watch_kind kind, const char *name,
    int never)
{
	for (;;) {
		struct watch_event *event = audience_next(watch,
		    name != NULL ? name : "the event");

		if (audience_is(event, kind, name))
			return event;
		if (never >= 0 && event->checkpoint != NULL &&
		    audience_is(event, (enum watch_kind)never, name))
			fail_msg("%s: told kind %d: %s",
			    event->checkpoint->name, never,
			    event->checkpoint->reason);
		watch_event_free(event);
	}
}

/* The same, when nothing of the event is needed. */
static inline void
audience_hear(struct watch *watch, enum watch_kind kind, const char *name,
    int never)
{
	watch_event_free(audience_await(watch, kind, name, never));
}

/* Wait until ${name} is told to wait for a reason that has ${words} in it. */
static inline void
audience_waiting(struct watch *watch, const char *name, const char *words,
    int never)
{
	bool found;

	do {
		struct watch_event *event = audience_await(watch,
		    WATCH_WAITING, name, never);

		found = strstr(event->checkpoint->reason, words) != NULL;
		watch_event_free(event);
	} while (!found);
}

/*
 * Let the watch look at everything.  Return how many events of ${kind} about
 * ${name} came until it had.
 */
static inline size_t
audience_scan(struct watch *watch, enum watch_kind kind, const char *name)
{
	static uint64_t token;
	size_t count = 0;
	bool over = false;

	watch_scan(watch, ++token);
	while (!over) {
		struct watch_event *event = audience_next(watch, "the scan");

		count += audience_is(event, kind, name);
		over = event->kind == WATCH_SCANNED && event->token == token;
		watch_event_free(event);
	}
	return count;
}

#endif
