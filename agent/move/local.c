#include "move/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "format/format.h"
#include "store/truth.h"
#include "move/beneath.h"
#include "move/match.h"
#include "move/pieces.h"

#define BLOCK ((size_t)256 << 10)

struct local {
	const struct truth *truth;
	struct selection *selection;
	int target;
	struct pieces *pieces;		/* digest -> donor and place */
	struct match_candidate *candidates;	/* room for all */

	/* What local_compare found last. */
	char *path;
	bool known;
};

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory");
}

struct local *
local_new(const struct truth *truth, int target, struct selection *selection,
    struct error *error)
{
	struct local *local;

	if ((local = calloc(1, sizeof(*local))) == NULL) {
		out_of_memory(error);
		return NULL;
	}
	local->truth = truth;
	local->target = target;
	local->selection = selection;
	local->candidates = calloc(truth->count + 1,
	    sizeof(*local->candidates));
	if (local->candidates == NULL) {
		out_of_memory(error);
		local_free(local);
		return NULL;
	}
	if ((local->pieces = pieces_new(error)) == NULL) {
		local_free(local);
		return NULL;
	}
	return local;
}

/* The open file has the bytes of ${content}: whoever wants one of its extents
 * can have it from there. */
static int
add_donor(struct local *local, const char *path,
    const struct manifest *manifest, const struct manifest_entry *content,
    struct error *error)
{
	const struct manifest_extent *extent;
	const uint8_t *digest;
	struct piece piece;
	uint64_t offset = 0;
	uint32_t donor;
	size_t i;

	if (selection_donor(local->selection, path, &donor, error) == -1)
		return -1;
	for (i = 0; i < content->extent_count; i++) {
		extent = &content->extents[i];
		digest = match_digest(manifest, extent);
		if (digest != NULL) {
			memcpy(piece.digest, digest, SHA256_SIZE);
			piece.length = extent->length;
			piece.offset = offset;
			piece.chunk = donor;
			if (pieces_add(local->pieces, &piece, error) == -1)
				return -1;
		}
		offset += extent->length;
	}
	return 0;
}

static const struct manifest_entry *
find_around(const struct manifest_entry *entries, size_t count,
    const char *path)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (entries[i].kind == MANIFEST_FILE &&
		    strcmp(entries[i].path, path) == 0)
			return &entries[i];
	return NULL;
}

/* Whatever valid checkpoints have at ${path}; how many candidates in all. */
static size_t
add_candidates(struct local *local, const char *path, size_t count)
{
	const struct manifest_entry *entry;
	const struct manifest *manifest;
	size_t i;

	for (i = 0; i < local->truth->count; i++) {
		manifest = local->truth->valid[i];
		entry = match_entry(manifest, path);
		if (entry == NULL)
			entry = find_around(manifest->companions,
			    manifest->companion_count, path);
		if (entry == NULL)
			entry = find_around(manifest->pointers,
			    manifest->pointer_count, path);
		if (entry != NULL)
			local->candidates[count++] = (struct match_candidate){
				.manifest = manifest,
				.entry = entry,
				.fits = true
			};
	}
	return count;
}

/* Read the file once; the first candidate that fits becomes a donor. */
static int
try_candidates(struct local *local, int fd, const char *path, size_t count,
    size_t *first, struct error *error)
{
	size_t i;

	*first = count;
	free(local->path);
	if ((local->path = strdup(path)) == NULL)
		return out_of_memory(error);
	local->known = false;
	if (match_candidates(fd, local->candidates, count, error) == -1)
		return error_prefix(error, "%s", path);
	for (i = 0; i < count && !local->candidates[i].fits; i++)
		continue;
	*first = i;
	local->known = i < count;
	if (!local->known)
		return 0;
	return add_donor(local, path, local->candidates[i].manifest,
	    local->candidates[i].entry, error);
}

static int
open_local(const struct local *local, const char *path, struct error *error)
{
	int fd = beneath_open(local->target, path, O_RDONLY | O_NONBLOCK, 0);

	if (fd == -1)
		error_set_errno(error, errno, path, "cannot open it");
	return fd;
}

int
local_compare(struct local *local, const char *path,
    const struct manifest *manifest, const struct manifest_entry *content,
    struct error *error)
{
	size_t count, first;
	int fd, result;

	if ((fd = open_local(local, path, error)) == -1)
		return -1;
	local->candidates[0] = (struct match_candidate){
		.manifest = manifest, .entry = content, .fits = true
	};
	count = add_candidates(local, path, 1);
	result = try_candidates(local, fd, path, count, &first, error);
	close(fd);
	if (result == -1)
		return -1;
	return first == 0 ? 1 : 0;
}

