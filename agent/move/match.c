#include "move/match.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sha256.h"
#include "format/checkpoint.h"
#include "store/manifest.h"
#include "move/beneath.h"

#define BLOCK ((size_t)256 << 10)

/* How far a candidate has been followed. */
struct trail {
	struct match_candidate *candidate;
	struct sha256 *hash;
	size_t extent;		/* the running one */
	uint64_t taken;		/* of its bytes */
};

const uint8_t *
match_digest(const struct manifest *manifest,
    const struct manifest_extent *extent)
{
	const struct manifest_chunk *chunk = &manifest->chunks[extent->chunk];

	if (extent->has_digest)
		return extent->digest;
	if (extent->offset == 0 && extent->length == chunk->size)
		return chunk->digest;
	return NULL;
}

static const struct manifest_entry *
find_entry(const struct manifest *manifest, const char *path)
{
	size_t i;

	for (i = 0; i < manifest->entry_count; i++)
		if (strcmp(manifest->entries[i].path, path) == 0)
			return &manifest->entries[i];
	return NULL;
}

const struct manifest_entry *
match_content(const struct manifest *manifest,
    const struct manifest_entry *entry)
{
	if (entry != NULL && entry->kind == MANIFEST_HARD_LINK)
		entry = find_entry(manifest, entry->target);
	return entry != NULL && entry->kind == MANIFEST_FILE ? entry : NULL;
}

const struct manifest_entry *
match_entry(const struct manifest *manifest, const char *path)
{
	return match_content(manifest, find_entry(manifest, path));
}

/* Follow ${length} more bytes; the candidate stops fitting at the first
 * extent that is another. */
static void
follow(struct trail *trail, const uint8_t *data, size_t length)
{
	const struct manifest *manifest = trail->candidate->manifest;
	const struct manifest_extent *extent;
	uint8_t digest[SHA256_SIZE];
	const uint8_t *wanted;
	size_t step;

	while (length > 0 && trail->candidate->fits) {
		extent = &trail->candidate->entry->extents[trail->extent];
		step = extent->length - trail->taken < length ?
		    (size_t)(extent->length - trail->taken) : length;
		sha256_add(trail->hash, data, step);
		data += step;
		length -= step;
		trail->taken += step;
		if (trail->taken < extent->length)
			continue;
		sha256_end(trail->hash, digest);
		wanted = match_digest(manifest, extent);
		if (wanted == NULL ||
		    memcmp(digest, wanted, SHA256_SIZE) != 0)
			trail->candidate->fits = false;
		trail->extent++;
		trail->taken = 0;
	}
}

static int
read_along(int fd, uint64_t size, struct trail *trails, size_t count,
    uint8_t *data, struct error *error)
{
	uint64_t offset = 0;
	size_t i, left = count;
	ssize_t got;

	while (offset < size && left > 0) {
		got = pread(fd, data, BLOCK, (off_t)offset);
		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1)
			return error_set_errno(error, errno, NULL,
			    "cannot read a local file");
		/* Shorter than a moment ago: it is none of them. */
		if (got == 0 || (uint64_t)got > size - offset) {
			for (i = 0; i < count; i++)
				trails[i].candidate->fits = false;
			return 0;
		}
		for (i = 0, left = 0; i < count; i++) {
			follow(&trails[i], data, (size_t)got);
			left += trails[i].candidate->fits;
		}
		offset += (uint64_t)got;
	}
	return 0;
}

int
match_candidates(int fd, struct match_candidate *candidates, size_t count,
    struct error *error)
{
	struct trail *trails = NULL;
	uint8_t *data = NULL;
	struct stat status;
	size_t i, used = 0;
	int result = -1;

