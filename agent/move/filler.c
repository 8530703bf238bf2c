#include "move/filler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "base/sha256.h"
#include "move/beneath.h"
#include "move/durable.h"
#include "move/keep.h"
#include "move/match.h"
#include "move/staging.h"

#define BLOCK ((size_t)256 << 10)

struct filler {
	struct staging *staging;
	int folder;		/* new/ */
	int target;
	struct selection *selection;
	int *fds;		/* of parts; -1: opened for each write */
	bool *wanted;		/* parts of items that have to be made */
	bool at_once;		/* one flush at the end, no fsyncs */
};

static int
failed(const struct part *part, const char *what, struct error *error)
{
	return error_set_errno(error, errno, part->entry->path, "%s", what);
}

/* A file of the right size, its room taken where the file system can. */
static int
make_file(struct filler *filler, const struct part *part, struct error *error)
{
	off_t size = (off_t)part->content->size;
	int parent, fd;

	parent = beneath_parent(filler->folder, part->entry->path, true);
	if (parent == -1)
		return failed(part, "cannot make its directory", error);
	fd = openat(parent, path_base(part->entry->path),
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	close(parent);
	if (fd == -1)
		return failed(part, "cannot make the file", error);
	if (ftruncate(fd, size) == 0 && (size == 0 ||
	    fallocate(fd, 0, 0, size) == 0 || errno == EOPNOTSUPP ||
	    errno == ENOSYS))
		return fd;
	failed(part, "cannot make room for it", error);
	close(fd);
	return -1;
}

static int
make_folder(struct filler *filler, const struct part *part,
    struct error *error)
{
	int parent, result;

	parent = beneath_parent(filler->folder, part->entry->path, true);
	if (parent == -1)
		return failed(part, "cannot make its directory", error);
	result = mkdirat(parent, path_base(part->entry->path), 0700);
	if (result == -1 && errno != EEXIST)
		failed(part, "cannot make the directory", error);
	else
		result = 0;
	close(parent);
	return result;
}

static int
make_all(struct filler *filler, struct error *error)
{
	const struct part *part;
	size_t i, kept = keep_limit();

	for (i = 0; i < filler->selection->part_count; i++) {
		part = &filler->selection->parts[i];
		if (!filler->wanted[i])
			continue;
		if (part->entry->kind == MANIFEST_FOLDER &&
		    make_folder(filler, part, error) == -1)
			return -1;
		if (part->content == NULL)
			continue;
		filler->fds[i] = make_file(filler, part, error);
		if (filler->fds[i] == -1)
			return -1;
		if (kept == 0 || part->content->size == 0) {
			close(filler->fds[i]);
			filler->fds[i] = -1;
		} else {
			kept--;
		}
	}
	return 0;
}

struct filler *
filler_new(struct staging *staging, int target, struct selection *selection,
    struct error *error)
{
	const struct item *item;
	struct filler *filler;
	size_t i, j;

	filler = calloc(1, sizeof(*filler));
	if (filler == NULL || (filler->fds = malloc((selection->part_count +
	    1) * sizeof(*filler->fds))) == NULL || (filler->wanted = calloc(
	    selection->part_count + 1, sizeof(*filler->wanted))) == NULL) {
		if (filler != NULL)
			free(filler->fds);
		free(filler);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	filler->staging = staging;
	filler->folder = staging_new(staging);
	filler->target = target;
	filler->selection = selection;
	for (i = 0; i < selection->part_count; i++)
		filler->fds[i] = -1;
	for (i = 0; i < selection->item_count; i++) {
		item = &selection->items[i];
		for (j = 0; j < item->count; j++)
			filler->wanted[item->first + j] = !item->settled &&
			    item->kind != ITEM_FOLDER;
	}
	if (make_all(filler, error) == 0)
		return filler;
	filler_free(filler);
	return NULL;
}

/* The part's descriptor; *${own}: the caller closes it. */
static int
open_part(const struct filler *filler, size_t part, bool *own,
    struct error *error)
{
	int fd = filler->fds[part];

	*own = fd == -1;
	if (*own)
		fd = beneath_open(filler->folder,
		    filler->selection->parts[part].entry->path, O_RDWR, 0);
	if (fd == -1)
		failed(&filler->selection->parts[part], "cannot open it",
		    error);
	return fd;
}

int
filler_write(struct filler *filler, size_t part, uint64_t offset,
    const void *data, size_t length, struct error *error)
{
	bool own;
	int fd, result;

	if ((fd = open_part(filler, part, &own, error)) == -1)
		return -1;
	result = path_write_all_at(fd, data, length, (off_t)offset);
	if (result == -1)
		failed(&filler->selection->parts[part], "cannot write it",
		    error);
	if (own)
		close(fd);
	return result;
}

/* Copy one extent from ${from}.  1: done; 0: these are other bytes. */
static int
copy_extent(struct filler *filler, size_t number, size_t extent,
    uint64_t place, int from, struct sha256 *hash, uint8_t *data,
    struct error *error)
{
	const struct part *part = &filler->selection->parts[number];
	uint64_t at = part->origins[extent].offset;
	uint64_t left = part->content->extents[extent].length;
	uint8_t digest[SHA256_SIZE];
	ssize_t got;

	while (left > 0) {
		got = pread(from, data, left < BLOCK ? (size_t)left : BLOCK,
		    (off_t)at);
		if (got <= 0)
			break;
		sha256_add(hash, data, (size_t)got);
		if (filler_write(filler, number, place, data, (size_t)got,
		    error) == -1)
			return -1;
		at += (uint64_t)got;
		place += (uint64_t)got;
		left -= (uint64_t)got;
	}
	sha256_end(hash, digest);
	return left == 0 && memcmp(digest, match_digest(part->manifest,
	    &part->content->extents[extent]), SHA256_SIZE) == 0;
}

static int
copy_part(struct filler *filler, size_t number, struct sha256 *hash,
    uint8_t *data, const _Atomic bool *cancel, struct error *error)
{
	struct part *part = &filler->selection->parts[number];
	const struct manifest_extent *extent;
	struct origin *origin;
	uint64_t place = 0;
	size_t i;
	int from, result;

	for (i = 0; i < part->content->extent_count; i++) {
		extent = &part->content->extents[i];
		origin = &part->origins[i];
		if (*cancel)
			return error_set(error, ERROR_FAILED, CAUSE_CANCELLED,
			    NULL, "cancelled");
		if (origin->from == ORIGIN_LOCAL && !origin->staged) {
			from = beneath_open(filler->target, filler->
			    selection->donors[origin->donor],
			    O_RDONLY | O_NONBLOCK, 0);
			result = from == -1 ? 0 : copy_extent(filler, number,
			    i, place, from, hash, data, error);
			if (from != -1)
				close(from);
			if (result == -1)
				return -1;
			origin->staged = result == 1;
			if (result == 0)
				origin->from = ORIGIN_STORE;
			else
				staging_note(filler->staging, match_digest(
				    part->manifest, extent), extent->length);
		}
		place += extent->length;
	}
	return 0;
}

int
filler_copy(struct filler *filler, const _Atomic bool *cancel,
    struct error *error)
{
	struct sha256 *hash;
	uint8_t *data;
	size_t i;
	int result = 0;

	if ((hash = sha256_new(error)) == NULL)
		return -1;
	if ((data = malloc(BLOCK)) == NULL)
		result = error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	for (i = 0; i < filler->selection->part_count && result == 0; i++)
		if (filler->wanted[i] &&
		    filler->selection->parts[i].content != NULL)
			result = copy_part(filler, i, hash, data, cancel,
			    error);
	free(data);
	sha256_free(hash);
	return result;
}

/* The bits that a restore sets; never set-id from foreign data. */
static mode_t
mode_of(const struct part *part)
{
	const struct manifest_entry *entry = part->content != NULL ?
	    part->content : part->entry;

	return entry->mode & 0777;
}

static int
finish_file(struct filler *filler, size_t number, struct error *error)
{
	const struct part *part = &filler->selection->parts[number];
	struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT }, part->content->modified
	};
	bool own;
	int fd, result = 0;

	if ((fd = open_part(filler, number, &own, error)) == -1)
		return -1;
	if (futimens(fd, times) == -1 || fchmod(fd, mode_of(part)) == -1 ||
	    (!filler->at_once && fsync(fd) == -1))
		result = failed(part, "cannot finish writing it", error);
	close(fd);
	filler->fds[number] = -1;
	return result;
}

