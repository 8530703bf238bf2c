#ifndef FORMAT_MODEL_H
#define FORMAT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/source.h"
#include "format/tensor.h"

struct buffer;
struct error;

/*
 * The model inside a checkpoint: which tensors are its weights, and where
 * their bytes lie.  Nothing that is in a file is ever executed.
 */

/* The files of one checkpoint, as the parsers see them. */
struct model_file {
	const char *path;	/* relative to the checkpoint's directory, or the
				 * file's name when it is one file */
	const struct source *source;
};

enum model_layout {
	MODEL_TORCH,		/* one torch file: zip or legacy */
	MODEL_SAFETENSORS,	/* one or several safetensors files */
	MODEL_DCP,		/* .metadata and .distcp */
	MODEL_FILES		/* only whole files can be chosen (Keras, GGUF, ...) */
};

struct model_options {
	const char *key;	/* --key: path of the subtree, "ema.module"; NULL: the known ones */
	bool ema;		/* --ema: prefer the averaged weights */
	bool strip_prefix;	/* --strip-prefix: module., _orig_mod., model. */
	const char *const *include;	/* globs on tensor names; empty: all */
	size_t include_count;
	const char *const *exclude;
	size_t exclude_count;
};

/* MODEL_FILES: a run of bytes to be copied as it is. */
struct model_part {
	char *path;		/* of the file, or of the member: "model.weights.h5" */
	size_t file;		/* index into the model's files */
	uint64_t offset;
	uint64_t length;
};

struct model {
	enum model_layout layout;
	char *key;		/* which subtree was taken: "state_dict"; "" : the top */
	bool module;		/* it is a pickled module, of which a state dict
				 * alone cannot be made again (see splice.h) */
	struct tensor *tensors;	/* distinct names, in the order of the checkpoint */
	size_t count;
	size_t left_out;	/* tensors of the file that are not the model's */
	uint64_t left_out_bytes;
	char **refused;		/* "name: why": tensors of the model that cannot be
				 * taken (quantised, sparse, complex128); the rest comes */
	size_t refused_count;
	struct model_part *parts;	/* MODEL_FILES only; then there are no tensors */
	size_t part_count;
	char note[160];		/* something the user should know, or "": "the
				 * optimizer's state is inside as well" */
};

/**
 * model_read(files, count, options, model, error):
 * Find the weights in the ${count} files of a checkpoint and fill ${model}
 * (free it with model_free, also after an error).  Reads only structure.
 * Tied weights appear under each of their names.  Return 0; -1: ERROR_USAGE
 * with the tree of keys in `message` cut to fit (and whole through
 * model_tree) when it is in doubt which subtree is the model or ${key} is not
 * there; CAUSE_UNSUPPORTED with what to do instead for layouts that cannot be
 * had by choice (ZeRO-3, OCDBT, TF tables); ERROR_DAMAGED.
 */
int model_read(const struct model_file *files, size_t count,
    const struct model_options *options, struct model *model,
    struct error *error);

/**
 * model_tree(files, count, tree, error):
 * For people (--list-keys): the tree of keys with how many tensors and bytes
 * lie beneath each, into ${tree}; at most a few hundred lines.  Return 0 or -1.
 */
int model_tree(const struct model_file *files, size_t count,
    struct buffer *tree, struct error *error);

/**
 * model_free(model): free what it holds, not itself.
 */
void model_free(struct model *model);

enum model_output { MODEL_OUTPUT_SAFETENSORS, MODEL_OUTPUT_TORCH };

/**
 * model_fit(model, output, convert, error):
 * Move the tensors that ${output} has no word for (complex128, names that
 * are not UTF-8), after conversion to *${convert} (NULL: none), to `refused`.
 * Call it before model_outline_make.  Return 0, or -1 when nothing is left.
 */
int model_fit(struct model *model, enum model_output output,
    const enum tensor_type *convert, struct error *error);

/**
 * model_choose_file(path):
 * Whether a file of a checkpoint directory is one of its weights (true) or
 * belongs to the optimizer, the random states and so on (false), by its name
 * (reference 2.2); config and tokenizer files count as weights.
 */
bool model_choose_file(const char *path);

/*
 * The shape of OUT.  A plan gives the bytes that are known now (header, data.pkl,
 * zip records) and where each tensor's bytes go.
 */
struct zip_plan;

struct model_outline {
	uint64_t size;			/* of the file */
	struct model_literal {		/* bytes to write as they are */
		uint64_t offset;
		size_t length;
		void *data;
	} *literals;
	size_t literal_count;
	uint64_t *places;		/* offset in OUT of each tensor's bytes (in
					 * C order, in its output type) */
	enum tensor_type *types;	/* the output type of each tensor */
	bool needs_checksums;		/* zip: the records need their CRC-32; the
					 * literals are there only after
					 * model_outline_seal */
	struct zip_plan *zip;		/* its own */
};

/**
 * model_outline_make(model, output, convert, outline, error):
 * Lay out a file with all tensors of ${model}, floating ones converted to
 * *${convert} (NULL: as they are; only F32, F16, BF16).  Return 0 or -1.
 */
int model_outline_make(const struct model *model, enum model_output output,
    const enum tensor_type *convert, struct model_outline *outline,
    struct error *error);

/**
 * model_outline_seal(outline, checksums, error):
 * For an outline that needs_checksums: ${checksums}[i] is the CRC-32 (zlib's
 * crc32; of parts in order: crc32_combine) of what was written at places[i],
 * 0 for an empty one.  Makes the literals, which are written then.  Return 0
 * or -1.
 */
int model_outline_seal(struct model_outline *outline,
    const uint32_t *checksums, struct error *error);

/**
 * model_outline_free(outline): free what it holds, not itself.
 */
void model_outline_free(struct model_outline *outline);

#endif
