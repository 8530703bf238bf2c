#ifndef FORMAT_SAFETENSORS_HEADER_H
#define FORMAT_SAFETENSORS_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct format_report;
struct source;

/*
 * The header of a safetensors file, taken apart in windows.
 */

/* MAX_HEADER_SIZE of safetensors/src/tensor.rs. */
#define SAFETENSORS_HEADER_MAXIMUM 100000000

struct safetensors_tensor {
	const char *name;
	const char *dtype;
	size_t dimensions;
	const uint64_t *shape;
	uint64_t offset;	/* of its bytes in the file */
};

/* Told of each tensor in the order of the header; -1 ends the reading. */
typedef int safetensors_header_visit(void *context,
    const struct safetensors_tensor *tensor, struct error *error);

/**
 * safetensors_header_claimed(start, length):
 * Whether a file that begins with these bytes (9 do) looks like one.
 */
bool safetensors_header_claimed(const uint8_t *start, size_t length);

/**
 * safetensors_header_read(source, visit, context, report, data, failed,
 * error):
 * Read the header of ${source}: call ${visit} (may be NULL) for each tensor
 * and add a record for it, also an empty one, to ${report}; *${data} is where
 * the header ends.  Return 0 when they cover exactly the file, each with as
 * many bytes as its type and shape need, and no two have one name; -1:
 * ERROR_DAMAGED, CAUSE_LIMIT, *${failed} when it could not be read.
 */
int safetensors_header_read(const struct source *source,
    safetensors_header_visit *visit, void *context,
    struct format_report *report, uint64_t *data, bool *failed,
    struct error *error);

#endif