/* A link, hard or symbolic. */
static int
finish_link(struct filler *filler, const struct part *part,
    struct error *error)
{
	const struct part *twin;
	int parent, from = -1, result = -1;

	parent = beneath_parent(filler->folder, part->entry->path, true);
	if (parent == -1)
		return failed(part, "cannot make its directory", error);
	if (part->entry->kind == MANIFEST_LINK) {
		result = symlinkat(part->entry->target, parent,
		    path_base(part->entry->path));
	} else {
		twin = &filler->selection->parts[part->twin];
		from = beneath_parent(filler->folder, twin->entry->path, false);
		if (from != -1)
			result = linkat(from, path_base(twin->entry->path),
			    parent, path_base(part->entry->path), 0);
	}
	if (result == -1)
		failed(part, "cannot make the link", error);
	if (from != -1)
		close(from);
	close(parent);
	return result;
}

/* A folder, when all in it is finished.  The top one of a tree keeps a mode
 * that lets it be renamed; it gets its own in its place. */
static int
finish_folder(struct filler *filler, const struct part *part, bool top,
    struct error *error)
{
	struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT }, part->entry->modified
	};
	int fd, result = 0;

	fd = beneath_open(filler->folder, part->entry->path,
	    O_RDONLY | O_DIRECTORY, 0);
	if (fd == -1)
		return failed(part, "cannot open it", error);
	if (futimens(fd, times) == -1 ||
	    (!top && fchmod(fd, mode_of(part)) == -1) ||
	    (!filler->at_once && fsync(fd) == -1))
		result = failed(part, "cannot finish the directory", error);
	close(fd);
	return result;
}

