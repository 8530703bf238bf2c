#include "format/safetensors_header.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/format.h"
#include "format/report.h"
#include "format/window.h"

/*
 * The header is taken apart member by member, each parsed by jansson, since
 * jansson needs up to fifty bytes of memory for each byte of JSON: a hostile
 * header of 100 MB must not cost gigabytes.
 */
#define NAME_TEXT_MAXIMUM (6 * REPORT_NAME_MAXIMUM + 2)
#define TENSOR_TEXT_MAXIMUM 65536
#define METADATA_TEXT_MAXIMUM (16 << 20)

#define SHAPE_MAXIMUM 256	/* dimensions of a tensor */
/* How many bits an element has (Dtype::bitsize of tensor.rs). */
static const struct {
	const char *name;
	unsigned bits;
} dtypes[] = {
	{ "F4", 4 }, { "F6_E2M3", 6 }, { "F6_E3M2", 6 },
	{ "BOOL", 8 }, { "U8", 8 }, { "I8", 8 },
	{ "F8_E5M2", 8 }, { "F8_E4M3", 8 }, { "F8_E8M0", 8 },
	{ "F8_E4M3FNUZ", 8 }, { "F8_E5M2FNUZ", 8 },
	{ "I16", 16 }, { "U16", 16 }, { "F16", 16 }, { "BF16", 16 },
	{ "I32", 32 }, { "U32", 32 }, { "F32", 32 },
	{ "I64", 64 }, { "U64", 64 }, { "F64", 64 }, { "C64", 64 },
};

/* What is being taken apart. */
struct header {
	struct window window;
	struct format_report *report;
	safetensors_header_visit *visit;
	void *context;
	uint64_t data;		/* offset of the first tensor's place */
	uint64_t data_length;	/* bytes from there to the end of the file */
};

/* What json_load_callback may still take. */
struct feed {
	struct window *window;
	size_t left;
	struct error *error;
};

static size_t
feed_json(void *to, size_t length, void *context)
{
	struct feed *feed = context;

	if (length > feed->left)
		length = feed->left;
	if (length == 0 || window_left(feed->window) == 0)
		return 0;
	if (length > window_left(feed->window))
		length = (size_t)window_left(feed->window);
	if (window_take(feed->window, to, length, feed->error) != 0)
		return (size_t)-1;
	feed->left -= length;
	return length;
}

static int
damaged(struct error *error, const char *what)
{
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
	    "its header is not a safetensors header: %s", what);
}

/* One JSON value of at most ${maximum} bytes, the window behind it. */
static json_t *
read_value(struct window *window, size_t maximum, struct error *error)
{
	struct feed feed = { window, maximum, error };
	uint64_t start = window->at;
	json_error_t problem;
	json_t *value;

	value = json_load_callback(feed_json, &feed, JSON_REJECT_DUPLICATES |
	    JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, &problem);
	if (value == NULL && window->failed)
		return NULL;
	if (value == NULL && json_error_code(&problem) ==
	    json_error_out_of_memory) {
		error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a safetensors header");
		return NULL;
	}
	if (value == NULL && feed.left == 0) {
		error_set(error, ERROR_DAMAGED, CAUSE_LIMIT, NULL,
		    "a value in its header is longer than %zu bytes", maximum);
		return NULL;
	}
	if (value == NULL) {
		damaged(error, problem.text);
		return NULL;
	}
	window->at = start + (uint64_t)problem.position;
	return value;
}

/* The next byte that is no white space, not taken; -1 at the end. */
static int
next_byte(struct window *window, struct error *error)
{
	for (;;) {
		size_t length = WINDOW_SIZE;
		const uint8_t *bytes = window_peek(window, &length, error);

		if (bytes == NULL)
			return -1;
		for (size_t i = 0; i < length; i++) {
			if (strchr(" \t\r\n", bytes[i]) == NULL ||
			    bytes[i] == '\0') {
				window->at += i;
				return bytes[i];
			}
		}
		window->at += length;
	}
}

/* Take the next byte that is no white space; it must be ${wanted}. */
static int
expect(struct window *window, char wanted, struct error *error)
{
	char what[] = "'?' is missing";
	int byte = next_byte(window, error);

	if (byte < 0)
		return -1;
	if (byte != (unsigned char)wanted) {
		what[1] = wanted;
		return damaged(error, what);
	}
	window->at++;
	return 0;
}

/*
 * Call ${member} for each member of the object that comes next, the window at
 * its value.
 */
