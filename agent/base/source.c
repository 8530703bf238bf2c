#include "base/source.h"

#include <assert.h>
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"

int
source_read(const struct source *source, uint64_t offset, void *data,
    size_t length, struct error *error)
{
	if (offset > source->size || length > source->size - offset)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
		    source->name, "%zu bytes at %ju lie past its end at %ju",
		    length, (uintmax_t)offset, (uintmax_t)source->size);
	if (length == 0)
		return 0;
	return source->read_at(source->context, offset, data, length, error);
}

size_t
source_step(const struct source *source, uint64_t offset, size_t length)
{
	uint64_t edge;

	if (source->find_edge == NULL)
		return length;
	edge = source->find_edge(source->context, offset);
	assert(edge > offset);
	return edge - offset < length ? (size_t)(edge - offset) : length;
}

static int
read_file_at(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	const struct source_file *file = context;
	char *to = data;

	while (length > 0) {
		ssize_t got = pread(file->fd, to, length, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_errno(error, errno, file->name,
			    "could not read at %ju", (uintmax_t)offset);
		if (got == 0)
			return error_set(error, ERROR_FAILED, CAUSE_CHANGED,
			    file->name, "has become shorter: it ends at %ju",
			    (uintmax_t)offset);
		to += got;
		offset += (uint64_t)got;
		length -= (size_t)got;
	}
	return 0;
}

/* Whether a hole in a file of this file system is a place never written. */
static int
holes_are_unwritten(int fd)
{
	struct statfs status;

	if (fstatfs(fd, &status) != 0)
		return 0;
	switch ((unsigned long)status.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return 1;
	default:
		return 0;
	}
}

static int
find_file_hole(void *context, uint64_t offset, uint64_t *start,
    uint64_t *end)
{
	const struct source_file *file = context;
	off_t hole, data;

	if (!holes_are_unwritten(file->fd))
		return -1;
	hole = lseek(file->fd, (off_t)offset, SEEK_HOLE);
	if (hole < 0)
		return -1;
	data = lseek(file->fd, hole, SEEK_DATA);
	if (data < 0 && errno == ENXIO)		/* nothing behind it */
		data = lseek(file->fd, 0, SEEK_END);
	if (data < hole)
		return -1;
	*start = (uint64_t)hole;
	*end = (uint64_t)data;
	return 0;
}

struct source
source_from_file(struct source_file *file, uint64_t size)
{
	assert(size <= INT64_MAX);
	return (struct source){
		.size = size,
		.read_at = read_file_at,
		.find_hole = find_file_hole,
		.context = file,
		.name = file->name,
	};
}

static int
read_memory_at(void *context, uint64_t offset, void *data, size_t length,
    struct error *error)
{
	const struct source_memory *memory = context;

	(void)error;
	assert(offset <= memory->length && length <= memory->length - offset);
	memcpy(data, (const char *)memory->data + offset, length);
	return 0;
}

struct source
source_from_memory(struct source_memory *memory)
{
	return (struct source){
		.size = memory->length,
		.read_at = read_memory_at,
		.context = memory,
		.name = "memory",
	};
}