/* Whether it is empty or torn. */
static int
is_worthless(int fd, const char *path, struct error *error)
{
	struct source_file file = { .fd = fd, .name = path };
	struct format_report report = { 0 };
	struct source source;
	struct stat status;
	bool torn;

	if (fstat(fd, &status) == -1)
		return error_set_errno(error, errno, path,
		    "cannot look at it");
	if (status.st_size == 0)
		return 1;
	source = source_from_file(&file, (uint64_t)status.st_size);
	if (format_inspect(&source, path, &report, error) == -1)
		return -1;
	torn = report.verdict == FORMAT_TORN;
	format_report_free(&report);
	return torn ? 1 : 0;
}

int
local_may_replace(struct local *local, const char *path, struct error *error)
{
	size_t count, first;
	int fd, result = 0;

	if ((fd = open_local(local, path, error)) == -1)
		return -1;
	if (local->path == NULL || strcmp(local->path, path) != 0) {
		count = add_candidates(local, path, 0);
		result = try_candidates(local, fd, path, count, &first, error);
	}
	if (result == 0)
		result = local->known ? 1 : is_worthless(fd, path, error);
	close(fd);
	return result;
}

/* 1 when the bytes of the file have this hash, 0 when not. */
static int
check_range(int fd, uint64_t offset, uint64_t length, const uint8_t *wanted,
    struct sha256 *hash, uint8_t *data)
{
	uint8_t digest[SHA256_SIZE];
	ssize_t got = 1;
	size_t step;

	while (length > 0 && got > 0) {
		step = length < BLOCK ? (size_t)length : BLOCK;
		got = pread(fd, data, step, (off_t)offset);
		if (got > 0) {
			sha256_add(hash, data, (size_t)got);
			offset += (uint64_t)got;
			length -= (uint64_t)got;
		}
	}
	sha256_end(hash, digest);
	return length == 0 && memcmp(digest, wanted, SHA256_SIZE) == 0;
}

static int
search_file(struct local *local, int fd, const char *path,
    const struct manifest *manifest, const struct manifest_entry *content,
    struct sha256 *hash, uint8_t *data, struct error *error)
{
	const struct manifest_extent *extent;
	struct piece piece = { .length = 0 };
	const uint8_t *digest;
	struct stat status;
	uint64_t offset = 0;
	size_t i;

	if (fstat(fd, &status) == -1)
		return error_set_errno(error, errno, path,
		    "cannot look at it");
	if (selection_donor(local->selection, path, &piece.chunk, error) == -1)
		return -1;
	for (i = 0; i < content->extent_count; i++, offset += extent->length) {
		extent = &content->extents[i];
		if (offset + extent->length > (uint64_t)status.st_size)
			break;
		digest = match_digest(manifest, extent);
		if (digest == NULL || !check_range(fd, offset, extent->length,
		    digest, hash, data))
			continue;
		memcpy(piece.digest, digest, SHA256_SIZE);
		piece.length = extent->length;
		piece.offset = offset;
		if (pieces_add(local->pieces, &piece, error) == -1)
			return -1;
	}
	return 0;
}

int
local_search(struct local *local, const char *path,
    const struct manifest *manifest, const struct manifest_entry *content,
    struct error *error)
{
	struct sha256 *hash = NULL;
	uint8_t *data = NULL;
	int fd, result = -1;

	/* What it holds is known already, at whatever places. */
	if (local->known && strcmp(local->path, path) == 0)
		return 0;
	if ((fd = open_local(local, path, error)) == -1)
		return -1;
	if ((data = malloc(BLOCK)) == NULL)
		out_of_memory(error);
	else if ((hash = sha256_new(error)) != NULL)
		result = search_file(local, fd, path, manifest, content, hash,
		    data, error);
	sha256_free(hash);
	free(data);
	close(fd);
	return result;
}

static void
resolve_part(const struct local *local, struct part *part)
{
	const struct manifest_extent *extent;
	const struct piece *piece;
	const uint8_t *digest;
	size_t i;

	for (i = 0; i < part->content->extent_count; i++) {
		extent = &part->content->extents[i];
		digest = match_digest(part->manifest, extent);
		piece = digest == NULL ? NULL :
		    pieces_find(local->pieces, digest, extent->length);
		if (piece != NULL)
			part->origins[i] = (struct origin){
				.from = ORIGIN_LOCAL,
				.donor = piece->chunk,
				.offset = piece->offset
			};
	}
}

void
local_resolve(struct local *local)
{
	const struct item *item;
	struct part *part;
	size_t i, j;

	for (i = 0; i < local->selection->item_count; i++) {
		item = &local->selection->items[i];
		for (j = 0; !item->settled && j < item->count; j++) {
			part = &local->selection->parts[item->first + j];
			if (part->content != NULL)
				resolve_part(local, part);
		}
	}
}

void
local_free(struct local *local)
{
	if (local == NULL)
		return;
	pieces_free(local->pieces);
	free(local->candidates);
	free(local->path);
	free(local);
}