static int
walk_object(struct header *header, int (*member)(struct header *header,
    const char *name, struct error *error), struct error *error)
{
	struct window *window = &header->window;
	int byte, result;
	json_t *name;

	if (expect(window, '{', error) != 0)
		return -1;
	byte = next_byte(window, error);
	while (byte != '}') {
		if (byte < 0)
			return -1;
		if (byte != '"')
			return damaged(error, "a name is missing");
		name = read_value(window, NAME_TEXT_MAXIMUM, error);
		if (name == NULL)
			return -1;
		result = expect(window, ':', error);
		if (result == 0)
			result = member(header, json_string_value(name), error);
		json_decref(name);
		if (result != 0)
			return -1;
		byte = next_byte(window, error);
		if (byte == ',') {
			window->at++;
			byte = next_byte(window, error);
			if (byte == '}')
				return damaged(error, "a name is missing");
		} else if (byte >= 0 && byte != '}') {
			return damaged(error, "',' is missing");
		}
	}
	window->at++;
	return 0;
}

/* A member of __metadata__: text that tells us nothing. */
static int
take_metadata(struct header *header, const char *name, struct error *error)
{
	json_t *value;
	int byte;

	(void)name;
	byte = next_byte(&header->window, error);
	if (byte < 0)
		return -1;
	if (byte != '"')
		return damaged(error, "__metadata__ holds more than text");
	value = read_value(&header->window, METADATA_TEXT_MAXIMUM, error);
	if (value == NULL)
		return -1;
	json_decref(value);
	return 0;
}

/* The bytes of a tensor of that type and shape; -1 when that overflows. */
static int
tensor_size(unsigned bits, const json_t *shape, uint64_t *size)
{
	uint64_t total = bits;
	size_t dimension;
	json_t *extent;

	json_array_foreach(shape, dimension, extent) {
		uint64_t count = (uint64_t)json_integer_value(extent);

		if (__builtin_mul_overflow(total, count, &total))
			return -1;
	}
	if (total % 8 != 0)
		return -1;
	*size = total / 8;
	return 0;
}

static bool
is_list_of_counts(const json_t *list, size_t maximum)
{
	size_t i;
	json_t *item;

	if (!json_is_array(list) || json_array_size(list) > maximum)
		return false;
	json_array_foreach(list, i, item)
		if (!json_is_integer(item) || json_integer_value(item) < 0)
			return false;
	return true;
}

static int
check_size(const char *name, const json_t *tensor, uint64_t length,
    struct error *error)
{
	const char *dtype = json_string_value(json_object_get(tensor, "dtype"));
	const json_t *shape = json_object_get(tensor, "shape");
	uint64_t size;

	if (dtype == NULL || !is_list_of_counts(shape, SHAPE_MAXIMUM))
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "tensor %s has no proper dtype and shape", name);
	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		if (strcmp(dtypes[i].name, dtype) != 0)
			continue;
		if (tensor_size(dtypes[i].bits, shape, &size) == 0 &&
		    size == length)
			return 0;
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "tensor %s has a place of %" PRIu64
		    " bytes that does not fit its shape", name, length);
	}
	return 0;	/* a newer type: its place is checked all the same */
}

/* Tell the caller of a tensor whose members were checked. */
static int
visit_tensor(struct header *header, const char *name, const json_t *tensor,
    uint64_t offset, struct error *error)
{
	const json_t *shape = json_object_get(tensor, "shape"), *extent;
	uint64_t extents[SHAPE_MAXIMUM];
	struct safetensors_tensor told = {
		.name = name,
		.dtype = json_string_value(json_object_get(tensor, "dtype")),
		.dimensions = json_array_size(shape),
		.shape = extents,
		.offset = offset,
	};
	size_t i;

	json_array_foreach(shape, i, extent)
		extents[i] = (uint64_t)json_integer_value(extent);
	return header->visit(header->context, &told, error);
}

static int
add_tensor(struct header *header, const char *name, const json_t *tensor,
    struct error *error)
{
	const json_t *offsets = json_object_get(tensor, "data_offsets");
	uint64_t begin, end;

