#include "move/intake.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sha256.h"
#include "format/cutter.h"
#include "format/format.h"
#include "move/files.h"

#define BLOCK ((size_t)1 << 20)
#define COMPANION_PIECE ((size_t)64 << 10)

struct intake {
	struct sender *sender;
	struct sha256 *hash;
	size_t small;		/* no small piece is longer (format/cutter.h) */
	uint8_t *data;		/* a small piece that goes on, then a block */

	/* The file that is being read. */
	struct files *files;
	size_t index;
	struct cutter *cutter;
	struct sender_extents *extents;

	/* The running piece. */
	uint64_t start;		/* in the file */
	uint64_t length;
	bool held;		/* all of it is in data */
};

struct intake *
intake_new(struct sender *sender, uint64_t target, struct error *error)
{
	struct intake *intake;

	if ((intake = calloc(1, sizeof(*intake))) == NULL)
		goto failed;
	intake->sender = sender;
	intake->small = (size_t)(target / 8);
	if ((intake->data = malloc(intake->small + BLOCK)) == NULL)
		goto failed;
	if ((intake->hash = sha256_new(error)) == NULL) {
		intake_free(intake);
		return NULL;
	}
	return intake;

failed:
	intake_free(intake);
	error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL, "out of memory");
	return NULL;
}

/* The running piece, which ends before ${end} in data, is whole. */
static int
end_piece(struct intake *intake, size_t end, bool small, struct error *error)
{
	struct sender_piece piece = {
		.lane = SENDER_CHECKPOINT,
		.source = files_source(intake->files, intake->index),
		.offset = intake->start,
		.length = intake->length,
		.counts = true
	};

	sha256_end(intake->hash, piece.digest);
	if (small && intake->held && intake->length <= intake->small)
		piece.data = intake->data + end - intake->length;
	/* What has changed already need not be sent first to be refused. */
	else if (files_check(intake->files, intake->index, error) == -1)
		return -1;
	if (sender_add(intake->sender, &piece, intake->extents, error) == -1)
		return -1;
	intake->start += intake->length;
	intake->length = 0;
	return 0;
}

/* Cut and hash the bytes of data from ${at} to ${end}. */
static int
take_block(struct intake *intake, size_t at, size_t end, struct error *error)
{
	bool ends, small;
	size_t took;

	while (at < end) {
		if (intake->length == 0)
			intake->held = true;
		took = cutter_take(intake->cutter, intake->data + at, end - at,
		    &ends, &small);
		assert(took > 0 && took <= end - at);
		sha256_add(intake->hash, intake->data + at, took);
		intake->length += took;
		at += took;
		if (ends && end_piece(intake, at, small, error) == -1)
			return -1;
	}
	return 0;
}

static int
read_blocks(struct intake *intake, struct error *error)
{
	const struct source *source =
	    files_source(intake->files, intake->index);
	uint64_t offset = 0;
	size_t filled = 0, step;

	intake->start = 0;
	intake->length = 0;
	while (offset < source->size) {
		if (sender_check(intake->sender, error) == -1)
			return -1;
		/* Only what may still turn out to be small is kept. */
		if (intake->length > 0 && intake->held &&
		    intake->length <= intake->small) {
			memmove(intake->data,
			    intake->data + filled - intake->length,
			    (size_t)intake->length);
			filled = (size_t)intake->length;
		} else {
			intake->held = false;
			filled = 0;
		}
		step = source->size - offset < BLOCK ?
		    (size_t)(source->size - offset) : BLOCK;
		if (source_read(source, offset, intake->data + filled, step,
		    error) == -1 ||
		    take_block(intake, filled, filled + step, error) == -1)
			return -1;
		filled += step;
		offset += step;
	}
	assert(intake->length == 0);
	return 0;
}

int
intake_file(struct intake *intake, struct files *files, size_t index,
    const struct format_report *report, struct sender_extents *extents,
    struct error *error)
{
	const struct source *source = files_source(files, index);
	int result;

	if (source->size == 0)
		return 0;
	intake->files = files;
	intake->index = index;
	intake->extents = extents;
	intake->cutter = cutter_new(report, source->size,
	    (uint64_t)intake->small * 8, error);
	if (intake->cutter == NULL)
		return -1;
	result = read_blocks(intake, error);
	if (result == 0)
		result = files_check(files, index, error);
	cutter_free(intake->cutter);
	intake->cutter = NULL;
	return result;
}

int
intake_companion(struct intake *intake, struct files *files, size_t index,
    struct sender_extents *extents, struct error *error)
{
	struct sender_piece piece = {
		.lane = SENDER_COMPANIONS,
		.source = files_source(files, index),
		.data = intake->data
	};
	size_t step;

	while (piece.offset < piece.source->size) {
		if (sender_check(intake->sender, error) == -1)
			return -1;
		step = piece.source->size - piece.offset < COMPANION_PIECE ?
		    (size_t)(piece.source->size - piece.offset) :
		    COMPANION_PIECE;
		if (source_read(piece.source, piece.offset, intake->data, step,
		    error) == -1)
			return -1;
		piece.length = step;
		sha256_of(intake->data, step, piece.digest);
		if (sender_add(intake->sender, &piece, extents, error) == -1)
			return -1;
		piece.offset += step;
	}
	return 0;
}

void
intake_free(struct intake *intake)
{
	if (intake == NULL)
		return;
	cutter_free(intake->cutter);
	sha256_free(intake->hash);
	free(intake->data);
	free(intake);
}
