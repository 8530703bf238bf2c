/* room: format */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/source.h"
#include "format/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * A directory of torch.distributed.checkpoint: the first two bytes say how long
 * .metadata is, then it and the file __0_0.distcp.  Pieces lie in the file.
 */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_memory memories[2];
	struct source sources[2];
	struct model_file files[2];
	struct model_options options = { .key = NULL };
	struct model model;
	struct error error = ERROR_INIT;
	size_t length;

	if (size < 2)
		return 0;
	length = data[0] | (size_t)data[1] << 8;
	if (length > size - 2)
		length = size - 2;
	memories[0] = (struct source_memory){ data + 2, length };
	memories[1] = (struct source_memory){ data + 2 + length,
		size - 2 - length };
	for (int i = 0; i < 2; i++)
		sources[i] = source_from_memory(&memories[i]);
	files[0] = (struct model_file){ ".metadata", &sources[0] };
	files[1] = (struct model_file){ "__0_0.distcp", &sources[1] };
	if (model_read(files, 2, &options, &model, &error) != 0 &&
	    error.message[0] == '\0')
		abort();
	for (size_t i = 0; i < model.count; i++) {
		const struct tensor *tensor = &model.tensors[i];
		uint64_t covered = 0;

		for (size_t j = 0; j < tensor->piece_count; j++) {
			const struct tensor_piece *piece = &tensor->pieces[j];
			uint64_t bytes = tensor_type_width(tensor->type);

			for (unsigned k = 0; k < tensor->dimensions; k++)
				bytes *= piece->size[k];
			if (piece->file != 1 ||
			    piece->offset > memories[1].length ||
			    bytes > memories[1].length - piece->offset)
				abort();
			covered += bytes;
		}
		if (covered != tensor->bytes)
			abort();
	}
	model_free(&model);
	return 0;
}
