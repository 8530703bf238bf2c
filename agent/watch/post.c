#include "watch/post.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "watch/watch.h"

struct letter {
	struct watch_event *event;
	struct letter *next;
};

struct post {
	int fd;
	pthread_mutex_t mutex;
	/* Under the mutex. */
	struct letter *first;
	struct letter **last;
	size_t notes;
};

struct post *
post_new(struct error *error)
{
	struct post *post = calloc(1, sizeof(*post));

	if (post == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	post->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (post->fd == -1) {
		error_set_errno(error, errno, NULL, "cannot make an eventfd");
		free(post);
		return NULL;
	}
	pthread_mutex_init(&post->mutex, NULL);
	post->last = &post->first;
	return post;
}

int
post_fd(const struct post *post)
{
	return post->fd;
}

/* Take the letter at ${at} out of the list.  The mutex is held. */
static struct watch_event *
take_out(struct post *post, struct letter **at)
{
	struct letter *letter = *at;
	struct watch_event *event = letter->event;

	*at = letter->next;
	if (post->last == &letter->next)
		post->last = at;
	post->notes -= event->kind == WATCH_NOTE;
	free(letter);
	return event;
}

/* Take out what ${event} makes obsolete.  The mutex is held. */
static struct watch_event *
replace(struct post *post, const struct watch_event *event)
{
	for (struct letter **at = &post->first; *at != NULL;
	    at = &(*at)->next) {
		const struct watch_event *old = (*at)->event;

		if (event->checkpoint != NULL && old->checkpoint != NULL &&
		    old->kind == event->kind &&
		    strcmp(old->checkpoint->name, event->checkpoint->name) == 0)
			return take_out(post, at);
	}
	return NULL;
}

void
post_put(struct post *post, struct watch_event *event)
{
	struct letter *letter = malloc(sizeof(*letter));
	struct watch_event *old = NULL;
	uint64_t one = 1;

	if (letter == NULL) {
		watch_event_free(event);
		return;
	}
	*letter = (struct letter){ .event = event };
	pthread_mutex_lock(&post->mutex);
	if (event->kind == WATCH_NOTE && post->notes == POST_NOTES_MAXIMUM) {
		old = event;
		free(letter);
	} else {
		old = replace(post, event);
		*post->last = letter;
		post->last = &letter->next;
		post->notes += event->kind == WATCH_NOTE;
	}
	pthread_mutex_unlock(&post->mutex);
	watch_event_free(old);
	while (write(post->fd, &one, sizeof(one)) == -1 && errno == EINTR)
		;
}

struct watch_event *
post_take(struct post *post)
{
	struct watch_event *event = NULL;
	uint64_t count;

	pthread_mutex_lock(&post->mutex);
	if (post->first != NULL)
		event = take_out(post, &post->first);
	/* Whoever puts writes behind the unlock, so this never takes away the
	 * sign of an event that is still there. */
	if (post->first == NULL) {
		while (read(post->fd, &count, sizeof(count)) == -1 &&
		    errno == EINTR)
			;
	}
	pthread_mutex_unlock(&post->mutex);
	return event;
}

void
post_free(struct post *post)
{
	struct watch_event *event;

	if (post == NULL)
		return;
	while ((event = post_take(post)) != NULL)
		watch_event_free(event);
	pthread_mutex_destroy(&post->mutex);
	close(post->fd);
	free(post);
}
