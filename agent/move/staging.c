#include "move/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "base/path.h"
#include "move/beneath.h"
#include "move/match.h"
#include "move/pieces.h"
#include "move/walk.h"

#define BLOCK ((size_t)256 << 10)

/* Larger than the journal of any manifest that fits its own limit. */
#define JOURNAL_MAXIMUM ((size_t)256 << 20)

/* 64 digits of the hash, a space, 20 of the length, newline, NUL. */
#define LINE_SIZE 96

struct staging {
	char name[sizeof(STAGING_PREFIX) + 16];
	int target;
	int folder;
	int fresh;		/* new/ */
	int old;
	int journal;
	struct pieces *claims;
};

void
staging_free(struct staging *staging)
{
	if (staging == NULL)
		return;
	if (staging->journal != -1)
		close(staging->journal);
	if (staging->old != -1)
		close(staging->old);
	if (staging->fresh != -1)
		close(staging->fresh);
	if (staging->folder != -1)
		close(staging->folder);
	pieces_free(staging->claims);
	free(staging);
}

static struct staging *
allocate(const struct restore *restore, int target, struct error *error)
{
	struct staging *staging;
	char hex[SHA256_HEX_SIZE];
	uint8_t digest[SHA256_SIZE];
	struct sha256 *hash;
	size_t i;

	if ((hash = sha256_new(error)) == NULL)
		return NULL;
	for (i = 0; i < restore->wanted_count; i++)
		sha256_add(hash, restore->wanted[i]->digest, SHA256_SIZE);
	sha256_end(hash, digest);
	sha256_free(hash);
	if ((staging = calloc(1, sizeof(*staging))) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		return NULL;
	}
	snprintf(staging->name, sizeof(staging->name), "%s%.16s",
	    STAGING_PREFIX, sha256_hex(digest, hex));
	staging->target = target;
	staging->folder = staging->fresh = staging->old = -1;
	staging->journal = -1;
	if ((staging->claims = pieces_new(error)) == NULL) {
		staging_free(staging);
		return NULL;
	}
	return staging;
}

/* One line, without its newline; a torn or strange one claims nothing. */
static int
read_line(struct staging *staging, const char *line, size_t length,
    struct error *error)
{
	char expected[LINE_SIZE], hex[SHA256_HEX_SIZE];
	struct piece piece = { .offset = 0 };

	if (length <= 65 || length >= LINE_SIZE ||
	    sha256_from_hex(line, piece.digest) == -1 || line[64] != ' ')
		return 0;
	piece.length = strtoull(line + 65, NULL, 10);
	snprintf(expected, sizeof(expected), "%s %" PRIu64,
	    sha256_hex(piece.digest, hex), piece.length);
	if (piece.length == 0 || strlen(expected) != length ||
	    memcmp(expected, line, length) != 0)
		return 0;
	return pieces_add(staging->claims, &piece, error);
}

static int
read_journal(struct staging *staging, struct error *error)
{
	struct buffer buffer;
	const char *line, *end;
	int result = 0;

	buffer_init(&buffer, JOURNAL_MAXIMUM);
	if (path_read_at(staging->folder, "journal", &buffer, error) == -1) {
		buffer_free(&buffer);
		if (error->cause == CAUSE_MEMORY)
			return -1;
		/* Without a journal nothing is claimed. */
		error_clear(error);
		return 0;
	}
	for (line = buffer_text(&buffer); result == 0 &&
	    (end = strchr(line, '\n')) != NULL; line = end + 1)
		result = read_line(staging, line, (size_t)(end - line), error);
	buffer_free(&buffer);
	return result;
}

static int
open_folder(int folder, const char *name)
{
	return beneath_open(folder, name, O_RDONLY | O_DIRECTORY, 0);
}

struct staging *
staging_find(const struct restore *restore, int target, struct error *error)
{
	struct staging *staging;

	if ((staging = allocate(restore, target, error)) == NULL)
		return NULL;
	staging->folder = open_folder(target, staging->name);
	if (staging->folder != -1)
		staging->fresh = open_folder(staging->folder, "new");
	if (staging->fresh == -1 || read_journal(staging, error) == -1) {
		staging_free(staging);
		return NULL;
	}
	return staging;
}

static int
make_folder(int folder, const char *name)
{
	if (mkdirat(folder, name, 0700) == -1 && errno != EEXIST)
		return -1;
	return open_folder(folder, name);
}

struct staging *
staging_make(const struct restore *restore, int target, struct error *error)
{
	struct staging *staging;

	if ((staging = allocate(restore, target, error)) == NULL)
		return NULL;
	staging->folder = make_folder(target, staging->name);
	if (staging->folder != -1)
		staging->fresh = make_folder(staging->folder, "new");
	if (staging->fresh != -1)
		staging->old = make_folder(staging->folder, "old");
	if (staging->old != -1)
		staging->journal = beneath_open(staging->folder, "journal",
		    O_RDWR | O_CREAT | O_APPEND, 0600);
	if (staging->journal == -1) {
		error_set_errno(error, errno, restore->folder,
		    "cannot write into the target directory");
		goto failed;
	}
	if (flock(staging->journal, LOCK_EX | LOCK_NB) == -1) {
		error_set(error, ERROR_FAILED, CAUSE_EXISTS, restore->folder,
		    "another restore is at work in this directory");
		error_cure(error, "wait until it has ended");
		goto failed;
	}
	/* Ends a line that was torn, so that the next one is whole. */
	(void)!write(staging->journal, "\n", 1);
	if (read_journal(staging, error) == 0)
		return staging;
failed:
	staging_free(staging);
	return NULL;
}

