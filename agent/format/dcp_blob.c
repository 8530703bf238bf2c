#include "format/dcp_blob.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/pickle.h"
#include "format/slice.h"
#include "format/storage.h"
#include "format/tensor_make.h"
#include "format/torch_file.h"
#include "format/torch_view.h"
#include "format/window.h"

/* What is read of a blob: in those of torch 1.13 to 2.8 with up to four
 * dimensions the content begins before. */
#define HEAD_SIZE 1280

/* Blobs so small that the next ones are worth reading with them. */
#define SMALL_SIZE 4096
#define LOCAL_SIZE 30
#define KEY_MAXIMUM 64

static unsigned
number_16(const char *bytes)
{
	return (uint8_t)bytes[0] | (unsigned)(uint8_t)bytes[1] << 8;
}

static int
damaged(struct error *error, const char *what)
{
	return error_set(error, ERROR_DAMAGED, CAUSE_OTHER, NULL,
	    "its part of a tensor %s", what);
}

/*
 * The first bytes of the blob, *${size} of them, from the window; with
 * ${sparing} no more than what comes together.
 */
static const char *
read_head(struct dcp_blob_reader *reader, const struct source *source,
    uint64_t offset, uint64_t length, bool sparing, size_t *size,
    struct error *error)
{
	uint64_t left = source->size - offset, wanted = length;

	if (wanted > HEAD_SIZE)
		wanted = HEAD_SIZE;
	if (sparing && wanted > 0)
		wanted = source_step(source, offset, (size_t)wanted);
	if (reader->source != source || offset < reader->start ||
	    offset + wanted > reader->start + reader->length) {
		size_t part = length < SMALL_SIZE ? DCP_BLOB_WINDOW :
		    HEAD_SIZE;

		if (part > left)
			part = (size_t)left;
		if (sparing && part > 0)
			part = source_step(source, offset, part);
		reader->source = NULL;
		if (source_read(source, offset, reader->data, part,
		    error) != 0)
			return NULL;
		reader->source = source;
		reader->start = offset;
		reader->length = part;
	}
	*size = (size_t)wanted;
	return reader->data + (offset - reader->start);
}

/* Whether the view is all of its storage, in C order, as ${tensor}. */
static bool
is_whole(const struct torch_view *view, const struct tensor *tensor)
{
	uint64_t wanted = 1;

	if (view->type != tensor->type ||
	    view->dimensions != tensor->dimensions ||
	    view->offset->integer != 0)
		return false;
	for (unsigned i = tensor->dimensions; i-- > 0;) {
		int64_t size = view->size->items[i]->integer;
		int64_t stride = view->stride->items[i]->integer;

		if (size < 0 || (uint64_t)size != tensor->shape[i] ||
		    (size > 1 && (stride < 0 || (uint64_t)stride != wanted)))
			return false;
		wanted *= (uint64_t)size;
	}
	return true;
}

static int
check_object(const struct pickle *pickle, const struct tensor *tensor,
    struct torch_view *view, struct error *error)
{
	if (torch_view_read(pickle_root(pickle), view) != TORCH_VIEW_TENSOR)
		return damaged(error, view->why != NULL ? view->why :
		    "is no tensor");
	if (!is_whole(view, tensor))
		return damaged(error, "is another one than .metadata says");
	return 0;
}

/*
 * The local header of the storage's record somewhere in ${size} bytes: its
 * name is "x/data/key".  Where the content begins, or 0.
 */
