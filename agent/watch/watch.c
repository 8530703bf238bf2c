#include "watch/watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "watch/notify.h"
#include "watch/post.h"
#include "watch/told.h"

/*
 * When the directory is looked at.  A close or a rename is followed by more
 * (the marker, the other files) within moments, hence the delay; mere writing
 * says that a save has begun, which is worth telling but not in a hurry.
 * After looks that take t the next one waits for 20 t, so that looking takes
 * at most a twentieth of one processor whatever happens in the directory.  One
 * look that takes long (many files are inspected for the first time) says
 * nothing of the next, so t is the shorter of the last two.
 */
#define DELAY_CHANGED (50 * CLOCK_MILLISECOND)
#define DELAY_MODIFIED (500 * CLOCK_MILLISECOND)
#define DEAF_MODIFIED (100 * CLOCK_MILLISECOND)
#define DUTY 20
#define FIRST_LOOK (25 * CLOCK_MILLISECOND)	/* stands for the one before */
#define POLL_INTERVAL (2 * CLOCK_SECOND)
#define RETRY_INTERVAL (2 * CLOCK_SECOND)

/* Notes of the view that are told once each; beyond this they are not. */
#define NOTES_MAXIMUM 1024

struct watch {
	char *folder;
	struct view_options options;	/* with copies of the globs */
	char **globs;
	size_t glob_count;
	struct post *post;
	int wake;			/* eventfd */
	pthread_t thread;

	/* Shared. */
	pthread_mutex_t mutex;
	bool stop;
	uint64_t *tokens;
	size_t token_count;

	/* The thread's own. */
	struct notify *notify;		/* NULL: polling */
	struct view *view;
	struct told *told;
	struct error *notes;		/* told already */
	size_t note_count;
	bool polling;
	bool missing;			/* told that the folder is not there */
	uint64_t due;			/* when to look; CLOCK_NEVER */
	uint64_t deaf;			/* until then hints are not read */
	uint64_t took;			/* the last look */
	uint64_t rest;			/* not to look before, but when asked to */
};

void
watch_event_free(struct watch_event *event)
{
	if (event == NULL)
		return;
	checkpoint_free(event->checkpoint);
	free(event);
}

static void
put(struct watch *watch, struct watch_event from)
{
	struct watch_event *event = malloc(sizeof(*event));

	if (event == NULL) {
		checkpoint_free(from.checkpoint);
		return;
	}
	*event = from;
	post_put(watch->post, event);
}

/* It is taken all the same: a sparse copy of a whole one looks like this. */
static void
warn_hollow(struct watch *watch, const struct checkpoint *checkpoint)
{
	struct watch_event event = { .kind = WATCH_NOTE };

	error_set(&event.note, ERROR_DAMAGED, CAUSE_OTHER, checkpoint->name,
	    "it is not proven whole: %s", checkpoint->reason);
	error_cure(&event.note, "unless it is a sparse copy of a whole file, "
	    "save it again");
	put(watch, event);
}

static void
tell(void *context, enum watch_kind kind, struct checkpoint *checkpoint)
{
	if (kind == WATCH_COMPLETE && checkpoint->hollow)
		warn_hollow(context, checkpoint);
	put(context, (struct watch_event){ .kind = kind,
	    .checkpoint = checkpoint });
}

/* What is worth a line in the log, and nothing to worry about. */
static void
make_news(struct watch *watch, struct error *note, const char *text)
{
	error_set(note, ERROR_FAILED, CAUSE_OTHER, watch->folder, "%s", text);
	note->class = ERROR_NONE;
}

static void
tell_note(struct watch *watch, const struct error *note)
{
	put(watch, (struct watch_event){ .kind = WATCH_NOTE, .note = *note });
}

