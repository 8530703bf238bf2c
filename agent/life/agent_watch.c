#include "life/agent_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "format/checkpoint.h"
#include "life/place.h"
#include "life/settings.h"
#include "watch/watch.h"

static bool
is_among(struct checkpoint *const *list, size_t count,
    const struct checkpoint *checkpoint)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (checkpoint_same(list[i], checkpoint))
			return true;
	return false;
}

static void
dropped(void *context, const struct checkpoint *checkpoint)
{
	agent_tell(context, report_seen(checkpoint, "replaced"));
}

/* Files settle before they are told to be complete; that counts as well. */
#define SETTLED_MAXIMUM 15

/* When it was written, on the monotonic clock, if that was just now. */
static uint64_t
written(const struct checkpoint *checkpoint)
{
	struct timespec now = clock_wall();
	uint64_t monotonic = clock_monotonic();
	double age = (double)(now.tv_sec - checkpoint->completed.tv_sec) +
	    (double)(now.tv_nsec - checkpoint->completed.tv_nsec) / 1e9;

	if (age <= 0 || age > SETTLED_MAXIMUM)
		return monotonic;
	return monotonic - (uint64_t)(age * (double)CLOCK_SECOND);
}

/* What `status` calls the newest; one that is known is durable as well. */
static void
note_newest(struct agent *agent, const struct checkpoint *checkpoint)
{
	const struct start_result *begun = agent->begun;

	if (checkpoint->role != ROLE_RESUME ||
	    is_among(begun->older, begun->older_count, checkpoint))
		return;
	agent_mark(&agent->newest, checkpoint, "");
	if (is_among(begun->known, begun->known_count, checkpoint))
		agent_mark(&agent->durable, checkpoint, "");
}

static void
complete(struct agent *agent, struct watch_event *event)
{
	const struct start_result *begun = agent->begun;
	struct checkpoint *checkpoint = event->checkpoint;
	uint64_t batch;

	agent_forget_unsettled(agent, checkpoint->name);
	note_newest(agent, checkpoint);
	if (is_among(begun->known, begun->known_count, checkpoint)) {
		agent_tell(agent, report_seen(checkpoint, "known"));
		return;
	}
	if (is_among(begun->older, begun->older_count, checkpoint)) {
		agent_tell(agent, report_seen(checkpoint, "older"));
		return;
	}
	if (agent->superseded)
		return;
	agent_tell(agent, report_seen(checkpoint, "complete"));
	/* What one scan finds together does not replace each other. */
	batch = agent->scan > 0 ? agent->batch : ++agent->batch;
	event->checkpoint = NULL;
	(void)candidates_add(agent->candidates, checkpoint, batch,
	    written(checkpoint), dropped, agent);
	agent_send_next(agent);
}

/* A path of it that exists as long as it does. */
static char *
some_path(const struct checkpoint *checkpoint)
{
	size_t i;

	for (i = 0; i < checkpoint->entry_count; i++)
		if (checkpoint->entries[i].kind != ENTRY_FOLDER)
			return strdup(checkpoint->entries[i].path);
	return strdup(checkpoint->name);
}

void
agent_forget_unsettled(struct agent *agent, const char *name)
{
	struct unsettled **place, *found;

	for (place = &agent->unsettled; (found = *place) != NULL;
	    place = &found->next) {
		if (strcmp(found->name, name) != 0)
			continue;
		*place = found->next;
		free(found->name);
		free(found->path);
		free(found->unreadable);
		free(found);
		return;
	}
}

static void
waiting(struct agent *agent, const struct checkpoint *checkpoint)
{
	struct unsettled *unsettled;

	agent_forget_unsettled(agent, checkpoint->name);
	agent_tell(agent, report_seen(checkpoint, "waiting"));
	if ((unsettled = calloc(1, sizeof(*unsettled))) == NULL ||
	    (unsettled->name = strdup(checkpoint->name)) == NULL ||
	    (unsettled->path = some_path(checkpoint)) == NULL) {
		if (unsettled != NULL)
			free(unsettled->name);
		free(unsettled);
		return;
	}
	if (checkpoint->unreadable)
		unsettled->unreadable = strdup(checkpoint->reason);
	unsettled->written = strstr(checkpoint->reason,
	    "being written") != NULL;
	unsettled->changed = checkpoint->completed;
	unsettled->next = agent->unsettled;
	agent->unsettled = unsettled;
}

