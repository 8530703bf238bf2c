#include "watch/notify.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/error.h"

#define MASK (IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | \
    IN_DELETE | IN_ATTRIB | IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF | \
    IN_ONLYDIR | IN_EXCL_UNLINK)
#define AWAIT_MASK (IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | \
    IN_MOVE_SELF | IN_ATTRIB | IN_ONLYDIR)

/* The hint of our own file comes at once or never. */
#define DRAIN_PATIENCE 1000

struct entry {
	int wd;
	uint64_t scan;		/* the last one that saw its folder */
};

struct notify {
	int fd;
	uint64_t scan;
	int refused;		/* errno of a folder of this scan without a watch */
	struct entry *entries;	/* sorted by wd */
	size_t count, capacity;
	int await;		/* watch of notify_await, or -1 */
	int mark;		/* our own file, or -1 */
	int mark_wd;
};

static const char *
file_name(char text[32], int fd)
{
	snprintf(text, 32, "/proc/self/fd/%d", fd);
	return text;
}

/*
 * A file that has no name and goes away with the process, where such files
 * can be had.
 */
static void
make_mark(struct notify *notify)
{
	const char *places[] = { getenv("XDG_RUNTIME_DIR"), "/dev/shm", "/tmp",
	    "/var/tmp" };
	char text[32];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (places[i] == NULL || places[i][0] != '/')
			continue;
		notify->mark = open(places[i],
		    O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (notify->mark == -1)
			continue;
		notify->mark_wd = inotify_add_watch(notify->fd,
		    file_name(text, notify->mark), IN_MODIFY);
		if (notify->mark_wd != -1)
			return;
		close(notify->mark);
		notify->mark = -1;
	}
}

