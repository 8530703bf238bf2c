#include "format/zip_directory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"

#define MEMBER_SIZE 46		/* central directory header without its texts */
#define LOCAL_SIZE 30		/* local header without its texts */
#define NAME_MAXIMUM 4096
#define READ_SIZE ((size_t)1 << 20)

/*
 * Where torch lets the content of a record begin (caffe2/serialize/
 * inline_container.h, kFieldAlignment); a multiple if it is asked to.
 */
#define ALIGNMENT 64

static uint64_t
number(const char *bytes, int width)
{
	uint64_t value = 0;

	for (int i = width - 1; i >= 0; i--)
		value = value << 8 | (uint8_t)bytes[i];
	return value;
}

static int
damaged(struct error *error, const char *what)
{
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL, "%s", what);
}

static int
read_bytes(struct zip_directory *directory, struct error *error)
{
	uint64_t length = directory->end.length;

	for (uint64_t at = 0; at < length; at += READ_SIZE) {
		size_t part = length - at < READ_SIZE ? (size_t)(length - at) :
		    READ_SIZE;

		if (source_read(directory->source, directory->end.directory +
		    at, directory->bytes + at, part, error) != 0) {
			directory->failed = true;
			return -1;
		}
	}
	return 0;
}

/*
 * The zip64 field (4.5.3) holds those of size, packed size and offset, in
 * this order, that do not fit their own fields.
 */
static int
read_wide(const char *extra, size_t length, uint64_t *size, uint64_t *packed,
    uint64_t *offset)
{
	uint64_t *wide[] = { size, packed, offset };

	while (length >= 4) {
		size_t id = (size_t)number(extra, 2);
		size_t part = (size_t)number(extra + 2, 2), at = 4;

		if (part > length - 4)
			return -1;
		for (int i = 0; id == 1 && i < 3; i++) {
			if (*wide[i] != UINT32_MAX)
				continue;
			if (at + 8 > 4 + part)
				return -1;
			*wide[i] = number(extra + at, 8);
			at += 8;
		}
		if (id == 1)
			return 0;
		extra += 4 + part;
		length -= 4 + part;
	}
	return 0;
}

/* The entry at ${entry}, ${left} bytes before the end; its whole length. */
static int
read_entry(const char *entry, size_t left, struct zip_record *record,
    size_t *taken, struct error *error)
{
	size_t name, extra, comment;
	uint64_t packed, length, header;
	unsigned flags, method;

	if (left < MEMBER_SIZE || memcmp(entry, "PK\1\2", 4) != 0)
		return damaged(error, "its central directory is damaged");
	flags = (unsigned)number(entry + 8, 2);
	method = (unsigned)number(entry + 10, 2);
	packed = number(entry + 20, 4);
	length = number(entry + 24, 4);
	name = (size_t)number(entry + 28, 2);
	extra = (size_t)number(entry + 30, 2);
	comment = (size_t)number(entry + 32, 2);
	header = number(entry + 42, 4);
	*taken = MEMBER_SIZE + name + extra + comment;
	if (*taken > left || read_wide(entry + MEMBER_SIZE + name, extra,
	    &length, &packed, &header) != 0)
		return damaged(error, "its central directory is damaged");
	if (name > NAME_MAXIMUM)
		return error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "a member's name is longer than %d bytes", NAME_MAXIMUM);
	if (memchr(entry + MEMBER_SIZE, '\0', name) != NULL)
		return damaged(error, "a member's name holds a NUL");
	*record = (struct zip_record){
		.name = entry + MEMBER_SIZE,
		.name_length = name,
		.header = header,
		.length = length,
		.checksum = (uint32_t)number(entry + 16, 4),
		/* Bit 0: encrypted. */
		.stored = method == 0 && (flags & 1) == 0 && packed == length,
		.described = (flags & 8) != 0,
		.dateless = number(entry + 12, 4) == 0,
	};
	if (!record->stored)
		record->length = packed;
	return 0;
}

static int
by_header(const void *a, const void *b)
{
	const struct zip_record *left = a, *right = b;

	if (left->header != right->header)
		return left->header < right->header ? -1 : 1;
	return 0;
}

static int
compare_names(const struct zip_record *record, const char *name,
    size_t length)
{
	size_t shorter = record->name_length < length ? record->name_length :
	    length;
	int order = memcmp(record->name, name, shorter);

	if (order != 0 || record->name_length == length)
		return order;
	return record->name_length < length ? -1 : 1;
}

static int
by_name(const void *a, const void *b)
{
	const struct zip_record *const *left = a, *const *right = b;

	return compare_names(*left, (*right)->name, (*right)->name_length);
}

