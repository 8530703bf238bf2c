#include "move/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "base/unit.h"
#include "move/files_private.h"

/* Free space that is never taken. */
#define MARGIN (UINT64_C(64) << 20)

/* Cancel is looked at between steps of this size. */
#define STEP ((size_t)16 << 20)

/* Reflinks begin at block boundaries; no file system has larger blocks. */
#define ALIGNMENT UINT64_C(65536)

static int
cannot(int number, const char *what, struct error *error)
{
	error_set_errno(error, number, NULL, "%s", what);
	return error_cure(error, "use --spool DIR on a disk with room");
}

/* An unnamed file in ${path} beneath ${folder}. */
static int
open_unnamed(int folder, const char *path)
{
	return openat(folder, path,
	    O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
}

/* Where each file begins in the snapshot; the size of all. */
static uint64_t
lay_out(struct files *files)
{
	uint64_t end = 0;
	size_t i;

	for (i = 0; i < files->count; i++) {
		if (files->all[i].entry->kind != ENTRY_FILE ||
		    files->all[i].entry->same_as != i)
			continue;
		files->all[i].base = end;
		end += (files->all[i].entry->identity.size + ALIGNMENT - 1) /
		    ALIGNMENT * ALIGNMENT;
	}
	return end;
}

static int
clone_one(int from, int to, const struct files_one *one)
{
	struct file_clone_range range = {
		.src_fd = from,
		.src_length = one->entry->identity.size,
		.dest_offset = one->base
	};

	return ioctl(to, FICLONERANGE, &range);
}

/* Through our own memory: what copy_file_range cannot do between these two. */
static int
copy_by_hand(int from, int to, off_t at, off_t place, size_t length)
{
	const size_t size = (size_t)1 << 20;
	char *data = malloc(size);
	ssize_t got = 0;

	while (data != NULL && length > 0) {
		got = pread(from, data, length < size ? length : size, at);
		if (got == -1 && errno == EINTR)
			continue;
		if (got <= 0 ||
		    path_write_all_at(to, data, (size_t)got, place) == -1)
			break;
		at += got;
		place += got;
		length -= (size_t)got;
	}
	if (data == NULL)
		errno = ENOMEM;
	else if (length > 0 && got == 0)
		errno = EIO;
	free(data);
	return length == 0 ? 0 : -1;
}

static int
copy_one(int from, int to, const struct files_one *one,
    const _Atomic bool *cancel, struct error *error)
{
	uint64_t done = 0, size = one->entry->identity.size;
	off_t at, place;
	size_t step;
	ssize_t got;

	while (done < size) {
		if (*cancel)
			return error_set(error, ERROR_FAILED, CAUSE_CANCELLED,
			    NULL, "cancelled");
		step = size - done < STEP ? (size_t)(size - done) : STEP;
		at = (off_t)done;
		place = (off_t)(one->base + done);
		got = copy_file_range(from, &at, to, &place, step, 0);
		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1 && errno == ENOSPC)
			return cannot(errno, "no room for a snapshot", error);
		if (got <= 0) {
			if (copy_by_hand(from, to, (off_t)done,
			    (off_t)(one->base + done), step) == -1)
				return cannot(errno, "cannot copy for a "
				    "snapshot", error);
			got = (ssize_t)step;
		}
		done += (uint64_t)got;
	}
	return 0;
}

/* All files into ${to}.  Return 1 when it cannot be reflinked. */
static int
fill(struct files *files, int to, bool reflink, const _Atomic bool *cancel,
    struct error *error)
{
	struct files_one *one;
	size_t i;
	bool own;
	int fd, result;

	for (i = 0; i < files->count; i++) {
		one = &files->all[i];
		if (one->entry->kind != ENTRY_FILE ||
		    one->entry->same_as != i || one->entry->identity.size == 0)
			continue;
		if ((fd = files_get(one, &own, error)) == -1)
			return -1;
		if (reflink)
			result = clone_one(fd, to, one) == -1 ? 1 : 0;
		else
			result = copy_one(fd, to, one, cancel, error);
		if (own)
			close(fd);
		if (result != 0)
			return result;
	}
	return files_check_all(files, error);
}

/* Room for ${size}, and in the trainer's file system for its next save. */
static int
check_room(int fd, uint64_t size, bool beside_trainer, struct error *error)
{
	char wanted[UNIT_TEXT_SIZE], free_text[UNIT_TEXT_SIZE];
	struct statvfs status;
	uint64_t there, needed;

	if (fstatvfs(fd, &status) == -1)
		return cannot(errno, "cannot ask for free space", error);
	there = (uint64_t)status.f_bavail * status.f_frsize;
	needed = size + MARGIN + (beside_trainer ? size : 0);
	if (there >= needed)
		return 0;
	error_set(error, ERROR_FAILED, CAUSE_NO_SPACE, NULL,
	    "a snapshot needs %s free, there are %s",
	    unit_size_text(needed, wanted), unit_size_text(there, free_text));
	return error_cure(error, "use --spool DIR on a disk with room");
}

/* Into a fresh unnamed file in ${spool}, or beneath the directory. */
static int
copy_all(struct files *files, const char *spool, uint64_t size,
    const _Atomic bool *cancel, struct error *error)
{
	int fd;

	if (spool != NULL)
		fd = open_unnamed(AT_FDCWD, spool);
	else
		fd = open_unnamed(files->folder, ".");
	if (fd == -1)
		return cannot(errno, "cannot make an unnamed file", error);
	if (check_room(fd, size, spool == NULL, error) == -1 ||
	    fill(files, fd, false, cancel, error) != 0) {
		close(fd);
		return -1;
	}
	files->snapshot = fd;
	return 0;
}

int
files_snapshot(struct files *files, const char *spool,
    const _Atomic bool *cancel, const char **how, struct error *error)
{
	uint64_t size = lay_out(files);
	int fd, result;

	if ((fd = open_unnamed(files->folder, ".")) != -1) {
		result = fill(files, fd, true, cancel, error);
		if (result == 0) {
			files->snapshot = fd;
			*how = "reflink";
			return 0;
		}
		close(fd);
		if (result == -1)
			return -1;
	}
	*how = spool != NULL ? "copy in spool" : "copy";
	return copy_all(files, spool, size, cancel, error);
}
