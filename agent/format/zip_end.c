#include "format/zip_end.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"

#define END_SIZE 22		/* end of central directory record */
#define LOCATOR_SIZE 20		/* zip64 end of central directory locator */
#define END64_SIZE 56		/* zip64 end of central directory record */
#define MEMBER_SIZE 46		/* smallest central directory header */

/* As far back as libarchive looks for the record: a comment may follow it. */
#define TAIL_MAXIMUM 16384

static uint64_t
number(const uint8_t *bytes, int width)
{
	uint64_t value = 0;

	for (int i = width - 1; i >= 0; i--)
		value = value << 8 | bytes[i];
	return value;
}

static int
damaged(struct error *error, const char *what)
{
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL, "%s", what);
}

/* Where in the tail the record is whose comment ends with it, or -1. */
static int
find_record(const uint8_t *tail, size_t length)
{
	for (size_t i = length - END_SIZE + 1; i-- > 0;) {
		if (memcmp(tail + i, "PK\5\6", 4) == 0 &&
		    i + END_SIZE + number(tail + i + 20, 2) == length)
			return (int)i;
	}
	return -1;
}

/* The same in the last ${length} bytes of ${source}. */
static int
find_tail(const struct source *source, uint8_t *tail, size_t length,
    bool *failed, struct error *error)
{
	if (source_read(source, source->size - length, tail, length,
	    error) != 0) {
		*failed = true;
		return -1;
	}
	return find_record(tail, length);
}

/* The zip64 record, when a locator stands before the record at ${place}. */
static int
read_end64(const struct source *source, uint64_t place, struct zip_end *end,
    uint64_t *records, bool *failed, struct error *error)
{
	uint8_t locator[LOCATOR_SIZE], record[END64_SIZE];
	uint64_t at;

	if (place < LOCATOR_SIZE)
		return 0;
	if (source_read(source, place - LOCATOR_SIZE, locator,
	    sizeof(locator), error) != 0)
		goto unreadable;
	if (memcmp(locator, "PK\6\7", 4) != 0)
		return 0;
	at = number(locator + 8, 8);
	if (place < LOCATOR_SIZE + END64_SIZE ||
	    at > place - LOCATOR_SIZE - END64_SIZE)
		return damaged(error, "its zip64 end record is not there");
	if (source_read(source, at, record, sizeof(record), error) != 0)
		goto unreadable;
	if (memcmp(record, "PK\6\6", 4) != 0 ||
	    number(record + 4, 8) != place - LOCATOR_SIZE - at - 12)
		return damaged(error, "its zip64 end record is damaged");
	end->members = number(record + 32, 8);
	end->length = number(record + 40, 8);
	end->directory = number(record + 48, 8);
	*records = at;
	return 0;

unreadable:
	*failed = true;
	return -1;
}

/* Whether what the records say fits a file whose records begin at ${place}. */
static int
check(struct zip_end *end, uint64_t place, struct error *error)
{
	if (end->length > place || end->directory > place - end->length)
		return damaged(error,
		    "its central directory lies past its end records");
	end->behind = place - end->length - end->directory;
	if (end->members > end->length / MEMBER_SIZE)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "it promises %" PRIu64 " members, its central directory "
		    "has room for %" PRIu64, end->members,
		    end->length / MEMBER_SIZE);
	if (end->members > ZIP_MEMBERS_MAXIMUM ||
	    end->length > ZIP_DIRECTORY_MAXIMUM)
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "it has %" PRIu64 " members in a central directory of %"
		    PRIu64 " bytes", end->members, end->length);
	return 0;
}

int
zip_end_read(const struct source *source, struct zip_end *end, bool *failed,
    struct error *error)
{
	uint8_t tail[TAIL_MAXIMUM];
	size_t length = END_SIZE;
	uint64_t records;
	int place;

	*failed = false;
	memset(end, 0, sizeof(*end));
	if (source->size < END_SIZE)
		return damaged(error, "it has no zip end record");
	/* Without a comment, as nearly always, no more is asked for: of a file
	 * in the remote the bytes before it may be a large tensor's. */
	place = find_tail(source, tail, length, failed, error);
	if (place == -1 && !*failed && source->size > END_SIZE) {
		length = source->size < sizeof(tail) ?
		    (size_t)source->size : sizeof(tail);
		place = find_tail(source, tail, length, failed, error);
	}
	if (*failed)
		return -1;
	if (place < 0)
		return damaged(error, "it has no zip end record");
	end->members = number(tail + place + 10, 2);
	end->length = number(tail + place + 12, 4);
	end->directory = number(tail + place + 16, 4);
	records = source->size - length + (uint64_t)place;
	if (read_end64(source, records, end, &records, failed, error) != 0)
		return -1;
	return check(end, records, error);
}
