#include "move/files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "move/beneath.h"
#include "move/files_private.h"
#include "move/keep.h"

static int
changed(const struct checkpoint_entry *entry, const char *what,
    struct error *error)
{
	error_set(error, ERROR_FAILED, CAUSE_CHANGED, entry->path, "%s", what);
	return error_cure(error, "nothing was committed; the next complete "
	    "version is taken instead");
}

/* Whether ${status} is the file that was looked at. */
static bool
is_same(const struct files *files, const struct checkpoint_entry *entry,
    const struct stat *status)
{
	struct identity now = identity_of(status);

	if (files->kind == FILES_GROWING)
		return S_ISREG(status->st_mode) &&
		    now.size >= entry->identity.size;
	if (status->st_nlink == 0)
		now.changed = entry->identity.changed;
	return S_ISREG(status->st_mode) &&
	    identity_same(&now, &entry->identity);
}

static int
open_entry(const struct files *files, const struct checkpoint_entry *entry,
    struct error *error)
{
	/* O_NONBLOCK: a pipe that took the file's place must not hang us. */
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	struct stat status;
	int fd;

	if (entry->follow)
		fd = openat(files->folder, entry->path, flags);
	else
		fd = beneath_open(files->folder, entry->path, flags, 0);
	if (fd == -1) {
		if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR)
			return changed(entry, "it is gone", error);
		return error_set_errno(error, errno, entry->path,
		    "cannot open it");
	}
	if (fstat(fd, &status) == 0 && is_same(files, entry, &status))
		return fd;
	close(fd);
	return changed(entry, "it changed after it was complete", error);
}

int
files_get(const struct files_one *one, bool *own, struct error *error)
{
	*own = one->fd == -1;
	if (!*own)
		return one->fd;
	return open_entry(one->files, one->entry, error);
}

static int
read_whole(int fd, uint64_t offset, void *data, size_t length,
    const struct checkpoint_entry *entry, struct error *error)
{
	ssize_t got;

	while (length > 0) {
		got = pread(fd, data, length, (off_t)offset);
		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1)
			return error_set_errno(error, errno, entry->path,
			    "cannot read it");
		if (got == 0)
			return changed(entry, "it became shorter while it "
			    "was read", error);
		data = (char *)data + got;
		offset += (uint64_t)got;
		length -= (size_t)got;
	}
	return 0;
}

static int
read_at(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	const struct files_one *one = context;
	bool own;
	int fd, result;

	if (one->files->snapshot != -1)
		return read_whole(one->files->snapshot, one->base + offset,
		    data, length, one->entry, error);
	if ((fd = files_get(one, &own, error)) == -1)
		return -1;
	result = read_whole(fd, offset, data, length, one->entry, error);
	if (own)
		close(fd);
	return result;
}

static bool
has_bytes(const struct checkpoint_entry *entry, size_t index)
{
	return entry->kind == ENTRY_FILE && entry->same_as == index;
}

struct files *
files_open(int folder, const struct checkpoint_entry *entries, size_t count,
    enum files_kind kind, struct error *error)
{
	size_t i, kept = kind == FILES_FIXED ? keep_limit() : 0;
	struct files *files;
	struct files_one *one;

	if ((files = calloc(1, sizeof(*files))) == NULL || (files->all =
	    calloc(count > 0 ? count : 1, sizeof(*files->all))) == NULL) {
		free(files);
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	files->folder = folder;
	files->kind = kind;
	files->snapshot = -1;
	files->count = count;
	for (i = 0; i < count; i++)
		files->all[i].fd = -1;
	for (i = 0; i < count; i++) {
		one = &files->all[i];
		one->files = files;
		one->entry = &entries[i];
		one->source.size = entries[i].identity.size;
		one->source.read_at = read_at;
		one->source.context = one;
		one->source.name = entries[i].path;
		if (!has_bytes(&entries[i], i) || kept == 0)
			continue;
		kept--;
		if ((one->fd = open_entry(files, &entries[i], error)) == -1) {
			files_free(files);
			return NULL;
		}
		(void)posix_fadvise(one->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	}
	return files;
}

const struct source *
files_source(struct files *files, size_t index)
{
	assert(index < files->count);
	return &files->all[index].source;
}

int
files_check(struct files *files, size_t index, struct error *error)
{
	const struct files_one *one = &files->all[index];
	struct stat status;
	int fd;

	if (files->kind == FILES_GROWING || files->snapshot != -1 ||
	    !has_bytes(one->entry, index))
		return 0;
	if (one->fd == -1) {
		if ((fd = open_entry(files, one->entry, error)) == -1)
			return -1;
		close(fd);
		return 0;
	}
	if (fstat(one->fd, &status) == 0 && is_same(files, one->entry, &status))
		return 0;
	return changed(one->entry, "it changed while it was read", error);
}

static int
check_link(struct files *files, const struct checkpoint_entry *entry,
    struct error *error)
{
	char *target = beneath_link(files->folder, entry->path);
	bool same = target != NULL && strcmp(target, entry->target) == 0;

	free(target);
	if (same)
		return 0;
	return changed(entry, "the link changed", error);
}

int
files_check_all(struct files *files, struct error *error)
{
	size_t i;

	for (i = 0; i < files->count; i++) {
		if (files_check(files, i, error) == -1)
			return -1;
		if (files->all[i].entry->kind == ENTRY_LINK &&
		    files->snapshot == -1 &&
		    check_link(files, files->all[i].entry, error) == -1)
			return -1;
	}
	return 0;
}

void
files_free(struct files *files)
{
	size_t i;

	if (files == NULL)
		return;
	for (i = 0; i < files->count; i++)
		if (files->all[i].fd != -1)
			close(files->all[i].fd);
	if (files->snapshot != -1)
		close(files->snapshot);
	free(files->all);
	free(files);
}
