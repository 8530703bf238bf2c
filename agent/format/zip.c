#include "format/zip.h"

#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/reader.h"
#include "format/report.h"
#include "format/window.h"

#define LOCAL_SIZE 30		/* local file header without its texts */
#define TEXT_MAXIMUM 65535	/* of the name, and of the extra field */
#define LOOK_NEAR 8192		/* torch pads to 64 bytes, or 4096 if asked */
#define LOOK_FAR (LOCAL_SIZE + 2 * TEXT_MAXIMUM)

/* What listing needs beside the result. */
struct lister {
	const struct source *source;
	struct reader *reader;
	struct zip *zip;
	uint64_t free_from;	/* what lies before belongs to a member */
	uint8_t before[LOOK_FAR];
};

static int
out_of_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory for the members of a zip");
}

static unsigned
number_16(const uint8_t *bytes)
{
	return bytes[0] | (unsigned)bytes[1] << 8;
}

/* A local header: what was found of it. */
struct local {
	const char *name;
	size_t length;
};

/*
 * The local header that ends behind the last of ${size} bytes.  It says how
 * long it is, so look back for one that says just that.
 */
static bool
find_header(const uint8_t *bytes, size_t size, struct local *local)
{
	for (size_t i = size < LOCAL_SIZE ? 0 : size - LOCAL_SIZE + 1;
	    i-- > 0;) {
		size_t texts = size - i - LOCAL_SIZE;

		if (bytes[i] == 'P' && memcmp(bytes + i, "PK\3\4", 4) == 0 &&
		    number_16(bytes + i + 26) + number_16(bytes + i + 28) ==
		    texts) {
			local->name = (const char *)bytes + i + LOCAL_SIZE;
			local->length = number_16(bytes + i + 26);
			return true;
		}
	}
	return false;
}

/* Fill `before` with the ${size} bytes before ${offset}, in windows. */
static int
read_before(struct lister *lister, uint64_t offset, size_t size,
    struct error *error)
{
	for (size_t at = 0; at < size; at += WINDOW_SIZE) {
		size_t part = size - at < WINDOW_SIZE ? size - at :
		    WINDOW_SIZE;

		if (source_read(lister->source, offset - size + at,
		    lister->before + at, part, error) != 0) {
			lister->zip->failed = true;
			return -1;
		}
	}
	return 0;
}

/*
 * The local header that ends at ${offset}.  libarchive has just read it, so
 * most often no byte need be read again.  Return 1, 0 when there is none, or
 * -1 when it could not be read.
 */
static int
find_local(struct lister *lister, uint64_t offset, struct local *local,
    struct error *error)
{
	static const size_t reaches[] = { LOOK_NEAR, LOOK_FAR };
	uint64_t start, free_from = lister->free_from;
	size_t length;
	const uint8_t *recent = reader_recent(lister->reader, &start, &length);
	uint64_t from = start < free_from ? free_from : start;

	if (offset < free_from)
		return 0;
	if (from <= offset && offset <= start + length &&
	    find_header(recent + (from - start), (size_t)(offset - from),
	    local))
		return 1;
	for (size_t i = 0; i < sizeof(reaches) / sizeof(reaches[0]); i++) {
		size_t size = offset - free_from < reaches[i] ?
		    (size_t)(offset - free_from) : reaches[i];

		if (read_before(lister, offset, size, error) != 0)
			return -1;
		if (find_header(lister->before, size, local))
			return 1;
	}
	return 0;
}

/*
 * A stored member whose bytes begin at ${offset}: check its place and its
 * local header, and take its name from there, as the bytes are.
 */
static int
check_stored(struct lister *lister, struct zip_member *member,
    struct error *error)
{
	uint64_t directory = lister->zip->end.directory;
	struct local local;
	int found;

