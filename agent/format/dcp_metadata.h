#ifndef FORMAT_DCP_METADATA_H
#define FORMAT_DCP_METADATA_H

#include <stddef.h>
#include <stdint.h>

#include "format/key_tree.h"
#include "format/tensor.h"

struct error;
struct pickle;
struct pickle_node;
struct source;

/*
 * The `.metadata` of torch.distributed.checkpoint, read: its tensors as a tree
 * of keys, and for each chunk of them where its blob lies.
 */
struct dcp_tensor {
	enum tensor_type type;
	const struct pickle_node *size;		/* tuple of integers */
	const struct pickle_node *chunks;	/* list of (offsets, sizes) */
	const char *name;
	size_t length;
};

/* A blob: of the chunk of the tensor ${name} that begins at ${start}. */
struct dcp_place {
	const char *name;
	size_t length;				/* of the name */
	const struct pickle_node *start;	/* tuple of integers, or NULL */
	const char *path;			/* relative to .metadata */
	uint64_t offset;
	uint64_t size;
	bool changed;				/* compressed or so */
};

struct dcp_metadata {
	struct pickle *pickle;
	struct key_tree tree;		/* origins: struct dcp_tensor */
	struct dcp_place *places;	/* sorted by name and start */
	size_t count;
};

/**
 * dcp_metadata_read(source, metadata, error):
 * Read ${source} into ${metadata} (free it with dcp_metadata_free, also after
 * an error).  Return 0 or -1.
 */
int dcp_metadata_read(const struct source *source,
    struct dcp_metadata *metadata, struct error *error);

/**
 * dcp_metadata_place(metadata, tensor, start):
 * The blob of the chunk of ${tensor} that begins at ${start}, or NULL.
 */
const struct dcp_place *dcp_metadata_place(
    const struct dcp_metadata *metadata, const struct dcp_tensor *tensor,
    const struct pickle_node *start);

/**
 * dcp_metadata_field(node, name):
 * The attribute ${name} of the object ${node}; NULL when it has none.
 */
const struct pickle_node *dcp_metadata_field(const struct pickle_node *node,
    const char *name);

/**
 * dcp_metadata_free(metadata): free what it holds, not itself.
 */
void dcp_metadata_free(struct dcp_metadata *metadata);

#endif
