#include "format/zip_plan.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"

#define ALIGNMENT 64
#define LOCAL_SIZE 30
#define MEMBER_SIZE 46
#define WIDE_SIZE 20		/* zip64 field with both sizes */
#define PADDING_SIZE 4		/* the smallest field "FB" */
#define ENDS_SIZE (56 + 20 + 22)
#define FLAG_UTF8 0x0800
#define VERSION_NEEDED 45	/* zip64 */

struct record {
	char *name;
	size_t name_length;
	void *data;		/* NULL: the caller's */
	uint64_t length;
	uint64_t header;	/* offset of its local header */
	uint64_t place;		/* offset of its content */
};

struct zip_plan {
	struct record *records;
	size_t count, capacity;
	uint64_t end;		/* behind the last record */
	uint64_t directory;	/* bytes of the central directory */
};

struct zip_plan *
zip_plan_new(void)
{
	return calloc(1, sizeof(struct zip_plan));
}

void
zip_plan_free(struct zip_plan *plan)
{
	if (plan == NULL)
		return;
	for (size_t i = 0; i < plan->count; i++) {
		free(plan->records[i].name);
		free(plan->records[i].data);
	}
	free(plan->records);
	free(plan);
}

static int
no_memory(struct error *error)
{
	return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
	    "out of memory for the plan of a zip");
}

static bool
is_wide(const struct record *record)
{
	return record->length >= UINT32_MAX;
}

static size_t
directory_size(const struct record *record)
{
	return MEMBER_SIZE + record->name_length +
	    (is_wide(record) ? 4 + 24 : record->header >= UINT32_MAX ?
	    4 + 8 : 0);
}