	if (fstat(fd, &status) == -1)
		return error_set_errno(error, errno, NULL,
		    "cannot look at a local file");
	if ((trails = calloc(count + 1, sizeof(*trails))) == NULL ||
	    (data = malloc(BLOCK)) == NULL) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
		goto out;
	}
	for (i = 0; i < count; i++) {
		if (!candidates[i].fits)
			continue;
		candidates[i].fits = S_ISREG(status.st_mode) &&
		    (uint64_t)status.st_size == candidates[i].entry->size;
		if (!candidates[i].fits)
			continue;
		trails[used].candidate = &candidates[i];
		if ((trails[used++].hash = sha256_new(error)) == NULL)
			goto out;
	}
	result = read_along(fd, (uint64_t)status.st_size, trails, used, data,
	    error);
out:
	for (i = 0; i < used; i++)
		sha256_free(trails[i].hash);
	free(data);
	free(trails);
	return result;
}

int
match_file(int fd, const struct manifest *manifest,
    const struct manifest_entry *entry, struct error *error)
{
	struct match_candidate candidate = {
		.manifest = manifest, .entry = entry, .fits = true
	};

	if (match_candidates(fd, &candidate, 1, error) == -1)
		return -1;
	return candidate.fits ? 1 : 0;
}

/* Whether both have the same paths of the same kinds and sizes. */
static bool
same_shape(const struct checkpoint *checkpoint, const struct manifest *manifest)
{
	const struct checkpoint_entry *here;
	const struct manifest_entry *there, *content;
	size_t i;

	if (strcmp(checkpoint->name, manifest->name) != 0 ||
	    checkpoint->entry_count != manifest->entry_count)
		return false;
	for (i = 0; i < checkpoint->entry_count; i++) {
		here = &checkpoint->entries[i];
		there = &manifest->entries[i];
		if (strcmp(here->path, there->path) != 0)
			return false;
		if (here->kind == ENTRY_FILE) {
			content = match_content(manifest, there);
			if (content == NULL ||
			    content->size != here->identity.size)
				return false;
		} else if (here->kind == ENTRY_FOLDER) {
			if (there->kind != MANIFEST_FOLDER)
				return false;
		} else if (there->kind != MANIFEST_LINK ||
		    strcmp(here->target, there->target) != 0) {
			return false;
		}
	}
	return true;
}

/* Compare file ${index} with all manifests that still fit. */
static int
compare_file(int folder, const struct checkpoint *checkpoint, size_t index,
    struct match_candidate *candidates, size_t count, struct error *error)
{
	const struct checkpoint_entry *entry = &checkpoint->entries[index];
	const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
	size_t i;
	int fd, result;

	if (entry->follow)
		fd = openat(folder, entry->path, flags);
	else
		fd = beneath_open(folder, entry->path, flags, 0);
	if (fd == -1) {
		if (errno != ENOENT && errno != ELOOP && errno != ENOTDIR)
			return error_set_errno(error, errno, entry->path,
			    "cannot open it");
		for (i = 0; i < count; i++)
			candidates[i].fits = false;
		return 0;
	}
	for (i = 0; i < count; i++)
		if (candidates[i].fits)
			candidates[i].entry = match_content(
			    candidates[i].manifest,
			    &candidates[i].manifest->entries[index]);
	result = match_candidates(fd, candidates, count, error);
	close(fd);
	return result;
}

static size_t
first_fitting(const struct match_candidate *candidates, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (candidates[i].fits)
			return i;
	return SIZE_MAX;
}

int
match_checkpoint(int folder, const struct checkpoint *checkpoint,
    struct manifest *const *manifests, size_t count, size_t *which,
    struct error *error)
{
	struct match_candidate *candidates;
	size_t i;
	int result = 0;

	if ((candidates = calloc(count + 1, sizeof(*candidates))) == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	for (i = 0; i < count; i++) {
		candidates[i].manifest = manifests[i];
		candidates[i].fits = same_shape(checkpoint, manifests[i]);
	}
	for (i = 0; result == 0 && i < checkpoint->entry_count &&
	    first_fitting(candidates, count) != SIZE_MAX; i++)
		if (checkpoint->entries[i].kind == ENTRY_FILE &&
		    checkpoint->entries[i].same_as == i)
			result = compare_file(folder, checkpoint, i,
			    candidates, count, error);
	*which = first_fitting(candidates, count);
	free(candidates);
	return result;
}