static size_t
find_storage(const char *head, size_t size, const char *key)
{
	size_t key_length = strlen(key);

	for (size_t i = 0; i + LOCAL_SIZE <= size; i++) {
		size_t name, extra;
		const char *slash;

		if (head[i] != 'P' || memcmp(head + i, "PK\3\4", 4) != 0)
			continue;
		name = number_16(head + i + 26);
		extra = number_16(head + i + 28);
		if (number_16(head + i + 8) != 0 ||
		    i + LOCAL_SIZE + name > size)
			continue;
		slash = memchr(head + i + LOCAL_SIZE, '/', name);
		if (slash == NULL)
			continue;
		name -= (size_t)(slash + 1 - (head + i + LOCAL_SIZE));
		if (name == 5 + key_length &&
		    memcmp(slash + 1, "data/", 5) == 0 &&
		    memcmp(slash + 6, key, key_length) == 0)
			return (size_t)(slash + 1 - head) + name + extra;
	}
	return 0;
}

/* Where the first record's content begins, when it is data.pkl; or 0. */
static size_t
find_pickle(const char *head, size_t size)
{
	size_t name, begin;

	if (size < LOCAL_SIZE || memcmp(head, "PK\3\4", 4) != 0 ||
	    number_16(head + 8) != 0)
		return 0;
	name = number_16(head + 26);
	begin = LOCAL_SIZE + name + number_16(head + 28);
	if (begin >= size || name < 9 ||
	    memcmp(head + LOCAL_SIZE + name - 9, "/data.pkl", 9) != 0)
		return 0;
	return begin;
}

/*
 * From the head alone: 1 with the content's offset in the blob, 0 when that
 * does not tell, -1.
 */
static int
locate_in_head(const char *head, size_t size, uint64_t length,
    const struct tensor *tensor, uint64_t *place, struct error *error)
{
	struct source_memory memory = { head, size };
	struct source source = source_from_memory(&memory);
	struct window *window = malloc(sizeof(*window));
	struct pickle *pickle = NULL;
	struct torch_view view;
	struct error short_one;
	size_t begin = find_pickle(head, size);
	int result = 0;

	if (window == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory");
	if (begin == 0)
		goto done;
	window_init(window, &source, begin, size);
	pickle = pickle_read(window, &short_one);
	if (pickle == NULL)
		goto done;
	result = check_object(pickle, tensor, &view, error);
	if (result != 0 || strlen(view.storage.key) > KEY_MAXIMUM)
		goto done;
	*place = find_storage(head, size, view.storage.key);
	result = *place != 0 && *place <= length &&
	    tensor->bytes <= length - *place;

done:
	pickle_free(pickle);
	free(window);
	return result;
}

/* As any other file of torch.save. */
static int
locate_in_zip(const struct source *source, uint64_t offset, uint64_t length,
    const struct tensor *tensor, uint64_t *place, struct error *error)
{
	struct slice slice = { source, offset };
	struct source blob = slice_source(&slice, length);
	struct torch_file file;
	struct torch_view view;
	uint64_t there;
	int result;

	result = torch_file_open(&blob, &file, error);
	if (result == 0)
		result = check_object(torch_file_object(&file), tensor, &view,
		    error);
	if (result == 0)
		result = torch_file_storage(&file, &view.storage, place,
		    &there, error);
	if (result == 0 && there < tensor->bytes)
		result = damaged(error, "is shorter than it should be");
	torch_file_close(&file);
	return result;
}

int
dcp_blob_locate(struct dcp_blob_reader *reader, const struct source *source,
    uint64_t offset, uint64_t length, const struct tensor *tensor,
    uint64_t *place, struct error *error)
{
	size_t size = 0, before;
	const char *head;
	int result = 0;

	if (offset > source->size || length > source->size - offset)
		return damaged(error, "reaches past the end of its file");
	for (int sparing = 1; sparing >= 0 && result == 0; sparing--) {
		before = size;
		head = read_head(reader, source, offset, length, sparing == 1,
		    &size, error);
		if (head == NULL)
			return -1;
		if (size > before)
			result = locate_in_head(head, size, length, tensor,
			    place, error);
	}
	if (result == 0 && locate_in_zip(source, offset, length, tensor,
	    place, error) != 0)
		return -1;
	if (result < 0)
		return -1;
	*place += offset;
	return 0;
}