/* Tell a note unless the same was told before. */
static void
tell_note_once(struct watch *watch, const struct error *note)
{
	struct error *larger;

	for (size_t i = 0; i < watch->note_count; i++) {
		if (strcmp(watch->notes[i].object, note->object) == 0 &&
		    strcmp(watch->notes[i].message, note->message) == 0)
			return;
	}
	if (watch->note_count == NOTES_MAXIMUM)
		return;
	larger = realloc(watch->notes,
	    (watch->note_count + 1) * sizeof(*larger));
	if (larger == NULL)
		return;
	watch->notes = larger;
	watch->notes[watch->note_count++] = *note;
	tell_note(watch, note);
}

static uint64_t
sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * From now on look every 2 s, and say why; with a ${cure} it is something
 * that a user should do.
 */
static void
start_polling(struct watch *watch, const char *why, const char *cure)
{
	struct error note;

	if (watch->polling)
		return;
	watch->polling = true;
	error_set(&note, ERROR_FAILED, CAUSE_UNSUPPORTED, watch->folder,
	    "looking every 2 s: %s", why);
	if (cure != NULL)
		error_cure(&note, "%s", cure);
	else
		note.class = ERROR_NONE;
	tell_note(watch, &note);
}

/* What the view says about how well this folder can be watched. */
static void
tell_limits(struct watch *watch, int refused)
{
	const struct view *view = watch->view;
	struct error note;

	if (view->blind)
		start_polling(watch, "this file system does not tell what "
		    "other machines change", NULL);
	if (refused == ENOSPC)
		start_polling(watch, "the limit of inotify watches is reached",
		    "raise sysctl fs.inotify.max_user_watches");
	else if (refused != 0)
		start_polling(watch, "inotify refuses to watch", NULL);
	if (!view->leases) {
		make_news(watch, &note, "whether a file is still open for "
		    "writing cannot be seen here; files count as written when "
		    "they have been quiet for 10 s");
		tell_note_once(watch, &note);
	}
	for (size_t i = 0; i < view->note_count; i++)
		tell_note_once(watch, &view->notes[i]);
}

/* The folder is not there: wait for it, and say so once. */
static void
await_folder(struct watch *watch, uint64_t now)
{
	struct error note;
	char text[1];

	if (!watch->missing) {
		watch->missing = true;
		make_news(watch, &note, "not there yet; waiting for it");
		tell_note(watch, &note);
	}
	if (watch->notify != NULL && notify_await(watch->notify, watch->folder))
		watch->due = sooner(watch->due, now);
	/* A link to what is not there: it comes somewhere else. */
	if (readlink(watch->folder, text, sizeof(text)) > 0)
		watch->due = sooner(watch->due, now + POLL_INTERVAL);
}

static const struct view_guide *
make_guide(struct watch *watch, struct view_guide *guide)
{
	if (watch->notify == NULL)
		return NULL;
	notify_begin(watch->notify);
	*guide = (struct view_guide){ .enter = notify_enter,
	    .context = watch->notify };
	return guide;
}

/* A new view was taken: tell what is new in it. */
static void
use_view(struct watch *watch, struct view *view, uint64_t now)
{
	int refused = 0;

	view_free(watch->view);
	watch->view = view;
	watch->due = view->check_again;
	if (watch->notify != NULL)
		refused = notify_end(watch->notify);
	if (view->folders == 0)
		await_folder(watch, now);
	else
		watch->missing = false;
	tell_limits(watch, refused);
	if (watch->polling)
		watch->due = sooner(watch->due, now + POLL_INTERVAL);
	if (told_update(watch->told, view, tell, watch) != 0)
		watch->due = sooner(watch->due, now + RETRY_INTERVAL);
}

/* Take the tokens of those who asked so far. */
static uint64_t *
take_tokens(struct watch *watch, size_t *count)
{
	uint64_t *tokens;

	pthread_mutex_lock(&watch->mutex);
	tokens = watch->tokens;
	*count = watch->token_count;
	watch->tokens = NULL;
	watch->token_count = 0;
	pthread_mutex_unlock(&watch->mutex);
	return tokens;
}

static void
note_overflow(struct watch *watch)
{
	struct error note;

	make_news(watch, &note, "more changes at once than inotify can hold; "
	    "looked at everything");
	tell_note(watch, &note);
}

