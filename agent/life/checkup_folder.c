#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/path.h"
#include "base/unit.h"
#include "life/checkup_private.h"
#include "life/judgement.h"
#include "life/settings.h"
#include "store/mount.h"
#include "watch/notify.h"
#include "watch/view.h"

/* How many notes of a view are told one by one. */
#define NOTES 3

/* The value of a sysctl; UINT64_MAX when it cannot be read. */
static uint64_t
read_limit(const char *name)
{
	struct error ignored = ERROR_INIT;
	uint64_t number = UINT64_MAX;
	struct buffer text;
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	for (char *at = path; *at != '\0'; at++)
		if (*at == '.')
			*at = '/';
	buffer_init(&text, 64);
	if (path_read_at(AT_FDCWD, path, &text, &ignored) == 0)
		number = strtoull(buffer_text(&text), NULL, 10);
	buffer_free(&text);
	return number;
}

/* Of the system's limit and that of our user namespace the smaller one. */
static uint64_t
smaller_limit(const char *system, const char *space, const char **name)
{
	uint64_t of_system = read_limit(system), of_space = read_limit(space);

	*name = of_space < of_system ? space : system;
	return of_space < of_system ? of_space : of_system;
}

static void
read_limits(struct judgement_limits *limits)
{
	limits->watches = smaller_limit("fs.inotify.max_user_watches",
	    "user.max_inotify_watches", &limits->watches_name);
	limits->instances = smaller_limit("fs.inotify.max_user_instances",
	    "user.max_inotify_instances", &limits->instances_name);
}

/* The innermost folder of ${path} that is there. */
static void
existing_parent(const char *path, char folder[PATH_MAX])
{
	char *slash;

	if ((size_t)snprintf(folder, PATH_MAX, "%s%s",
	    *path == '/' ? "" : "./", path) >= PATH_MAX)
		strcpy(folder, ".");
	while (access(folder, F_OK) != 0 && errno == ENOENT) {
		slash = strrchr(folder, '/');
		if (slash == NULL || slash == folder) {
			strcpy(folder, slash == NULL ? "." : "/");
			break;
		}
		*slash = '\0';
	}
}

static void
note_space(struct checkup *checkup, const char *folder)
{
	struct statvfs status;

	if (statvfs(folder, &status) != 0)
		return;
	pthread_mutex_lock(&checkup->lock);
	checkup->facts.space_known = true;
	checkup->facts.space = (uint64_t)status.f_bavail * status.f_frsize;
	pthread_mutex_unlock(&checkup->lock);
}

/* Only a restore writes into DIR, but that must work. */
static void
check_writable(struct checkup_part *part, const char *folder)
{
	struct finding finding = FINDING_INIT;
	int number;

	if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0)
		return;
	number = errno;
	finding_set(&finding, FINDING_WRONG, "directory",
	    "%s: a restore cannot write here: %s", folder, strerror(number));
	finding_cure(&finding, number == EROFS ?
	    "mount it for reading and writing" :
	    "run as the user that the directory belongs to, or change its "
	    "owner");
	checkup_say(part, &finding);
}

static void
check_missing(struct checkup_part *part, const char *folder)
{
	const char *path = part->checkup->settings->folder;
	struct finding finding = FINDING_INIT;

	finding_set(&finding, FINDING_OK, "directory",
	    "%s is not there yet; it is waited for, and a restore makes it",
	    path);
	checkup_say(part, &finding);
	check_writable(part, folder);
	checkup_left_out(part, "inotify", "DIR is not there yet; so leases "
	    "are left out as well");
}

/* The type of the file system, "" when the system does not say. */
static void
find_type(const char *folder, struct mount *mount)
{
	struct error ignored = ERROR_INIT;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	memset(mount, 0, sizeof(*mount));
	if (fd < 0)
		return;
	(void)mount_look(fd, folder, mount, &ignored);
	close(fd);
}

