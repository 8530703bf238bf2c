#include "store/file_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/random.h"
#include "base/rate.h"
#include "store/file_path.h"

/* How often a folder may be removed by a deleter between mkdir and link. */
#define LINK_ATTEMPTS 32

/* How long a pause for the rate may be before we look up again. */
#define PAUSE_MAXIMUM (50 * CLOCK_MILLISECOND)

#define LEFTOVER_AGE (24 * 3600)	/* seconds */

/* Whether to go on: not cancelled, deadline not over. */
static int
go_on(const struct file_copy *copy, struct error *error)
{
	const struct backend_request *request = copy->request;

	if (atomic_load(copy->cancelled))
		return error_set(error, ERROR_FAILED, CAUSE_CANCELLED,
		    request->key, "cancelled");
	if (request->deadline != 0 && clock_monotonic() >= request->deadline)
		return error_set(error, ERROR_FAILED, CAUSE_UNREACHABLE,
		    request->key, "not done when its time was over");
	return 0;
}

/* How many of ${left} bytes come next; waits for the rate. */
static int
next_block(const struct file_copy *copy, uint64_t left, size_t *length,
    struct error *error)
{
	struct rate *rate = copy->request->rate;
	uint64_t wanted = left < FILE_COPY_BLOCK ? left : FILE_COPY_BLOCK;
	uint64_t allowed, pause;

	for (;;) {
		if (go_on(copy, error) != 0)
			return -1;
		allowed = rate == NULL ? wanted : rate_allow(rate, wanted);
		if (allowed > 0 || wanted == 0)
			break;
		pause = rate_wait(rate);
		clock_sleep(pause < PAUSE_MAXIMUM ? pause : PAUSE_MAXIMUM);
	}
	*length = (size_t)allowed;
	return 0;
}

/* The body into ${fd}; it must have the hash that was promised. */
static int
write_body(const struct file_copy *copy, int fd, struct error *error)
{
	const struct backend_request *request = copy->request;
	struct sha256 *sha256 = sha256_new(error);
	uint8_t digest[SHA256_SIZE];
	uint64_t done = 0;
	size_t length;
	int result = -1;

	if (sha256 == NULL)
		return -1;
	while (done < request->length) {
		if (next_block(copy, request->length - done, &length,
		    error) != 0 ||
		    source_read(request->body, request->offset + done,
		    copy->block, length, error) != 0)
			goto out;
		sha256_add(sha256, copy->block, length);
		if (path_write_all(fd, copy->block, length) != 0) {
			file_path_failure(error, errno, request->key,
			    "writing");
			goto out;
		}
		done += length;
	}
	sha256_end(sha256, digest);
	if (memcmp(digest, request->sha256, SHA256_SIZE) != 0)
		error_set(error, ERROR_FAILED, CAUSE_REFUSED, request->key,
		    "the bytes do not fit their hash: nothing was stored");
	else if (fsync(fd) != 0)
		file_path_failure(error, errno, request->key,
		    "writing to the disk");
	else
		result = 0;
out:
	sha256_free(sha256);
	return result;
}

/* Whether the file ${fd} holds what the request wanted to write: 1, 0, -1. */
static int
holds_the_same(const struct file_copy *copy, int fd, struct error *error)
{
	const struct backend_request *request = copy->request;
	struct sha256 *sha256;
	uint8_t digest[SHA256_SIZE];
	struct stat status;
	ssize_t length = 0;

	if (fstat(fd, &status) != 0)
		return file_path_failure(error, errno, request->key,
		    "looking at what is there");
	if (!S_ISREG(status.st_mode) ||
	    (uint64_t)status.st_size != request->length)
		return 0;
	sha256 = sha256_new(error);
	if (sha256 == NULL)
		return -1;
	while (go_on(copy, error) == 0) {
		length = read(fd, copy->block, FILE_COPY_BLOCK);
		if (length <= 0)
			break;
		sha256_add(sha256, copy->block, (size_t)length);
	}
	sha256_end(sha256, digest);
	sha256_free(sha256);
	if (length < 0)
		return file_path_failure(error, errno, request->key,
		    "reading what is there");
	if (length > 0)
		return -1;	/* go_on said why */
	return memcmp(digest, request->sha256, SHA256_SIZE) == 0;
}

static int
accept_existing(const struct file_copy *copy, const char *path,
    struct error *error)
{
	int fd, same;

	fd = file_path_open(copy->root, path, O_RDONLY | O_NOFOLLOW, error);
	if (fd < 0)
		return -1;
	same = holds_the_same(copy, fd, error);
	close(fd);
	if (same == 0)
		return error_set(error, ERROR_FAILED, CAUSE_EXISTS,
		    copy->request->key,
		    "something else is stored there already");
	return same == 1 ? 0 : -1;
}

static int
link_in(const struct file_copy *copy, const char *temporary, const char *path,
    struct error *error)
{
	int attempt;