int
zip_plan_add(struct zip_plan *plan, const char *name, size_t name_length,
    const void *data, uint64_t length, uint64_t *place, struct error *error)
{
	struct record *record;
	uint64_t first;

	assert(name_length <= UINT16_MAX);
	if (plan->count == plan->capacity) {
		size_t capacity = plan->capacity == 0 ? 64 :
		    2 * plan->capacity;
		void *records = realloc(plan->records,
		    capacity * sizeof(*record));

		if (records == NULL)
			return no_memory(error);
		plan->records = records;
		plan->capacity = capacity;
	}
	record = &plan->records[plan->count];
	*record = (struct record){ .name_length = name_length,
		.length = length, .header = plan->end };
	record->name = strndup(name, name_length);
	if (data != NULL)
		record->data = malloc((size_t)length + 1);
	plan->count++;
	if (record->name == NULL || (data != NULL && record->data == NULL))
		return no_memory(error);
	if (data != NULL)
		memcpy(record->data, data, (size_t)length);
	first = plan->end + LOCAL_SIZE + name_length + PADDING_SIZE +
	    (is_wide(record) ? WIDE_SIZE : 0);
	record->place = (first + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (record->place > INT64_MAX ||
	    length > INT64_MAX - record->place)
		return error_set(error, ERROR_FAILED, CAUSE_LIMIT, NULL,
		    "it would be too large for any file");
	plan->end = record->place + length;
	plan->directory += directory_size(record);
	*place = record->place;
	return 0;
}

uint64_t
zip_plan_size(const struct zip_plan *plan)
{
	return plan->end + plan->directory + ENDS_SIZE;
}

static void
put(uint8_t **to, uint64_t number, int width)
{
	for (int i = 0; i < width; i++)
		*(*to)++ = i < 8 ? (uint8_t)(number >> (8 * i)) : 0;
}

static void
put_bytes(uint8_t **to, const void *bytes, size_t length)
{
	memcpy(*to, bytes, length);
	*to += length;
}

/* What local header (4.3.7) and directory (4.3.12) have in common. */
static void
put_common(uint8_t **to, const struct record *record, uint32_t checksum,
    size_t extra)
{
	uint64_t length = is_wide(record) ? UINT32_MAX : record->length;

	put(to, VERSION_NEEDED, 2);
	put(to, FLAG_UTF8, 2);
	put(to, 0, 2 + 2 + 2);		/* stored; time and date */
	put(to, checksum, 4);
	put(to, length, 4);
	put(to, length, 4);
	put(to, record->name_length, 2);
	put(to, extra, 2);
}

static void
put_local(uint8_t **to, const struct record *record, uint32_t checksum)
{
	size_t extra = (size_t)(record->place - record->header) - LOCAL_SIZE -
	    record->name_length;
	size_t padding = extra - PADDING_SIZE;

	put(to, 0x04034b50, 4);
	put_common(to, record, checksum, extra);
	put_bytes(to, record->name, record->name_length);
	if (is_wide(record)) {
		put(to, 1, 2);
		put(to, 16, 2);
		put(to, record->length, 8);
		put(to, record->length, 8);
		padding -= WIDE_SIZE;
	}
	put_bytes(to, "FB", 2);
	put(to, padding, 2);
	memset(*to, 'Z', padding);
	*to += padding;
}

static void
put_member(uint8_t **to, const struct record *record, uint32_t checksum)
{
	size_t extra = directory_size(record) - MEMBER_SIZE -
	    record->name_length;

	put(to, 0x02014b50, 4);
	put(to, VERSION_NEEDED, 2);
	put_common(to, record, checksum, extra);
	put(to, 0, 2 + 2 + 2 + 4);	/* comment, disk, attributes */
	put(to, extra != 0 ? UINT32_MAX : record->header, 4);
	put_bytes(to, record->name, record->name_length);
	if (extra == 0)
		return;
	assert(record->header >= UINT32_MAX || is_wide(record));
	put(to, 1, 2);
	put(to, extra - 4, 2);
	if (is_wide(record)) {
		put(to, record->length, 8);
		put(to, record->length, 8);
	}
	put(to, record->header, 8);
}

/* zip64 end record, its locator, end record (4.3.14 to 4.3.16). */
static void
put_ends(uint8_t **to, const struct zip_plan *plan)
{
	bool many = plan->count >= UINT16_MAX;
	uint64_t count = plan->count;

	put(to, 0x06064b50, 4);
	put(to, 44, 8);
	put(to, VERSION_NEEDED, 2);
	put(to, VERSION_NEEDED, 2);
	put(to, 0, 8);
	put(to, count, 8);
	put(to, count, 8);
	put(to, plan->directory, 8);
	put(to, plan->end, 8);
	put(to, 0x07064b50, 4);
	put(to, 0, 4);
	put(to, plan->end + plan->directory, 8);
	put(to, 1, 4);
	put(to, 0x06054b50, 4);
	put(to, 0, 4);
	put(to, many ? UINT16_MAX : count, 2);
	put(to, many ? UINT16_MAX : count, 2);
	put(to, plan->directory >= UINT32_MAX ? UINT32_MAX :
	    plan->directory, 4);
	put(to, plan->end >= UINT32_MAX ? UINT32_MAX : plan->end, 4);
	put(to, 0, 2);
}

static uint32_t
checksum_of(const struct record *record, const uint32_t *checksums,
    size_t *next)
{
	if (record->data == NULL)
		return checksums[(*next)++];
	return (uint32_t)crc32_z(0, record->data, (size_t)record->length);
}

/* The local header, with the content when it is ours. */
static int
emit_record(const struct record *record, uint32_t checksum,
    int (*emit)(void *, uint64_t, void *, size_t, struct error *),
    void *context, struct error *error)
{
	size_t header = (size_t)(record->place - record->header);
	size_t length = header + (record->data != NULL ?
	    (size_t)record->length : 0);
	uint8_t *data = malloc(length), *at = data;

	if (data == NULL)
		return no_memory(error);
	put_local(&at, record, checksum);
	if (record->data != NULL)
		put_bytes(&at, record->data, (size_t)record->length);
	assert(at == data + length);
	return emit(context, record->header, data, length, error);
}

int
zip_plan_seal(const struct zip_plan *plan, const uint32_t *checksums,
    int (*emit)(void *context, uint64_t offset, void *data, size_t length,
    struct error *error), void *context, struct error *error)
{
	size_t length = (size_t)plan->directory + ENDS_SIZE, next = 0;
	uint8_t *data = malloc(length), *at = data;

	if (data == NULL)
		return no_memory(error);
	for (size_t i = 0; i < plan->count; i++) {
		const struct record *record = &plan->records[i];
		uint32_t checksum = checksum_of(record, checksums, &next);

		put_member(&at, record, checksum);
		if (emit_record(record, checksum, emit, context, error) != 0) {
			free(data);
			return -1;
		}
	}
	put_ends(&at, plan);
	assert(at == data + length);
	return emit(context, plan->end, data, length, error);
}