/* Whether every byte of every file is in its place. */
static bool
is_full(const struct filler *filler)
{
	const struct part *part;
	size_t i, j;

	for (i = 0; i < filler->selection->part_count; i++) {
		part = &filler->selection->parts[i];
		for (j = 0; filler->wanted[i] && part->content != NULL &&
		    j < part->content->extent_count; j++)
			if (!part->origins[j].staged)
				return false;
	}
	return true;
}

static size_t
count_wanted(const struct filler *filler)
{
	size_t i, count = 0;

	for (i = 0; i < filler->selection->part_count; i++)
		count += filler->wanted[i];
	return count;
}

int
filler_finish(struct filler *filler, struct error *error)
{
	const struct part *part;
	size_t i;

	/* Nothing torn is ever put into place, whatever led here. */
	if (!is_full(filler))
		return error_set(error, ERROR_FAILED, CAUSE_OTHER, NULL,
		    "not every byte was fetched");
	filler->at_once = durable_at_once(filler->folder,
	    count_wanted(filler));
	for (i = 0; i < filler->selection->part_count; i++) {
		part = &filler->selection->parts[i];
		if (!filler->wanted[i] ||
		    part->entry->kind == MANIFEST_FOLDER)
			continue;
		if ((part->content != NULL ?
		    finish_file(filler, i, error) :
		    finish_link(filler, part, error)) == -1)
			return -1;
	}
	/* What lies in a folder comes behind it. */
	for (i = filler->selection->part_count; i-- > 0; ) {
		part = &filler->selection->parts[i];
		if (filler->wanted[i] &&
		    part->entry->kind == MANIFEST_FOLDER &&
		    finish_folder(filler, part, strcmp(part->entry->path,
		    part->manifest->name) == 0, error) == -1)
			return -1;
	}
	/* Before anything is put into place. */
	if (filler->at_once && durable_flush(filler->folder) == -1)
		return error_set_errno(error, errno, NULL,
		    "cannot make it durable on this disk");
	return 0;
}

void
filler_free(struct filler *filler)
{
	size_t i;

	if (filler == NULL)
		return;
	for (i = 0; i < filler->selection->part_count; i++)
		if (filler->fds[i] != -1)
			close(filler->fds[i]);
	free(filler->fds);
	free(filler->wanted);
	free(filler);
}
