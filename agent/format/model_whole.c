#include "format/model_whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/hdf5.h"
#include "format/slice.h"
#include "format/zip.h"

static int
add_part(struct model *model, const char *path, size_t file, uint64_t offset,
    uint64_t length, struct error *error)
{
	struct model_part *parts = realloc(model->parts,
	    (model->part_count + 1) * sizeof(*parts));

	if (parts == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a list of files");
	model->parts = parts;
	parts += model->part_count;
	*parts = (struct model_part){ .path = strdup(path), .file = file,
		.offset = offset, .length = length };
	if (parts->path == NULL)
		return error_set(error, ERROR_FAILED, CAUSE_MEMORY, NULL,
		    "out of memory for a list of files");
	model->part_count++;
	return 0;
}

/* What Keras keeps in the HDF5 file ${source} beside the weights. */
static int
note_optimizer(const struct source *source, struct model *model,
    struct error *error)
{
	enum hdf5_answer answer;

	if (hdf5_has_group(source, "optimizer", &answer, error) != 0)
		return -1;
	if (answer != HDF5_HAS_NOT)
		snprintf(model->note, sizeof(model->note),
		    "the state of the optimizer %s inside as well",
		    answer == HDF5_HAS ? "is" : "may be");
	return 0;
}

int
model_whole_file(const struct model_file *file, size_t index,
    struct model *model, struct error *error)
{
	uint8_t start[8] = { 0 };

	if (add_part(model, file->path, index, 0, file->source->size,
	    error) != 0)
		return -1;
	if (file->source->size < sizeof(start))
		return 0;
	if (source_read(file->source, 0, start, sizeof(start), error) != 0)
		return -1;
	if (memcmp(start, "\x89HDF\r\n\x1a\n", sizeof(start)) != 0)
		return 0;
	return note_optimizer(file->source, model, error);
}

int
model_whole_member(const struct model_file *file, size_t index,
    const char *name, struct model *model, struct error *error)
{
	const struct zip_member *member = NULL;
	struct slice slice = { file->source, 0 };
	struct source content;
	struct zip zip;
	int result = zip_list(file->source, &zip, error);

	for (size_t i = 0; result == 0 && i < zip.count; i++)
		if (strcmp(zip.members[i].name, name) == 0)
			member = &zip.members[i];
	if (result == 0 && member != NULL) {
		result = 1;
		slice.offset = member->offset;
		if (!member->stored)
			result = error_set(error, ERROR_DAMAGED,
			    CAUSE_UNSUPPORTED, file->path, "its member %s is "
			    "compressed", name);
		else if (add_part(model, name, index, member->offset,
		    member->length, error) != 0)
			result = -1;
		content = slice_source(&slice, result < 0 ? 0 :
		    member->length);
		if (result > 0 && note_optimizer(&content, model, error) != 0)
			result = -1;
	}
	zip_free(&zip);
	return result;
}