	if (!is_list_of_counts(offsets, 2) || json_array_size(offsets) != 2)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "tensor %s has no proper data_offsets", name);
	begin = (uint64_t)json_integer_value(json_array_get(offsets, 0));
	end = (uint64_t)json_integer_value(json_array_get(offsets, 1));
	if (begin > end)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "tensor %s ends before it begins", name);
	if (end > header->data_length)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "it ends at byte %" PRIu64 ", tensor %s at byte %" PRIu64,
		    header->data + header->data_length, name,
		    header->data + end);
	if (check_size(name, tensor, end - begin, error) != 0 ||
	    report_add(header->report, name, strlen(name),
	    header->data + begin, end - begin, error) != 0)
		return -1;
	return header->visit == NULL ? 0 : visit_tensor(header, name, tensor,
	    header->data + begin, error);
}

static int
take_member(struct header *header, const char *name, struct error *error)
{
	json_t *tensor;
	int result;

	if (strcmp(name, "__metadata__") == 0)
		return walk_object(header, take_metadata, error);
	tensor = read_value(&header->window, TENSOR_TEXT_MAXIMUM, error);
	if (tensor == NULL)
		return -1;
	result = add_tensor(header, name, tensor, error);
	json_decref(tensor);
	return result;
}

/* Whether the tensors, in order, cover exactly the rest of the file. */
static int
check_cover(const struct header *header, struct error *error)
{
	const struct format_report *report = header->report;
	uint64_t at = header->data, end = at + header->data_length;
	const char *twin;

	for (size_t i = 0; i < report->record_count; i++) {
		const struct format_record *record = &report->records[i];

		if (record->offset != at)
			return error_set(error, ERROR_DAMAGED, CAUSE_OTHER,
			    NULL, "tensor %s begins at byte %" PRIu64
			    ", not where the one before it ends, at %" PRIu64,
			    record->name, record->offset, at);
		at += record->length;
	}
	if (at != end)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "its tensors end at byte %" PRIu64 ", the file at %" PRIu64,
		    at, end);
	if (report_twin(report, &twin, error) != 0)
		return -1;
	if (twin != NULL)
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "two of its tensors are named %s", twin);
	return 0;
}

static int
read_header(struct header *header, struct error *error)
{
	size_t length = 1;
	const uint8_t *first = window_peek(&header->window, &length, error);

	if (first == NULL)
		return -1;
	if (*first != '{')
		return damaged(error, "it does not begin with '{'");
	if (walk_object(header, take_member, error) != 0)
		return -1;
	if (window_left(&header->window) > 0 &&
	    next_byte(&header->window, error) >= 0)
		return damaged(error, "something follows its JSON");
	if (header->window.failed)
		return -1;
	report_sort(header->report);
	return check_cover(header, error);
}

/* The length that the first 8 bytes of a file say, little-endian. */
static uint64_t
header_length(const uint8_t start[8])
{
	uint64_t number = 0;

	for (int i = 7; i >= 0; i--)
		number = number << 8 | start[i];
	return number;
}

bool
safetensors_header_claimed(const uint8_t *start, size_t length)
{
	return length >= 9 && start[8] == '{' && header_length(start) >= 2 &&
	    header_length(start) <= SAFETENSORS_HEADER_MAXIMUM;
}

/* Where the header ends, in *${data}; -1 when it cannot be there. */
static int
header_place(const struct source *source, uint64_t *data, bool *failed,
    struct error *error)
{
	uint8_t start[8];
	uint64_t length;

	if (source->size < sizeof(start))
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "it ends at byte %" PRIu64 ", before its header",
		    source->size);
	if (source_read(source, 0, start, sizeof(start), error) != 0) {
		*failed = true;
		return -1;
	}
	length = header_length(start);
	if (length == 0)
		return damaged(error, "its length is 0");
	if (length > SAFETENSORS_HEADER_MAXIMUM)
		return damaged(error, "it would be longer than 100,000,000 "
		    "bytes");
	if (length > source->size - sizeof(start))
		return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
		    "it ends at byte %" PRIu64 ", its header at byte %" PRIu64,
		    source->size, length + sizeof(start));
	*data = sizeof(start) + length;
	return 0;
}

int
safetensors_header_read(const struct source *source,
    safetensors_header_visit *visit, void *context,
    struct format_report *report, uint64_t *data, bool *failed,
    struct error *error)
{
	struct header *header = malloc(sizeof(*header));
	int result;

	*failed = false;
	if (header == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY,
		    source->name, "out of memory");
	header->report = report;
	header->visit = visit;
	header->context = context;
	result = header_place(source, &header->data, failed, error);
	if (result == 0) {
		*data = header->data;
		header->data_length = source->size - header->data;
		window_init(&header->window, source, 8, header->data);
		result = read_header(header, error);
		*failed = header->window.failed;
	}
	free(header);
	return result;
}
