#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/source.h"

/*
 * What is inside a checkpoint file: which format it has, whether its
 * structure proves that all of it is there, and where its records (tensors,
 * storages, members) lie.  One file a format: safetensors.c, torch.c (zip and
 * legacy), hdf5.c, tar.c; format.c is the table of them.
 */

enum format_kind {
	FORMAT_UNKNOWN,		/* no structure that we know */
	FORMAT_SAFETENSORS,
	FORMAT_TORCH,		/* zip with data.pkl */
	FORMAT_TORCH_LEGACY,	/* consecutive pickles and storages */
	FORMAT_ZIP,		/* another zip: .keras, .npz */
	FORMAT_HDF5,
	FORMAT_TAR,		/* .nemo */
	FORMAT_JSON		/* *.json that must parse: an index, trainer_state */
};

enum format_verdict {
	FORMAT_WHOLE,		/* proven: every byte that it promises is there */
	FORMAT_TORN,		/* proven not to be */
	FORMAT_UNPROVEN		/* the structure says nothing */
};

/* A run of bytes of the file with a name. */
struct format_record {
	char *name;		/* "data/0", a tensor's name, a member's path */
	uint64_t offset;	/* of its bytes in the file */
	uint64_t length;
};

struct format_report {
	enum format_kind kind;
	enum format_verdict verdict;
	char reason[256];	/* why, for people: "ends at byte 12 of 4096" */
	bool hollow;		/* unproven, since bytes amid it were never
				 * written: somebody should look at it */

	/* In the order of their offsets, not overlapping, within the file, at
	 * least one byte long.  None when it is torn. */
	struct format_record *records;
	size_t record_count;
};

/**
 * format_inspect(source, name, report, error):
 * Look into ${source}, a file whose path ends in ${name} (its extension says
 * what it claims to be: an empty "x.pt" is torn, not unknown).  Reads only
 * the structure, in windows of at most 64 KiB, never the tensors.  Fills
 * ${report} (free it with format_report_free).  A file that is torn or
 * hostile is a verdict, not an error: return -1 only when it could not be
 * read or memory ran out.
 *
 * Limits: a safetensors header of at most 100,000,000 bytes (as its own
 * reader has it), 4,000,000 records, names of 4 KiB, 1,000,000 members of a
 * zip (in a central directory of 64 MiB) or tar, 64 MiB of memory for a
 * pickle.  What is beyond them is unproven.
 */
int format_inspect(const struct source *source, const char *name,
    struct format_report *report, struct error *error);

/**
 * format_report_free(report):
 * Free what ${report} holds, not itself.
 */
void format_report_free(struct format_report *report);

/**
 * format_kind_text(kind):
 * "safetensors", "torch", "torch-legacy", "zip", "hdf5", "tar", "json",
 * "unknown".
 */
const char *format_kind_text(enum format_kind kind);

/**
 * format_index_shards(source, visit, context, error):
 * Call ${visit} with each distinct file name that a safetensors or torch
 * index (`weight_map` of *.index.json) names; each is a harmless path, relative
 * to the index.  Return 0; -1 when it is not an index, is larger than 32 MiB,
 * or ${visit} returned -1.
 */
int format_index_shards(const struct source *source,
    int (*visit)(void *context, const char *name, struct error *error),
    void *context, struct error *error);

#endif