struct notify *
notify_new(struct error *error)
{
	struct notify *notify = calloc(1, sizeof(*notify));

	if (notify == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	notify->await = notify->mark = notify->mark_wd = -1;
	notify->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (notify->fd == -1) {
		error_set_errno(error, errno, NULL, "cannot use inotify");
		if (errno == EMFILE)
			error_cure(error,
			    "raise sysctl fs.inotify.max_user_instances");
		free(notify);
		return NULL;
	}
	make_mark(notify);
	return notify;
}

int
notify_fd(const struct notify *notify)
{
	return notify->fd;
}

/* Where ${wd} is, or would be. */
static size_t
entry_place(const struct notify *notify, int wd)
{
	size_t low = 0, high = notify->count;

	/* New ones have the highest number, until the numbers wrap. */
	if (high > 0 && notify->entries[high - 1].wd < wd)
		return high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (notify->entries[middle].wd < wd)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int
entry_see(struct notify *notify, int wd)
{
	size_t place = entry_place(notify, wd);
	struct entry *entry;

	if (place < notify->count && notify->entries[place].wd == wd) {
		notify->entries[place].scan = notify->scan;
		return 0;
	}
	if (notify->count == notify->capacity) {
		size_t capacity = notify->capacity ? notify->capacity * 2 : 64;
		struct entry *larger = realloc(notify->entries,
		    capacity * sizeof(*larger));

		if (larger == NULL)
			return -1;
		notify->entries = larger;
		notify->capacity = capacity;
	}
	entry = &notify->entries[place];
	memmove(entry + 1, entry, (notify->count - place) * sizeof(*entry));
	*entry = (struct entry){ .wd = wd, .scan = notify->scan };
	notify->count++;
	return 0;
}

static bool
entry_forget(struct notify *notify, int wd)
{
	size_t place = entry_place(notify, wd);

	if (place == notify->count || notify->entries[place].wd != wd)
		return false;
	notify->count--;
	memmove(&notify->entries[place], &notify->entries[place + 1],
	    (notify->count - place) * sizeof(notify->entries[0]));
	return true;
}

void
notify_begin(struct notify *notify)
{
	notify->scan++;
	notify->refused = 0;
}

/*
 * Adding a watch on a folder that has one gives the same number again, so
 * there is no need to know which folders have one; and after an overflow or
 * a move there is nothing that could be out of date.
 */
void
notify_enter(void *context, int folder, const struct identity *identity)
{
	struct notify *notify = context;
	char text[32];
	int wd = inotify_add_watch(notify->fd, file_name(text, folder), MASK);

	(void)identity;
	if (wd == -1)
		notify->refused = errno;
	else if (entry_see(notify, wd) != 0)
		notify->refused = ENOMEM;
}

int
notify_end(struct notify *notify)
{
	size_t kept = 0;

	for (size_t i = 0; i < notify->count; i++) {
		if (notify->entries[i].scan == notify->scan)
			notify->entries[kept++] = notify->entries[i];
		else
			inotify_rm_watch(notify->fd, notify->entries[i].wd);
	}
	notify->count = kept;
	if (kept > 0 && notify->await != -1) {
		/* The directory is there, and has a watch of its own; unless
		 * both are the same one. */
		size_t place = entry_place(notify, notify->await);

		if (place == kept || notify->entries[place].wd != notify->await)
			inotify_rm_watch(notify->fd, notify->await);
		notify->await = -1;
	}
	return notify->refused;
}

bool
notify_await(struct notify *notify, const char *path)
{
	char folder[PATH_MAX], *slash;
	int before = notify->await, wd;

	if ((size_t)snprintf(folder, sizeof(folder), "%s%s",
	    *path == '/' ? "" : "./", path) >= sizeof(folder))
		return false;
	for (;;) {
		slash = strrchr(folder, '/');
		assert(slash != NULL);
		if (slash == folder)
			slash++;
		*slash = '\0';
		wd = inotify_add_watch(notify->fd, folder, AWAIT_MASK);
		if (wd != -1 || strcmp(folder, "/") == 0 ||
		    strchr(folder, '/') == NULL)
			break;
	}
	notify->await = wd;
	if (before != -1 && before != wd)
		inotify_rm_watch(notify->fd, before);
	return wd != -1 && wd != before;
}

static unsigned
take_event(struct notify *notify, const struct inotify_event *event,
    bool *marked)
{
	if (event->mask & IN_Q_OVERFLOW)
		return NOTIFY_OVERFLOW | NOTIFY_CHANGED;
	if (event->wd == notify->mark_wd) {
		*marked = true;
		return 0;
	}
	if (event->mask & IN_IGNORED) {
		/* A folder that has gone; else a watch that we gave up. */
		if (event->wd == notify->await)
			notify->await = -1;
		return entry_forget(notify, event->wd) ? NOTIFY_CHANGED : 0;
	}
	return event->mask & IN_MODIFY ? NOTIFY_MODIFIED : NOTIFY_CHANGED;
}

static unsigned
read_all(struct notify *notify, bool *marked)
{
	char data[65536] __attribute__((aligned(__alignof__(
	    struct inotify_event))));
	const struct inotify_event *event;
	unsigned found = 0;
	ssize_t length;

	while ((length = read(notify->fd, data, sizeof(data))) > 0) {
		for (char *at = data; at < data + length;
		    at += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)(void *)at;
			found |= take_event(notify, event, marked);
		}
	}
	return found;
}

unsigned
notify_read(struct notify *notify)
{
	bool marked = false;

	return read_all(notify, &marked);
}

unsigned
notify_drain(struct notify *notify)
{
	struct pollfd ready = { .fd = notify->fd, .events = POLLIN };
	unsigned found = 0;
	bool marked = false;

	if (notify->mark == -1 || pwrite(notify->mark, "", 1, 0) != 1)
		return notify_read(notify);
	do
		found |= read_all(notify, &marked);
	while (!marked && !(found & NOTIFY_OVERFLOW) &&
	    poll(&ready, 1, DRAIN_PATIENCE) > 0);
	return found;
}

void
notify_free(struct notify *notify)
{
	if (notify == NULL)
		return;
	close(notify->fd);
	if (notify->mark != -1)
		close(notify->mark);
	free(notify->entries);
	free(notify);
}