	for (attempt = 0; attempt < LINK_ATTEMPTS; attempt++) {
		if (linkat(copy->root, temporary, copy->root, path, 0) == 0)
			return 0;
		if (errno == EEXIST)
			return accept_existing(copy, path, error);
		if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)
			return error_set(error, ERROR_FAILED,
			    CAUSE_UNSUPPORTED, path,
			    "this file system has no hard links");
		if (errno != ENOENT)
			return file_path_failure(error, errno, path,
			    "giving it its name");
		if (file_path_make_parents(copy->root, path, error) != 0 &&
		    error->cause != CAUSE_NOT_FOUND)
			return -1;
	}
	return error_set(error, ERROR_FAILED, CAUSE_UNREACHABLE, path,
	    "its folder keeps going away");
}

static int
make_temporary(const struct file_copy *copy, char name[FILE_PATH_SIZE],
    struct error *error)
{
	int fd;

	if (file_path_check_root(copy->root, error) != 0)
		return -1;
	snprintf(name, FILE_PATH_SIZE, "%s/%016" PRIx64, FILE_PATH_TEMPORARY,
	    random_bits());
	if (mkdirat(copy->root, FILE_PATH_TEMPORARY, 0777) != 0 &&
	    errno != EEXIST)
		return file_path_failure(error, errno, FILE_PATH_TEMPORARY,
		    "making the folder");
	fd = openat(copy->root, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC |
	    O_NOFOLLOW, 0666);
	if (fd < 0)
		return file_path_failure(error, errno, name,
		    "making the file");
	/* Says that its writer lives; where locks do not work, age has to do. */
	(void)flock(fd, LOCK_EX | LOCK_NB);
	return fd;
}

int
file_copy_in(const struct file_copy *copy, const char *path,
    struct error *error)
{
	char temporary[FILE_PATH_SIZE];
	int fd, result = -1;

	if (go_on(copy, error) != 0)
		return -1;
	fd = make_temporary(copy, temporary, error);
	if (fd < 0)
		return -1;
	if (write_body(copy, fd, error) == 0)
		result = link_in(copy, temporary, path, error);
	(void)unlinkat(copy->root, temporary, 0);
	close(fd);
	return result;
}

/* The wanted range: *length bytes from request->offset on. */
static int
choose_range(struct backend_request *request, int fd, uint64_t *length,
    struct error *error)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return file_path_failure(error, errno, request->key,
		    "looking at its size");
	if (!S_ISREG(status.st_mode))
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
		    request->key, "is not a file");
	request->size = (uint64_t)status.st_size;
	if (request->offset > request->size ||
	    request->length > request->size - request->offset)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
		    request->key, "has only %" PRIu64 " bytes", request->size);
	*length = request->length != 0 ? request->length :
	    request->size - request->offset;
	return 0;
}

static int
read_range(const struct file_copy *copy, int fd, uint64_t length,
    struct error *error)
{
	const struct backend_request *request = copy->request;
	uint64_t done = 0;
	size_t wanted;
	ssize_t got;

	while (done < length) {
		if (next_block(copy, length - done, &wanted, error) != 0)
			return -1;
		got = pread(fd, copy->block, wanted,
		    (off_t)(request->offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return file_path_failure(error, errno, request->key,
			    "reading");
		if (got == 0)
			return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    request->key, "became shorter");
		if (request->sink(request->context, copy->block, (size_t)got,
		    error) != 0)
			return -1;
		done += (uint64_t)got;
	}
	return 0;
}

int
file_copy_out(const struct file_copy *copy, const char *path,
    struct error *error)
{
	uint64_t length = 0;
	int fd, result = -1;

	if (go_on(copy, error) != 0)
		return -1;
	fd = file_path_open(copy->root, path, O_RDONLY | O_NOFOLLOW, error);
	if (fd < 0)
		return -1;
	if (choose_range(copy->request, fd, &length, error) == 0)
		result = read_range(copy, fd, length, error);
	close(fd);
	return result;
}

static void
sweep_one(int folder, const char *name, time_t now)
{
	struct stat status;
	int fd;

	if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
	    !S_ISREG(status.st_mode) ||
	    now - status.st_mtime < LEFTOVER_AGE)
		return;
	fd = openat(folder, name,
	    O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)unlinkat(folder, name, 0);
	close(fd);
}

void
file_copy_sweep(int root)
{
	char name[FILE_PATH_SIZE];
	struct stat now;
	struct dirent *entry;
	DIR *folder;
	int fd;

	/* What time it is for this file system, says a file made just now. */
	snprintf(name, sizeof(name), "%s/%016" PRIx64, FILE_PATH_TEMPORARY,
	    random_bits());
	fd = openat(root, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	if (fstat(fd, &now) != 0)
		now.st_mtime = 0;
	close(fd);
	(void)unlinkat(root, name, 0);

	fd = openat(root, FILE_PATH_TEMPORARY,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	folder = fd < 0 ? NULL : fdopendir(fd);
	if (folder == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(folder)) != NULL)
		sweep_one(dirfd(folder), entry->d_name, now.st_mtime);
	closedir(folder);
}
