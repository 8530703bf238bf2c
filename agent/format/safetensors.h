#ifndef FORMAT_SAFETENSORS_H
#define FORMAT_SAFETENSORS_H

#include <stdbool.h>

struct error;
struct format_report;
struct source;

/*
 * safetensors (its README and safetensors/src/tensor.rs): a header length N
 * (u64, little-endian), N bytes of JSON, then the tensors without holes or
 * overlap up to exactly the end of the file.
 *
 * Writers of 2026 give the file its full size before the first byte, so a
 * killed one leaves a file that passes all of that with a tail nobody wrote.
 * The rule here: when the source knows which bytes were never written and the
 * last byte is one of them, the file is torn (the writers go front to back,
 * so the last byte comes last).  When it does not know, and all bytes of the
 * last 4 KiB page are zeros, the file is unproven.  Otherwise, and for
 * zeros that were written, it is whole.
 */

/**
 * safetensors_claimed(source, error):
 * Whether the content looks like safetensors: 1, 0, or -1.
 */
int safetensors_claimed(const struct source *source, struct error *error);

/**
 * safetensors_inspect(source, report, error):
 * As format_inspect, for a file that should be one.
 */
int safetensors_inspect(const struct source *source,
    struct format_report *report, struct error *error);

#endif