	if (member->offset > directory ||
	    member->length > directory - member->offset)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "its member at byte %" PRIu64 " does not end before the "
		    "central directory", member->offset);
	found = find_local(lister, member->offset, &local, error);
	if (found < 0)
		return -1;
	if (found == 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "its member at byte %" PRIu64 " has no header of its own",
		    member->offset);
	if (memchr(local.name, '\0', local.length) != NULL)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "a member's name holds a NUL");
	lister->free_from = member->offset + member->length;
	free(member->name);
	member->name = strndup(local.name, local.length);
	return member->name != NULL ? 0 : out_of_memory(error);
}

static int
add_member(struct lister *lister, struct archive_entry *entry,
    struct error *error)
{
	struct archive *archive = reader_archive(lister->reader);
	struct zip_member *member = &lister->zip->members[lister->zip->count];
	const char *name = archive_entry_pathname(entry);
	const void *block;
	size_t length;
	la_int64_t offset;

	memset(member, 0, sizeof(*member));
	member->name = strdup(name != NULL ? name : "");
	if (member->name == NULL)
		return out_of_memory(error);
	lister->zip->count++;
	member->length = (uint64_t)archive_entry_size(entry);
	if (archive_entry_filetype(entry) != AE_IFREG)
		return 0;
	member->stored = member->length == 0;
	if (member->length > 0 && archive_read_data_block(archive, &block,
	    &length, &offset) == ARCHIVE_OK && reader_locate(lister->reader,
	    block, &member->offset) == 0) {
		member->stored = true;
		if (check_stored(lister, member, error) != 0)
			return -1;
	}
	if (reader_failed(lister->reader))
		return reader_fail(lister->reader, error);
	if (strlen(member->name) > REPORT_NAME_MAXIMUM)
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "a member's name is longer than %d bytes",
		    REPORT_NAME_MAXIMUM);
	return 0;
}

static int
list_all(struct lister *lister, struct error *error)
{
	struct archive *archive = reader_archive(lister->reader);
	struct zip *zip = lister->zip;
	struct archive_entry *entry;
	int result;

	for (;;) {
		result = archive_read_next_header(archive, &entry);
		if (result == ARCHIVE_EOF)
			break;
		/* A warning is about a member's checksum or attributes. */
		if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
			return reader_fail(lister->reader, error);
		if (zip->count == zip->end.members)
			return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    NULL, "it has more members than the %" PRIu64
			    " that it promises", zip->end.members);
		if (add_member(lister, entry, error) != 0)
			return -1;
	}
	if (zip->count != zip->end.members)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "it has %zu members and promises %" PRIu64, zip->count,
		    zip->end.members);
	return 0;
}

/* No checksums: the tensors are not read, and torch may leave them out. */
static int
support_zip(struct archive *archive)
{
	int result = archive_read_support_format_zip_seekable(archive);

	if (result != ARCHIVE_OK)
		return result;
	return archive_read_set_format_option(archive, "zip", "ignorecrc32",
	    "1");
}

static int
list_members(const struct source *source, struct zip *zip,
    struct error *error)
{
	struct lister *lister = calloc(1, sizeof(*lister));
	int result = -1;

	if (lister == NULL)
		return out_of_memory(error);
	lister->source = source;
	lister->zip = zip;
	lister->reader = reader_open(source, support_zip, &zip->failed, error);
	if (lister->reader == NULL)
		goto done;
	result = list_all(lister, error);
	zip->failed = zip->failed || reader_failed(lister->reader);

done:
	reader_free(lister->reader);
	free(lister);
	return result;
}

int
zip_list(const struct source *source, struct zip *zip, struct error *error)
{
	memset(zip, 0, sizeof(*zip));
	if (zip_end_read(source, &zip->end, &zip->failed, error) != 0)
		return -1;
	if (zip->end.behind != 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "it is a zip behind %" PRIu64 " other bytes",
		    zip->end.behind);
	if (zip->end.members == 0)
		return 0;
	zip->members = calloc((size_t)zip->end.members,
	    sizeof(*zip->members));
	if (zip->members == NULL)
		return out_of_memory(error);
	return list_members(source, zip, error);
}

void
zip_free(struct zip *zip)
{
	for (size_t i = 0; i < zip->count; i++)
		free(zip->members[i].name);
	free(zip->members);
	zip->members = NULL;
	zip->count = 0;
}
