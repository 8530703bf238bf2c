#include "scene.h"

#include <poll.h>

#include "watch/post.h"
#include "watch/told.h"

/* A checkpoint of one file that changed at a certain second. */
static struct checkpoint *
make(const char *name, const char *series, enum checkpoint_state state,
    int64_t second)
{
	struct checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));

	assert_non_null(checkpoint);
	checkpoint->name = strdup(name);
	checkpoint->series = strdup(series);
	checkpoint->state = state;
	checkpoint->completed.tv_sec = second;
	snprintf(checkpoint->reason, sizeof(checkpoint->reason), "state %d",
	    state);
	checkpoint->entries = calloc(1, sizeof(*checkpoint->entries));
	assert_non_null(checkpoint->entries);
	checkpoint->entry_count = 1;
	checkpoint->entries[0].path = strdup(name);
	checkpoint->entries[0].identity.changed.tv_sec = second;
	checkpoint->entries[0].identity.inode = (ino_t)second;
	return checkpoint;
}

/* What was told, as text. */
static char heard[1024];
static uint64_t last_order;

static void
hear(void *context, enum watch_kind kind, struct checkpoint *checkpoint)
{
	static const char marks[] = { [WATCH_COMPLETE] = '+',
	    [WATCH_TORN] = '-', [WATCH_WAITING] = '?' };
	size_t used = strlen(heard);

	(void)context;
	snprintf(heard + used, sizeof(heard) - used, "%c%s ", marks[kind],
	    checkpoint->name);
	if (kind == WATCH_COMPLETE) {
		assert_int_equal(checkpoint->order, last_order + 1);
		last_order = checkpoint->order;
	}
	checkpoint_free(checkpoint);
}

/* Tell a view of up to three checkpoints, which this frees. */
static const char *
update(struct told *told, struct checkpoint *a, struct checkpoint *b,
    struct checkpoint *c)
{
	struct checkpoint *all[] = { a, b, c };
	struct view view = { .checkpoints = all };

	while (view.count < 3 && all[view.count] != NULL)
		view.count++;
	heard[0] = '\0';
	assert_int_equal(told_update(told, &view, hear, NULL), 0);
	for (size_t i = 0; i < view.count; i++)
		checkpoint_free(all[i]);
	return heard;
}

#define COMPLETE CHECKPOINT_COMPLETE
#define TORN CHECKPOINT_TORN
#define WAITING CHECKPOINT_WAITING

static void
each_version_is_told_once(void **state)
{
	struct told *told = told_new();

	(void)state;
	last_order = 0;
	assert_string_equal(update(told, make("a", "a", COMPLETE, 1),
	    make("b", "b", TORN, 1), make("c", "c", WAITING, 1)),
	    "+a -b ?c ");
	assert_string_equal(update(told, make("a", "a", COMPLETE, 1),
	    make("b", "b", TORN, 1), make("c", "c", WAITING, 2)), "");
	assert_string_equal(update(told, make("a", "a", WAITING, 2),
	    make("b", "b", TORN, 2), make("c", "c", COMPLETE, 3)),
	    "?a -b +c ");
	assert_string_equal(update(told, make("a", "a", COMPLETE, 3),
	    make("c", "c", COMPLETE, 3), NULL), "+a ");
	/* What went away and came back is new. */
	assert_string_equal(update(told, make("b", "b", TORN, 2), NULL, NULL),
	    "-b ");
	told_free(told);
	told_free(NULL);
}

/* An older one of a series is not told after a newer one. */
static void
late_ones_are_not_told(void **state)
{
	struct told *told = told_new();

	(void)state;
	last_order = 0;
	assert_string_equal(update(told, make("s-2", "s-*", COMPLETE, 20),
	    make("s-1", "s-*", WAITING, 10), NULL), "+s-2 ?s-1 ");
	assert_string_equal(update(told, make("s-1", "s-*", COMPLETE, 10),
	    make("s-2", "s-*", COMPLETE, 20), make("t-1", "t-*", COMPLETE, 5)),
	    "+t-1 ");
	/* Written again it is newer, whatever its number. */
	assert_string_equal(update(told, make("s-2", "s-*", COMPLETE, 20),
	    make("s-1", "s-*", COMPLETE, 30), NULL), "+s-1 ");
	/* The same name is never late: a copy may have older times. */
	assert_string_equal(update(told, make("s-1", "s-*", COMPLETE, 25),
	    NULL, NULL), "+s-1 ");
	told_free(told);
}

/* In one view the order is that of completion, so all are told. */
static void
first_view_tells_all(void **state)
{
	struct told *told = told_new();

	(void)state;
	last_order = 0;
	assert_string_equal(update(told, make("s-1", "s-*", COMPLETE, 30),
	    make("s-2", "s-*", COMPLETE, 20), make("s-3", "s-*", COMPLETE, 10)),
	    "+s-1 +s-2 +s-3 ");
	told_free(told);
}

static void
post_event(struct post *post, enum watch_kind kind, const char *name,
    uint64_t token)
{
	struct watch_event *event = calloc(1, sizeof(*event));

	assert_non_null(event);
	event->kind = kind;
	event->token = token;
	if (name != NULL)
		event->checkpoint = make(name, name, COMPLETE, (int64_t)token);
	post_put(post, event);
}

static bool
is_ready(struct post *post)
{
	struct pollfd ready = { .fd = post_fd(post), .events = POLLIN };

	return poll(&ready, 1, 0) == 1;
}

static void
newer_version_drives_out_the_older(void **state)
{
	struct error error = ERROR_INIT;
	struct post *post = post_new(&error);
	static const uint64_t tokens[] = { 2, 3, 4, 5 };

	(void)state;
	assert_false(is_ready(post));
	post_event(post, WATCH_COMPLETE, "a", 1);
	post_event(post, WATCH_COMPLETE, "b", 2);
	post_event(post, WATCH_SCANNED, NULL, 3);
	post_event(post, WATCH_TORN, "b", 4);
	post_event(post, WATCH_COMPLETE, "a", 5);
	for (size_t i = 0; i < 4; i++) {
		struct watch_event *event;

		assert_true(is_ready(post));
		event = post_take(post);
		assert_non_null(event);
		assert_int_equal(event->token, tokens[i]);
		watch_event_free(event);
	}
	assert_null(post_take(post));
	assert_false(is_ready(post));
	for (size_t i = 0; i < POST_NOTES_MAXIMUM + 10; i++)
		post_event(post, WATCH_NOTE, NULL, i);
	for (size_t i = 0; i < POST_NOTES_MAXIMUM; i++)
		watch_event_free(post_take(post));
	assert_null(post_take(post));
	post_event(post, WATCH_COMPLETE, "a", 1);
	post_free(post);
	post_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_version_is_told_once),
		cmocka_unit_test(late_ones_are_not_told),
		cmocka_unit_test(first_view_tells_all),
		cmocka_unit_test(newer_version_drives_out_the_older)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
