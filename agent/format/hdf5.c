#include "format/hdf5.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/format.h"
#include "format/report.h"

static const uint8_t signature[8] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a,
	'\n' };

#define PLACE_MAXIMUM (1 << 20)
#define SUPERBLOCK_MAXIMUM 96	/* version 0 with 8-byte addresses */

/* What the superblock says; addresses count from the start of the file. */
struct superblock {
	unsigned version;
	unsigned flags;		/* file consistency flags, version 3 only */
	uint64_t end;		/* end-of-file address */
	bool end_known;
};

/*
 * Where the signature is; -1 with ${failed} when it could not be read, else
 * -1 when it is nowhere.
 */
static int
find_signature(const struct source *source, uint64_t *place, bool *failed,
    struct error *error)
{
	uint8_t bytes[sizeof(signature)];

	for (uint64_t at = 0; at <= PLACE_MAXIMUM; at = at == 0 ? 512 : at * 2) {
		if (source->size < at + sizeof(bytes))
			break;
		if (source_read(source, at, bytes, sizeof(bytes), error) != 0) {
			*failed = true;
			return -1;
		}
		if (memcmp(bytes, signature, sizeof(bytes)) == 0) {
			*place = at;
			return 0;
		}
	}
	return -1;
}

int
hdf5_claimed(const struct source *source, struct error *error)
{
	uint64_t place;
	bool failed = false;

	if (find_signature(source, &place, &failed, error) == 0)
		return 1;
	return failed ? -1 : 0;
}

/* An address of ${width} bytes; false when it is the undefined address. */
static bool
read_address(const uint8_t *bytes, unsigned width, uint64_t *address)
{
	bool defined = false;

	*address = 0;
	for (unsigned i = 0; i < width; i++) {
		defined = defined || bytes[i] != 0xff;
		*address |= (uint64_t)bytes[i] << (8 * i);
	}
	return defined;
}

/*
 * Take the superblock of ${length} bytes apart: -1 when it is too short or of
 * no version that we know (CAUSE_UNSUPPORTED).
 */
static int
parse(const uint8_t *bytes, size_t length, struct superblock *block,
    struct error *error)
{
	unsigned width, first;

	if (length < 16)
		goto too_short;
	block->version = bytes[8];
	if (block->version > 3)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "its HDF5 superblock has version %u", block->version);
	width = block->version < 2 ? bytes[13] : bytes[9];
	if (width != 2 && width != 4 && width != 8)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "its HDF5 superblock has addresses of %u bytes", width);
	block->flags = block->version == 3 ? bytes[11] : 0;
	/* Where the addresses begin: base, one more, end of file. */
	first = block->version == 0 ? 24 : block->version == 1 ? 28 : 12;
	if (length < first + 3 * width)
		goto too_short;
	block->end_known = read_address(bytes + first + 2 * width, width,
	    &block->end);
	return 0;

too_short:
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
	    "it ends inside its HDF5 superblock");
}

int
hdf5_inspect(const struct source *source, struct format_report *report,
    struct error *error)
{
	uint8_t bytes[SUPERBLOCK_MAXIMUM];
	struct superblock block = { .version = 0 };
	uint64_t place, left;
	bool failed = false;
	size_t length;

	report->kind = FORMAT_HDF5;
	if (find_signature(source, &place, &failed, error) != 0)
		return failed ? -1 : report_say(report, FORMAT_TORN,
		    "it has no HDF5 signature");
	left = source->size - place;
	length = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
	if (source_read(source, place, bytes, length, error) != 0)
		return -1;
	if (parse(bytes, length, &block, error) != 0)
		return report_judge(report, error, false);
	/* Bit 0: open for writing, bit 2: by a writer beside readers. */
	if ((block.flags & 5) != 0)
		return report_say(report, FORMAT_TORN,
		    "its superblock says that a writer has not closed it");
	if (!block.end_known)
		return report_say(report, FORMAT_TORN,
		    "its superblock has no end of file yet");
	if (block.end != source->size)
		return report_say(report, FORMAT_TORN,
		    "it ends at byte %" PRIu64 ", its superblock says %" PRIu64,
		    source->size, block.end);
	return report_say(report, FORMAT_WHOLE,
	    "its superblock says that it ends at byte %" PRIu64
	    ", where it does", block.end);
}