/* Each must end before the next begins, the last before the directory. */
static int
check_places(struct zip_directory *directory, struct error *error)
{
	struct zip_record *records = directory->records;

	for (size_t i = 0; i < directory->count; i++) {
		struct zip_record *record = &records[i];
		uint64_t start;

		record->behind = i + 1 < directory->count ?
		    records[i + 1].header : directory->end.directory;
		if (record->behind > directory->end.directory ||
		    __builtin_add_overflow(record->header, LOCAL_SIZE +
		    record->name_length, &start) || start > record->behind ||
		    record->length > record->behind - start)
			return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    NULL, "its member %.*s at byte %" PRIu64 " lies "
			    "over what follows it", (int)record->name_length,
			    record->name, record->header);
	}
	return 0;
}

static int
check_names(struct zip_directory *directory, struct error *error)
{
	const struct zip_record **sorted = directory->by_name;

	for (size_t i = 0; i < directory->count; i++)
		sorted[i] = &directory->records[i];
	qsort(sorted, directory->count, sizeof(*sorted), by_name);
	for (size_t i = 1; i < directory->count; i++)
		if (by_name(&sorted[i - 1], &sorted[i]) == 0)
			return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    NULL, "two members of the zip are named %.*s",
			    (int)sorted[i]->name_length, sorted[i]->name);
	return 0;
}

static int
read_entries(struct zip_directory *directory, struct error *error)
{
	size_t left = (size_t)directory->end.length, taken = 0;
	const char *at = directory->bytes;

	while (directory->count < directory->end.members) {
		if (read_entry(at, left,
		    &directory->records[directory->count], &taken, error) != 0)
			return -1;
		directory->count++;
		at += taken;
		left -= taken;
	}
	if (left > 0)
		return damaged(error,
		    "it has more members than it promises");
	qsort(directory->records, directory->count,
	    sizeof(*directory->records), by_header);
	if (check_places(directory, error) != 0)
		return -1;
	return check_names(directory, error);
}

int
zip_directory_read(const struct source *source,
    struct zip_directory *directory, struct error *error)
{
	memset(directory, 0, sizeof(*directory));
	directory->source = source;
	if (zip_end_read(source, &directory->end, &directory->failed,
	    error) != 0)
		return -1;
	if (directory->end.behind != 0)
		return error_set(error, ERROR_DAMAGED, CAUSE_UNSUPPORTED, NULL,
		    "it is a zip behind %" PRIu64 " other bytes",
		    directory->end.behind);
	directory->bytes = malloc((size_t)directory->end.length + 1);
	directory->records = calloc((size_t)directory->end.members + 1,
	    sizeof(*directory->records));
	directory->by_name = calloc((size_t)directory->end.members + 1,
	    sizeof(*directory->by_name));
	if (directory->bytes == NULL || directory->records == NULL ||
	    directory->by_name == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
		    source->name, "out of memory for the members of a zip");
	if (read_bytes(directory, error) != 0)
		return -1;
	return read_entries(directory, error);
}

const struct zip_record *
zip_directory_find(const struct zip_directory *directory, const char *name,
    size_t length)
{
	size_t low = 0, high = directory->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct zip_record *record = directory->by_name[middle];
		int order = compare_names(record, name, length);

		if (order == 0)
			return record;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/*
 * Without reading, for what torch wrote (it leaves out times): the content
 * ends where the next header begins, but for a descriptor of 16 bytes (24 with
 * zip64 sizes), and begins at a multiple of 64; only one length of the two
 * can give that.
 */
static bool
derive_place(const struct zip_record *record, uint64_t *offset)
{
	static const unsigned descriptors[] = { 16, 24 };
	uint64_t first = record->header + LOCAL_SIZE + record->name_length;

	if (!record->dateless)
		return false;
	for (size_t i = 0; i < 2; i++) {
		uint64_t tail = record->length +
		    (record->described ? descriptors[i] : 0);

		if (record->behind - first < tail)
			break;
		*offset = record->behind - tail;
		if (*offset % ALIGNMENT == 0 && *offset - first <= UINT16_MAX)
			return true;
	}
	return false;
}

int
zip_directory_place(struct zip_directory *directory,
    const struct zip_record *record, uint64_t *offset, struct error *error)
{
	char header[LOCAL_SIZE];

	if (derive_place(record, offset))
		return 0;
	if (source_read(directory->source, record->header, header,
	    sizeof(header), error) != 0) {
		directory->failed = true;
		return -1;
	}
	*offset = record->header + LOCAL_SIZE + number(header + 26, 2) +
	    number(header + 28, 2);
	if (memcmp(header, "PK\3\4", 4) != 0 || *offset > record->behind ||
	    record->length > record->behind - *offset)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "its member %.*s has no proper header of its own",
		    (int)record->name_length, record->name);
	return 0;
}

void
zip_directory_free(struct zip_directory *directory)
{
	free(directory->by_name);
	free(directory->records);
	free(directory->bytes);
	directory->by_name = NULL;
	directory->records = NULL;
	directory->bytes = NULL;
	directory->count = 0;
}
