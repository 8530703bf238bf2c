#ifndef FORMAT_DCP_BLOB_H
#define FORMAT_DCP_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/tensor.h"

struct error;
struct source;

/*
 * A blob of a .distcp file: a whole torch.save zip that holds one tensor
 * (torch/distributed/checkpoint/filesystem.py, _write_item), at some place of
 * the file.
 *
 * There are many of them, and each zip's end records, directory, pickle and
 * local header would be four requests to the remote.  But the pickle and the
 * storage's local header are all at the blob's beginning, and small blobs lie
 * beside each other: what was read last is kept.  Only when the storage's
 * header is not found there the zip is read as a zip is.
 */
#define DCP_BLOB_WINDOW 16384

struct dcp_blob_reader {
	const struct source *source;	/* what `data` is of; NULL: nothing */
	uint64_t start;
	size_t length;
	char data[DCP_BLOB_WINDOW];
};

/**
 * dcp_blob_locate(reader, source, offset, length, tensor, place, error):
 * The blob of ${length} bytes at ${offset} of ${source}, within it, should
 * hold one whole tensor in C order of the type and shape of ${tensor}: set
 * *${place} to where its bytes begin in ${source}.  Return 0, or -1:
 * ERROR_DAMAGED when it does not.
 */
int dcp_blob_locate(struct dcp_blob_reader *reader,
    const struct source *source, uint64_t offset, uint64_t length,
    const struct tensor *tensor, uint64_t *place, struct error *error);

#endif
