#ifndef FORMAT_TORCH_VIEW_H
#define FORMAT_TORCH_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/storage.h"
#include "format/tensor.h"

struct error;
struct pickle_node;

/*
 * How the pickles of torch stand for tensors: calls of torch._utils._rebuild_*
 * (torch/_utils.py, torch/_tensor.py) that look at a part of a storage.
 */
enum torch_view_kind {
	TORCH_VIEW_NONE,	/* no tensor */
	TORCH_VIEW_TENSOR,
	TORCH_VIEW_REFUSED	/* a tensor that cannot be taken; `why` */
};

struct torch_view {
	enum tensor_type type;
	struct storage storage;
	const struct pickle_node *offset;	/* in elements of `type` */
	const struct pickle_node *size;		/* tuples of integers */
	const struct pickle_node *stride;	/* in elements */
	unsigned dimensions;
	uint64_t bytes;		/* 0 when the size cannot be right */
	const char *why;	/* static text */
};

/**
 * torch_view_read(node, view):
 * What ${node} is; nothing in ${view} is checked against the storage yet.
 */
enum torch_view_kind torch_view_read(const struct pickle_node *node,
    struct torch_view *view);

/**
 * torch_view_type(node, type, why):
 * The element type that the global ${node} (torch.float32) names; -1 with why
 * not.
 */
int torch_view_type(const struct pickle_node *node, enum tensor_type *type,
    const char **why);

/**
 * torch_view_tuple(node):
 * The tuple of integers in ${node}, a tuple or a torch.Size; NULL for
 * something else.
 */
const struct pickle_node *torch_view_tuple(const struct pickle_node *node);

/**
 * torch_view_make(view, place, length, tensor, why, error):
 * Make ${tensor}, all but its name, of ${view}, whose storage has ${length}
 * bytes at ${place} of file 0.  Return 0; 1 with *${why} not; -1: ERROR_DAMAGED
 * when it reaches out of its storage or cannot be right.  On anything but 0
 * nothing is kept in ${tensor}.
 */
int torch_view_make(const struct torch_view *view, uint64_t place,
    uint64_t length, struct tensor *tensor, const char **why,
    struct error *error);

#endif