static void
say_contents(struct checkup_part *part, const struct view *view,
    const struct mount *mount)
{
	const struct checkpoint *largest = NULL;
	struct finding finding = FINDING_INIT;
	char size[UNIT_TEXT_SIZE];
	size_t count[3] = { 0 };

	for (size_t i = 0; i < view->count; i++) {
		const struct checkpoint *each = view->checkpoints[i];

		count[each->state]++;
		if (each->state == CHECKPOINT_COMPLETE &&
		    (largest == NULL || each->size > largest->size))
			largest = each;
	}
	finding_set(&finding, FINDING_OK, "directory",
	    "%zu complete checkpoint%s", count[CHECKPOINT_COMPLETE],
	    count[CHECKPOINT_COMPLETE] == 1 ? "" : "s");
	if (largest != NULL)
		finding_add(&finding, ", the largest %s (%s)",
		    unit_size_text(largest->size, size), largest->name);
	if (count[CHECKPOINT_TORN] > 0)
		finding_add(&finding, "; %zu torn", count[CHECKPOINT_TORN]);
	if (count[CHECKPOINT_WAITING] > 0)
		finding_add(&finding, "; %zu being written",
		    count[CHECKPOINT_WAITING]);
	if (mount->type[0] != '\0')
		finding_add(&finding, "; on %s", mount->type);
	finding_fact(&finding, "complete", json_integer(
	    (json_int_t)count[CHECKPOINT_COMPLETE]));
	finding_fact(&finding, "torn", json_integer(
	    (json_int_t)count[CHECKPOINT_TORN]));
	if (largest != NULL)
		finding_fact(&finding, "largest_bytes",
		    json_integer((json_int_t)largest->size));
	checkup_say(part, &finding);
	pthread_mutex_lock(&part->checkup->lock);
	part->checkup->facts.local = largest == NULL ? 0 : largest->size;
	pthread_mutex_unlock(&part->checkup->lock);
}

static void
say_notes(struct checkup_part *part, const struct view *view)
{
	struct finding finding = FINDING_INIT;

	for (size_t i = 0; i < view->note_count && i < NOTES; i++) {
		finding_fail(&finding, FINDING_HINT, "directory",
		    &view->notes[i]);
		if (i == NOTES - 1 && view->note_count > NOTES)
			finding_add(&finding, " (and %zu more like this)",
			    view->note_count - NOTES);
		checkup_say(part, &finding);
	}
}

/* Whether changes are seen at once, and whether a writer can be found. */
static void
say_ways(struct checkup_part *part, const struct view *view,
    const struct mount *mount, int refused)
{
	struct judgement_limits limits;
	struct finding finding = FINDING_INIT;
	const char *type = mount->type[0] != '\0' ? mount->type :
	    "this file system";

	if (view->blind) {
		finding_set(&finding, FINDING_HINT, "inotify", "on %s "
		    "inotify does not tell of all that is written: DIR is "
		    "looked at every 2 s", type);
		finding_cure(&finding, "nothing has to be done; on a disk of "
		    "this machine a checkpoint would be seen at once");
		finding_fact(&finding, "directories",
		    json_integer((json_int_t)view->folders));
	} else {
		read_limits(&limits);
		judgement_watches(&finding, view->folders, &limits, refused);
	}
	checkup_say(part, &finding);
	if (view->proof_count == 0) {
		finding_set(&finding, FINDING_LEFT_OUT, "leases",
		    "there is no checkpoint to try it on");
	} else if (view->leases) {
		finding_set(&finding, FINDING_OK, "leases", "whether "
		    "somebody still writes a file can be seen");
	} else {
		finding_set(&finding, FINDING_HINT, "leases", "%s does not "
		    "tell us whether somebody still writes a file: it counts "
		    "as complete when it was quiet for 10 s", type);
		finding_cure(&finding, "nothing has to be done; on a disk of "
		    "this machine, and as the files' owner, there is no such "
		    "wait");
	}
	checkup_say(part, &finding);
}

static void
check_folder(struct checkup_part *part, const char *folder)
{
	const struct settings *settings = part->checkup->settings;
	struct finding finding = FINDING_INIT;
	struct error error = ERROR_INIT;
	struct notify *notify = notify_new(&error);
	struct view_guide guide = { .enter = notify_enter, .context = notify };
	struct mount mount;
	struct view *view;
	int refused = JUDGEMENT_NO_INSTANCE;

	find_type(folder, &mount);
	checkup_doing(part, "reading the directory");
	if (notify != NULL)
		notify_begin(notify);
	view = view_take_guided(folder, &settings->view, NULL,
	    notify != NULL ? &guide : NULL, &error);
	if (notify != NULL)
		refused = notify_end(notify);
	if (view == NULL) {
		finding_fail(&finding, FINDING_WRONG, "directory", &error);
		checkup_say(part, &finding);
	} else {
		say_contents(part, view, &mount);
		say_notes(part, view);
		check_writable(part, folder);
		say_ways(part, view, &mount, refused);
	}
	view_free(view);
	notify_free(notify);
}

void
checkup_folder(struct checkup_part *part)
{
	const char *path = part->checkup->settings->folder;
	char folder[PATH_MAX];

	if (path == NULL) {
		checkup_left_out(part, "directory", "no DIR was given; so "
		    "inotify, leases, and space for a restore are left out "
		    "as well");
		return;
	}
	checkup_doing(part, "looking for the directory");
	existing_parent(path, folder);
	note_space(part->checkup, folder);
	if (access(path, F_OK) != 0 && errno == ENOENT)
		check_missing(part, folder);
	else
		check_folder(part, path);
}