/* Look at everything, and answer those who asked for it. */
static void
look(struct watch *watch)
{
	uint64_t begin = clock_monotonic(), end, *tokens;
	struct error failure = ERROR_INIT;
	struct view_guide guide;
	struct view *view;
	size_t count;
	unsigned hints = 0;

	tokens = take_tokens(watch, &count);
	if (watch->notify != NULL)
		hints = count > 0 ? notify_drain(watch->notify) :
		    notify_read(watch->notify);
	if (hints & NOTIFY_OVERFLOW)
		note_overflow(watch);
	view = view_take_guided(watch->folder, &watch->options, watch->view,
	    make_guide(watch, &guide), &failure);
	end = clock_monotonic();
	watch->deaf = 0;
	watch->rest = end + DUTY * sooner(watch->took, end - begin);
	watch->took = end - begin;
	if (view != NULL) {
		use_view(watch, view, end);
	} else {
		tell_note_once(watch, &failure);
		watch->due = end + RETRY_INTERVAL;
	}
	watch->due = later(watch->due, watch->rest);
	for (size_t i = 0; i < count; i++)
		put(watch, (struct watch_event){ .kind = WATCH_SCANNED,
		    .token = tokens[i] });
	free(tokens);
}

/* Hints have come: when to look because of them. */
static void
take_hints(struct watch *watch, uint64_t now)
{
	unsigned hints = notify_read(watch->notify);
	uint64_t delay;

	if (hints & NOTIFY_OVERFLOW)
		note_overflow(watch);
	if (hints & NOTIFY_CHANGED) {
		delay = later(now + DELAY_CHANGED, watch->rest);
		watch->due = sooner(watch->due, delay);
		/* More of the kind says nothing new. */
		watch->deaf = watch->due;
	} else if (hints & NOTIFY_MODIFIED) {
		delay = later(now + DELAY_MODIFIED, watch->rest);
		watch->due = sooner(watch->due, delay);
		watch->deaf = now + DEAF_MODIFIED;
	}
}

/* How long poll(2) may wait until ${when}: rounded up, so that it is over. */
static int
milliseconds_until(uint64_t when, uint64_t now)
{
	uint64_t left;

	if (when == CLOCK_NEVER)
		return -1;
	left = when > now ? (when - now + CLOCK_MILLISECOND - 1) /
	    CLOCK_MILLISECOND : 0;
	return left > 3600000 ? 3600000 : (int)left;
}

/* Wait until something is to be done.  Return false: the end. */
static bool
wait_for_work(struct watch *watch)
{
	uint64_t now = clock_monotonic(), until = watch->due, drop;
	bool deaf = watch->notify == NULL || now < watch->deaf;
	struct pollfd ready[] = {
		{ .fd = watch->wake, .events = POLLIN },
		{ .fd = deaf ? -1 : notify_fd(watch->notify),
		  .events = POLLIN }
	};
	bool stop;

	if (watch->notify != NULL && deaf)
		until = sooner(until, watch->deaf);
	if (poll(ready, 2, milliseconds_until(until, now)) > 0) {
		if (ready[0].revents != 0 &&
		    read(watch->wake, &drop, sizeof(drop)) == -1 &&
		    errno != EAGAIN && errno != EINTR)
			return false;
		if (ready[1].revents != 0)
			take_hints(watch, clock_monotonic());
	}
	pthread_mutex_lock(&watch->mutex);
	stop = watch->stop;
	if (watch->token_count > 0)
		watch->due = 0;
	pthread_mutex_unlock(&watch->mutex);
	return !stop;
}

static void *
run(void *context)
{
	struct watch *watch = context;
	struct error failure = ERROR_INIT;

	if (watch->options.poll)
		start_polling(watch, "as the options say", NULL);
	else
		watch->notify = notify_new(&failure);
	if (watch->notify == NULL)
		start_polling(watch, failure.message, failure.cure[0] != '\0' ?
		    failure.cure : NULL);
	do {
		if (clock_monotonic() >= watch->due)
			look(watch);
	} while (wait_for_work(watch));
	return NULL;
}

