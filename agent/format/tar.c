#include "format/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/format.h"
#include "format/reader.h"
#include "format/report.h"

#define BLOCK 512
#define MEMBERS_MAXIMUM 1000000

struct tar {
	const struct source *source;
	struct reader *reader;
	struct format_report *report;
	uint64_t end;		/* behind the last member's blocks */
	size_t count;
	bool sparse;		/* some member's bytes are not all there */
	bool failed;
};

bool
tar_claimed(const uint8_t *start, size_t length)
{
	return length >= 262 && memcmp(start + 257, "ustar", 5) == 0;
}

static int
damaged(struct error *error, const char *what)
{
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL, "%s", what);
}

/* The bytes of a member begin at ${at}: check them and add a record. */
static int
take_content(struct tar *tar, struct archive_entry *entry, uint64_t at,
    struct error *error)
{
	uint64_t length = (uint64_t)archive_entry_size(entry), place, behind;
	const char *name = archive_entry_pathname(entry);
	const void *block;
	la_int64_t offset;
	size_t size;

	if (__builtin_add_overflow(at, length, &behind) ||
	    behind > tar->source->size)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "it ends at byte %" PRIu64 ", inside a member of %" PRIu64
		    " bytes", tar->source->size, length);
	tar->end = (behind + BLOCK - 1) / BLOCK * BLOCK;
	if (archive_read_data_block(reader_archive(tar->reader), &block,
	    &size, &offset) != ARCHIVE_OK)
		return reader_fail(tar->reader, error);
	if (reader_locate(tar->reader, block, &place) != 0 || place != at ||
	    at % BLOCK != 0)
		return damaged(error, "a member does not follow its header");
	if (name == NULL)
		return 0;
	return report_add(tar->report, name, strlen(name), at, length, error);
}

static int
take_members(struct tar *tar, struct error *error)
{
	struct archive *archive = reader_archive(tar->reader);
	struct archive_entry *entry;
	int result;

	for (;;) {
		result = archive_read_next_header(archive, &entry);
		if (result == ARCHIVE_EOF)
			return 0;
		if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
			return reader_fail(tar->reader, error);
		if (++tar->count > MEMBERS_MAXIMUM)
			return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT,
			    NULL, "it has more than %d members",
			    MEMBERS_MAXIMUM);
		tar->end = (uint64_t)archive_filter_bytes(archive, 0);
		if (archive_entry_sparse_count(entry) > 0)
			tar->sparse = true;
		else if (archive_entry_filetype(entry) == AE_IFREG &&
		    archive_entry_hardlink(entry) == NULL &&
		    archive_entry_size(entry) > 0 &&
		    take_content(tar, entry, tar->end, error) != 0)
			return -1;
	}
}

/*
 * Behind the last member two blocks of zeros must follow: libarchive takes
 * any end of the file for the end of the archive.
 */
static int
check_end(struct tar *tar, struct error *error)
{
	uint8_t blocks[2 * BLOCK];

	if (tar->source->size % BLOCK != 0 ||
	    tar->end > tar->source->size ||
	    tar->source->size - tar->end < sizeof(blocks))
		return damaged(error, "it ends without the mark of its end");
	if (source_read(tar->source, tar->end, blocks, sizeof(blocks),
	    error) != 0) {
		tar->failed = true;
		return -1;
	}
	for (size_t i = 0; i < sizeof(blocks); i++)
		if (blocks[i] != 0)
			return damaged(error,
			    "no mark of its end follows its last member");
	return 0;
}

static int
take_all(struct tar *tar, struct error *error)
{
	int result;

	tar->reader = reader_open(tar->source, archive_read_support_format_tar,
	    &tar->failed, error);
	if (tar->reader == NULL)
		return -1;
	result = take_members(tar, error);
	tar->failed = reader_failed(tar->reader);
	if (result == 0 && !tar->sparse)
		result = check_end(tar, error);
	reader_free(tar->reader);
	return result;
}

int
tar_inspect(const struct source *source, struct format_report *report,
    struct error *error)
{
	struct tar tar = { .source = source, .report = report };

	report->kind = FORMAT_TAR;
	if (take_all(&tar, error) != 0)
		return report_judge(report, error, tar.failed);
	if (tar.sparse)
		return report_say(report, FORMAT_UNPROVEN,
		    "it is a tar with sparse members");
	return report_say(report, FORMAT_WHOLE,
	    "all members of the tar (%zu) and its end are there", tar.count);
}
