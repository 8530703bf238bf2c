#include "weigh.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/sha256.h"
#include "format/convert.h"
#include "kit/kit.h"

static void
add_file(struct weigh_files *files, const char *path, char *data,
    size_t length)
{
	size_t count = files->count + 1;

	files->files = realloc(files->files, count * sizeof(*files->files));
	files->memories = realloc(files->memories,
	    count * sizeof(*files->memories));
	files->sources = realloc(files->sources,
	    count * sizeof(*files->sources));
	files->memories[count - 1] = (struct source_memory){ data, length };
	files->files[count - 1].path = strdup(path);
	files->count = count;
}

/* The rows have their final places now. */
static struct weigh_files *
settle(struct weigh_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		files->sources[i] = source_from_memory(&files->memories[i]);
		files->sources[i].name = files->files[i].path;
		files->files[i].source = &files->sources[i];
	}
	return files;
}

static char *
read_fixture(const char *folder, const char *name, size_t *length)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/format/weights/%s%s%s", TEST_DATA,
	    folder, folder[0] != '\0' ? "/" : "", name);
	return kit_read_file(path, length);
}

struct weigh_files *
weigh_open(const char *name)
{
	struct weigh_files *files = calloc(1, sizeof(*files));
	char path[512];
	struct dirent **entries;
	size_t length;
	int count;
	char *data;

	snprintf(path, sizeof(path), "%s/format/weights/%s", TEST_DATA, name);
	count = scandir(path, &entries, NULL, alphasort);
	if (count < 0) {
		data = read_fixture("", name, &length);
		add_file(files, name, data, length);
		return settle(files);
	}
	for (int i = 0; i < count; i++) {
		if (strcmp(entries[i]->d_name, ".") != 0 &&
		    strcmp(entries[i]->d_name, "..") != 0) {
			data = read_fixture(name, entries[i]->d_name, &length);
			add_file(files, entries[i]->d_name, data, length);
		}
		free(entries[i]);
	}
	free(entries);
	return settle(files);
}

struct weigh_files *
weigh_one(const char *path, const void *data, size_t length)
{
	struct weigh_files *files = calloc(1, sizeof(*files));
	char *copy = malloc(length + (length == 0));

	memcpy(copy, data, length);
	add_file(files, path, copy, length);
	return settle(files);
}

void
weigh_close(struct weigh_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free((char *)files->files[i].path);
		free((char *)files->memories[i].data);
	}
	free(files->files);
	free(files->memories);
	free(files->sources);
	free(files);
}

/* One box, element by element: slow, and sure. */
static void
gather_piece(const struct weigh_files *files, const struct tensor *tensor,
    const struct tensor_piece *piece, char *bytes)
{
	unsigned width = tensor_type_width(tensor->type);
	uint64_t index[TENSOR_DIMENSIONS_MAXIMUM] = { 0 };
	struct error error = ERROR_INIT;
	int at;

	do {
		uint64_t from = piece->offset, to = 0;

		for (unsigned i = 0; i < tensor->dimensions; i++) {
			from += index[i] * piece->stride[i] * width;
			to = to * tensor->shape[i] + piece->start[i] +
			    index[i];
		}
		assert_ok(source_read(&files->sources[piece->file], from,
		    bytes + to * width, width, &error), error);
		for (at = (int)tensor->dimensions - 1; at >= 0; at--) {
			if (++index[at] < piece->size[at])
				break;
			index[at] = 0;
		}
	} while (at >= 0);
}

char *
weigh_gather(const struct weigh_files *files, const struct tensor *tensor)
{
	char *bytes = malloc((size_t)tensor->bytes + 1);

	memset(bytes, 0xa5, (size_t)tensor->bytes + 1);
	for (size_t i = 0; i < tensor->piece_count; i++)
		gather_piece(files, tensor, &tensor->pieces[i], bytes);
	return bytes;
}

/* Write a run that nothing was written to yet. */
static void
write_run(char *file, char *written, uint64_t size, uint64_t offset,
    const void *data, size_t length)
{
	assert_true(offset <= size && length <= size - offset);
	for (size_t i = 0; i < length; i++)
		assert_int_equal(written[offset + i], 0);
	memset(written + offset, 1, length);
	memcpy(file + offset, data, length);
}

char *
weigh_seal(struct model_outline *outline, char *const *contents,
    const size_t *lengths, size_t count)
{
	char *file = malloc((size_t)outline->size);
	char *written = calloc(1, (size_t)outline->size);
	uint32_t *checksums = calloc(count + 1, sizeof(*checksums));
	struct error error = ERROR_INIT;

	for (size_t i = 0; i < count; i++) {
		checksums[i] = (uint32_t)crc32_z(0,
		    (const uint8_t *)contents[i], lengths[i]);
		write_run(file, written, outline->size, outline->places[i],
		    contents[i], lengths[i]);
	}
	if (outline->needs_checksums) {
		assert_int_equal(outline->literal_count, 0);
		assert_ok(model_outline_seal(outline, checksums, &error),
		    error);
	}
	for (size_t i = 0; i < outline->literal_count; i++)
		write_run(file, written, outline->size,
		    outline->literals[i].offset, outline->literals[i].data,
		    outline->literals[i].length);
	assert_null(memchr(written, 0, (size_t)outline->size));
	free(checksums);
	free(written);
	return file;
}

char *
weigh_write(const struct weigh_files *files, const struct model *model,
    enum model_output output, const enum tensor_type *convert,
    size_t *length)
{
	struct model_outline outline;
	struct error error = ERROR_INIT;
	char **contents = calloc(model->count + 1, sizeof(*contents));
	size_t *lengths = calloc(model->count + 1, sizeof(*lengths));
	char *file;

	assert_ok(model_outline_make(model, output, convert, &outline,
	    &error), error);
	for (size_t i = 0; i < model->count; i++) {
		const struct tensor *tensor = &model->tensors[i];
		size_t count = (size_t)tensor->bytes /
		    tensor_type_width(tensor->type);
		char *bytes = weigh_gather(files, tensor);

		lengths[i] = count * tensor_type_width(outline.types[i]);
		contents[i] = malloc(lengths[i] + 1);
		if (outline.types[i] != tensor->type)
			convert_elements(tensor->type, outline.types[i],
			    bytes, contents[i], count);
		else
			memcpy(contents[i], bytes, lengths[i]);
		free(bytes);
	}
	file = weigh_seal(&outline, contents, lengths, model->count);
	*length = (size_t)outline.size;
	for (size_t i = 0; i < model->count; i++)
		free(contents[i]);
	free(contents);
	free(lengths);
	model_outline_free(&outline);
	return file;
}