/* Copy ${count} globs behind those that are there. */
static const char *const *
copy_globs(struct watch *watch, const char *const *from, size_t count)
{
	char **to = &watch->globs[watch->glob_count];

	for (size_t i = 0; i < count; i++) {
		to[i] = strdup(from[i]);
		if (to[i] == NULL)
			return NULL;
		watch->glob_count++;
	}
	return (const char *const *)to;
}

static int
copy_options(struct watch *watch, const struct view_options *options,
    struct error *error)
{
	struct view_options *copy = &watch->options;

	if (options != NULL)
		*copy = *options;
	watch->globs = calloc(copy->include_count + copy->exclude_count + 1,
	    sizeof(*watch->globs));
	if (watch->globs == NULL)
		goto failed;
	copy->include = copy_globs(watch, copy->include, copy->include_count);
	if (copy->include == NULL)
		goto failed;
	copy->exclude = copy_globs(watch, copy->exclude, copy->exclude_count);
	if (copy->exclude == NULL)
		goto failed;
	return 0;
failed:
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

/* Start the thread with all signals blocked: they are for others. */
static int
start_thread(struct watch *watch, struct error *error)
{
	sigset_t all, before;
	int number;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	number = pthread_create(&watch->thread, NULL, run, watch);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (number != 0)
		return error_set_errno(error, number, watch->folder,
		    "cannot start the watching thread");
	pthread_setname_np(watch->thread, "ckptsync-watch");
	return 0;
}

/* Free what is the thread's and ours, when no thread runs. */
static void
destroy(struct watch *watch)
{
	for (size_t i = 0; i < watch->glob_count; i++)
		free(watch->globs[i]);
	free(watch->globs);
	free(watch->folder);
	free(watch->tokens);
	free(watch->notes);
	notify_free(watch->notify);
	view_free(watch->view);
	told_free(watch->told);
	post_free(watch->post);
	if (watch->wake != -1)
		close(watch->wake);
	pthread_mutex_destroy(&watch->mutex);
	free(watch);
}

struct watch *
watch_start(const char *folder, const struct view_options *options,
    struct error *error)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (watch == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	pthread_mutex_init(&watch->mutex, NULL);
	watch->took = FIRST_LOOK;
	watch->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	watch->folder = strdup(folder);
	watch->told = told_new();
	watch->post = post_new(error);
	if (watch->post == NULL || copy_options(watch, options, error) != 0)
		goto failed;
	if (watch->wake == -1 || watch->folder == NULL || watch->told == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, folder,
		    "out of memory or descriptors");
		goto failed;
	}
	if (start_thread(watch, error) != 0)
		goto failed;
	return watch;
failed:
	destroy(watch);
	return NULL;
}

int
watch_fd(struct watch *watch)
{
	return post_fd(watch->post);
}

struct watch_event *
watch_next(struct watch *watch)
{
	return post_take(watch->post);
}

static void
wake(struct watch *watch)
{
	uint64_t one = 1;

	while (write(watch->wake, &one, sizeof(one)) == -1 && errno == EINTR)
		;
}

void
watch_scan(struct watch *watch, uint64_t token)
{
	uint64_t *larger;

	pthread_mutex_lock(&watch->mutex);
	larger = realloc(watch->tokens,
	    (watch->token_count + 1) * sizeof(*larger));
	if (larger != NULL) {
		watch->tokens = larger;
		watch->tokens[watch->token_count++] = token;
	}
	pthread_mutex_unlock(&watch->mutex);
	wake(watch);
}

void
watch_free(struct watch *watch)
{
	if (watch == NULL)
		return;
	pthread_mutex_lock(&watch->mutex);
	watch->stop = true;
	pthread_mutex_unlock(&watch->mutex);
	wake(watch);
	pthread_join(watch->thread, NULL);
	destroy(watch);
}