/* A leftover that nobody touches will not become complete by waiting. */
static bool
is_leftover(const struct unsettled *unsettled)
{
	return !unsettled->written && clock_wall().tv_sec -
	    unsettled->changed.tv_sec > FLUSH_SETTLE_SECONDS;
}

bool
agent_has_unsettled(struct agent *agent)
{
	struct unsettled *unsettled, *next;
	struct stat status;
	bool fresh = false;
	char *path;

	for (unsettled = agent->unsettled; unsettled != NULL;
	    unsettled = next) {
		next = unsettled->next;
		path = path_join(place_folder(agent->needs.place),
		    unsettled->path);
		if (path != NULL && lstat(path, &status) != 0)
			agent_forget_unsettled(agent, unsettled->name);
		else if (!is_leftover(unsettled))
			fresh = true;
		free(path);
	}
	return fresh;
}

const struct unsettled *
agent_unreadable(const struct agent *agent)
{
	const struct unsettled *unsettled;

	for (unsettled = agent->unsettled; unsettled != NULL;
	    unsettled = unsettled->next)
		if (unsettled->unreadable != NULL)
			return unsettled;
	return NULL;
}

bool
agent_is_blind(struct agent *agent)
{
	char *path;
	int fd;

	if (agent->unseen.class == ERROR_NONE)
		return false;
	path = path_join(place_folder(agent->needs.place),
	    agent->unseen.object);
	fd = path == NULL ? -1 : open(path, O_RDONLY | O_DIRECTORY |
	    O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 || (path != NULL && errno != EACCES && errno != EPERM))
		error_clear(&agent->unseen);
	if (fd >= 0)
		close(fd);
	free(path);
	return agent->unseen.class != ERROR_NONE;
}

static void
scanned(struct agent *agent, uint64_t token)
{
	struct flush_facts facts = agent_flush_facts(agent);
	uint64_t now = clock_monotonic();
	struct push *push;

	if (token == agent->scan)
		agent->scan = 0;
	if (token == agent->notice_scan)
		agent->notice_scan = 0;
	if (agent->ending)
		flush_scanned(&agent->end_flush, now, token, &facts);
	for (push = agent->pushes; push != NULL; push = push->next)
		flush_scanned(&push->flush, now, token, &facts);
}

static void
happened(struct agent *agent, struct watch_event *event)
{
	if (event->checkpoint != NULL)
		agent_note_place(agent, event->checkpoint);
	switch (event->kind) {
	case WATCH_COMPLETE:
		complete(agent, event);
		break;
	case WATCH_TORN:
		agent_forget_unsettled(agent, event->checkpoint->name);
		agent_tell(agent, report_seen(event->checkpoint, "torn"));
		break;
	case WATCH_WAITING:
		waiting(agent, event->checkpoint);
		break;
	case WATCH_SCANNED:
		scanned(agent, event->token);
		break;
	case WATCH_NOTE:
		if (event->note.class == ERROR_FAILED &&
		    event->note.cause == CAUSE_DENIED &&
		    !agent_is_blind(agent))
			agent->unseen = event->note;
		log_failure(event->note.class == ERROR_NONE ? LOG_INFO :
		    LOG_WARNING, "watch", &event->note);
		break;
	}
}

static void
watched(void *context)
{
	struct agent *agent = context;
	struct watch_event *event;

	report_line_clear(&agent->line);
	while ((event = watch_next(agent->watch)) != NULL) {
		happened(agent, event);
		watch_event_free(event);
	}
	agent_turn(agent);
}

int
agent_watch_begin(struct agent *agent, struct error *error)
{
	agent->watch = watch_start(place_folder(agent->needs.place),
	    &agent->needs.settings->view, error);
	if (agent->watch == NULL)
		return -1;
	/* What lies here already was there together. */
	(void)agent_scan(agent);
	return loop_watch(agent->loop, watch_fd(agent->watch), POLLIN,
	    watched, agent, error);
}

uint64_t
agent_scan(struct agent *agent)
{
	if (agent->scan == 0)
		agent->batch++;
	agent->scan = ++agent->tokens;
	watch_scan(agent->watch, agent->scan);
	return agent->scan;
}
