#ifndef FORMAT_CUTTER_H
#define FORMAT_CUTTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct format_report;

/*
 * Where a file is cut into pieces while it is read once, front to back.
 *
 * A piece is either large: a chunk of its own, or small: it shares a chunk
 * with other small pieces, of this file and of others.  With records, a
 * record of at least an eighth of the target size is large and is cut at the
 * target size; a smaller record of 16 KiB or more is a small piece of its own;
 * the rest (headers, padding, tiny records) is gathered into small pieces of
 * at most 64 KiB that end where such a record begins.  So a longer header
 * shifts nothing, and a tensor is found again whatever lies before it.
 *
 * Without records the cuts are content-defined (FastCDC with normalised
 * chunking, Xia et al., USENIX ATC 2016): minimum a quarter of the target,
 * average about half of it, maximum the target.  A file smaller than an eighth
 * of the target is one small piece.
 *
 * What is left at the end of a large record, or of a file without records, is
 * a small piece too when it is smaller than an eighth of the target.
 */
struct cutter;

/* The target sizes: 8 MiB up to 64 GiB of checkpoint, then growing with it so
 * that there are about 8,192 chunks, at most 64 MiB (DESIGN 4). */
#define CUTTER_TARGET_MINIMUM (UINT64_C(8) << 20)
#define CUTTER_TARGET_MAXIMUM (UINT64_C(64) << 20)

/**
 * cutter_target(size):
 * The target for a checkpoint of ${size} bytes, a multiple of 1 MiB.
 */
uint64_t cutter_target(uint64_t size);

/**
 * cutter_new(report, size, target, error):
 * A cutter for a file of ${size} bytes with the records of ${report} (NULL:
 * none; it must outlive the cutter) and a ${target} of at least 1 MiB.  NULL
 * when out of memory.
 */
struct cutter *cutter_new(const struct format_report *report, uint64_t size,
    uint64_t target, struct error *error);

/**
 * cutter_take(cutter, data, length, ends, small):
 * The next ${length} (> 0) bytes of the file are at ${data}.  Return how many
 * of them (at least 1) belong to the running piece; *${ends} says whether the
 * piece ends behind them (it always does at the end of the file), and then
 * *${small} whether it is a small one.  The caller goes on with the rest.
 */
size_t cutter_take(struct cutter *cutter, const void *data, size_t length,
    bool *ends, bool *small);

/**
 * cutter_free(cutter):
 * Behave consistently with free(NULL).
 */
void cutter_free(struct cutter *cutter);

#endif
