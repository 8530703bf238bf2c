#ifndef FORMAT_SLICE_H
#define FORMAT_SLICE_H

#include <stdint.h>

#include "base/source.h"

/*
 * A part of a source as a source of its own: a member of a tar, one blob of a
 * file that holds many.
 */
struct slice {
	const struct source *whole;
	uint64_t offset;	/* of its first byte in the whole */
};

/**
 * slice_source(slice, length):
 * The ${length} bytes of ${slice}, which lie within its whole, as a source.
 * ${slice} must outlive it.
 */
struct source slice_source(struct slice *slice, uint64_t length);

#endif