int
staging_new(const struct staging *staging)
{
	return staging->fresh;
}

int
staging_old(const struct staging *staging)
{
	return staging->old;
}

void
staging_note(struct staging *staging, const uint8_t digest[SHA256_SIZE],
    uint64_t length)
{
	char line[LINE_SIZE], hex[SHA256_HEX_SIZE];
	int size;

	size = snprintf(line, sizeof(line), "%s %" PRIu64 "\n",
	    sha256_hex(digest, hex), length);
	if (path_write_all(staging->journal, line, (size_t)size) == -1)
		log_line(LOG_DEBUG, "journal", "cannot write the journal: %s",
		    strerror(errno));
}

/* Whether the bytes of the file have this hash. */
static bool
has_hash(int fd, uint64_t offset, uint64_t length, const uint8_t *wanted,
    struct sha256 *hash, uint8_t *data)
{
	uint8_t digest[SHA256_SIZE];
	ssize_t got;

	while (length > 0) {
		got = pread(fd, data, length < BLOCK ? (size_t)length : BLOCK,
		    (off_t)offset);
		if (got <= 0)
			break;
		sha256_add(hash, data, (size_t)got);
		offset += (uint64_t)got;
		length -= (uint64_t)got;
	}
	sha256_end(hash, digest);
	return length == 0 && memcmp(digest, wanted, SHA256_SIZE) == 0;
}

/* One part; ${hash} is NULL when claims are enough. */
static void
check_part(const struct staging *staging, struct part *part,
    struct sha256 *hash, uint8_t *data)
{
	const struct manifest_extent *extent;
	const uint8_t *wanted;
	uint64_t offset = 0;
	size_t i;
	int fd;

	fd = beneath_open(staging->fresh, part->entry->path,
	    O_RDONLY | O_NONBLOCK, 0);
	for (i = 0; i < part->content->extent_count; i++,
	    offset += extent->length) {
		extent = &part->content->extents[i];
		wanted = match_digest(part->manifest, extent);
		part->origins[i].staged = fd != -1 && wanted != NULL &&
		    pieces_find(staging->claims, wanted,
		    extent->length) != NULL && (hash == NULL || has_hash(fd,
		    offset, extent->length, wanted, hash, data));
	}
	if (fd != -1)
		close(fd);
}

int
staging_check(const struct staging *staging, struct selection *selection,
    bool hashing, struct error *error)
{
	const struct item *item;
	struct sha256 *hash = NULL;
	uint8_t *data;
	struct part *part;
	size_t i, j;
	int result = -1;

	if ((data = malloc(BLOCK)) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		goto out;
	}
	if (hashing && (hash = sha256_new(error)) == NULL)
		goto out;
	for (i = 0; i < selection->item_count; i++) {
		item = &selection->items[i];
		for (j = 0; !item->settled && j < item->count; j++) {
			part = &selection->parts[item->first + j];
			if (part->content != NULL)
				check_part(staging, part, hash, data);
		}
	}
	result = 0;
out:
	sha256_free(hash);
	free(data);
	return result;
}

void
staging_remove(struct staging *staging)
{
	struct error error = ERROR_INIT;

	if (path_remove_tree(staging->target, staging->name, &error) == -1)
		log_failure(LOG_WARNING, "leftover", &error);
}

/* Whether no restore holds the folder's lock. */
static bool
is_left(int target, const char *name)
{
	bool left = true;
	int folder, journal;

	if ((folder = open_folder(target, name)) == -1)
		return false;
	journal = beneath_open(folder, "journal", O_RDWR, 0);
	close(folder);
	if (journal == -1)
		return errno == ENOENT;
	left = flock(journal, LOCK_EX | LOCK_NB) == 0;
	close(journal);
	return left;
}

void
staging_sweep(int target)
{
	struct error error = ERROR_INIT;
	struct dirent *entry;
	DIR *directory;
	int fd;

	fd = openat(target, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || (directory = fdopendir(fd)) == NULL) {
		if (fd != -1)
			close(fd);
		return;
	}
	while ((entry = readdir(directory)) != NULL)
		if (strncmp(entry->d_name, STAGING_PREFIX,
		    sizeof(STAGING_PREFIX) - 1) == 0 &&
		    is_left(target, entry->d_name) &&
		    path_remove_tree(target, entry->d_name, &error) == -1)
			log_failure(LOG_WARNING, "leftover", &error);
	closedir(directory);
}
