#include "store/mount.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/path.h"

/* The longest caching of attributes that is not called long, in seconds. */
#define CACHING_MAXIMUM 3

/* nfs(5): what acregmax and acdirmax are when nothing else is said. */
#define CACHING_DEFAULT 60

#define MOUNTINFO_MAXIMUM ((size_t)16 << 20)

/*
 * FUSE file systems over object stores: a link or a rename is a copy and a
 * delete there, and fsync promises little.
 */
static const char *const object_types[] = {
	"fuse.blobfuse", "fuse.blobfuse2", "fuse.catfs", "fuse.cosfs",
	"fuse.gcsfuse", "fuse.geesefs", "fuse.goofys", "fuse.mount-s3",
	"fuse.mountpoint-s3", "fuse.obsfs", "fuse.ossfs", "fuse.ossfs2",
	"fuse.rclone", "fuse.riofs", "fuse.s3backer", "fuse.s3fs",
	"fuse.s3ql", "fuse.tosfs", "fuse.yas3fs" };

/* Those that call themselves just "fuse" are told by their source. */
static const char *const object_sources[] = {
	"mountpoint-s3", "mount-s3", "s3fs", "gcsfuse", "goofys", "geesefs" };

static bool
is_in(const char *word, const char *const *words, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(word, words[i]) == 0)
			return true;
	}
	return false;
}

/* The number behind "${name}=" in comma-separated ${options}, else -1. */
static long
option_number(const char *options, const char *name)
{
	size_t length = strlen(name);
	const char *at;

	for (at = options; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return strtol(at + length + 1, NULL, 10);
	}
	return -1;
}

static bool
has_option(const char *options, const char *name)
{
	size_t length = strlen(name);
	const char *at;

	for (at = options; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, length) == 0 &&
		    (at[length] == ',' || at[length] == '\0'))
			return true;
	}
	return false;
}

static bool
caches_long(const char *options, const char *name)
{
	long seconds = option_number(options, name);

	return (seconds < 0 ? CACHING_DEFAULT : seconds) > CACHING_MAXIMUM;
}

static void
judge(struct mount *mount, const char *source, const char *options)
{
	bool nfs = strcmp(mount->type, "nfs") == 0 ||
	    strcmp(mount->type, "nfs4") == 0;

	mount->objects = is_in(mount->type, object_types,
	    sizeof(object_types) / sizeof(*object_types)) ||
	    (strcmp(mount->type, "fuse") == 0 &&
	    is_in(source, object_sources,
	    sizeof(object_sources) / sizeof(*object_sources)));
	mount->weak = nfs && (has_option(options, "nocto") ||
	    (!has_option(options, "noac") &&
	    (caches_long(options, "acregmax") ||
	    caches_long(options, "acdirmax"))));
}

int
mount_find(const char *text, uint64_t id, struct mount *mount)
{
	char source[256], options[1024];
	const char *line, *rest;
	uint64_t number;

	memset(mount, 0, sizeof(*mount));
	for (line = text; line != NULL && *line != '\0';
	    line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%" SCNu64, &number) != 1 || number != id)
			continue;
		rest = strstr(line, " - ");
		source[0] = options[0] = '\0';
		if (rest == NULL || sscanf(rest, " - %63s %255s %1023s",
		    mount->type, source, options) < 1)
			return -1;
		judge(mount, source, options);
		return 0;
	}
	return -1;
}

int
mount_look(int fd, const char *path, struct mount *mount, struct error *error)
{
	struct buffer text;
	struct error ignored;
	struct statx status;

	memset(mount, 0, sizeof(*mount));
	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0 ||
	    (status.stx_mask & STATX_MNT_ID) == 0)
		return 0;
	buffer_init(&text, MOUNTINFO_MAXIMUM);
	if (path_read_at(AT_FDCWD, "/proc/self/mountinfo", &text,
	    &ignored) == 0)
		(void)mount_find(buffer_text(&text), status.stx_mnt_id, mount);
	buffer_free(&text);
	if (!mount->objects)
		return 0;
	error_set(error, ERROR_USAGE, CAUSE_UNSUPPORTED, path,
	    "lies on %s, a mount of an object store, which cannot keep what "
	    "ckptsync promises", mount->type);
	return error_cure(error, "name the object store itself: "
	    "s3://bucket/prefix");
}
