#ifndef FORMAT_HDF5_H
#define FORMAT_HDF5_H

#include <stdbool.h>

struct error;
struct format_report;
struct source;

/*
 * HDF5 (HDF5 File Format Specification 3.0, section II.A, "Superblock").  The
 * library writes the superblock first and again when the file is closed; then
 * the end-of-file address in it is the size of the file.  While a writer is at
 * work, and after it was killed, it is not.
 */

/**
 * hdf5_claimed(source, error):
 * Whether the signature is where the specification allows it (0, 512, 1024,
 * 2048, ... up to 1 MiB): 1, 0, or -1.
 */
int hdf5_claimed(const struct source *source, struct error *error);

/**
 * hdf5_inspect(source, report, error):
 * As format_inspect, for a file that should be one.  No records.
 */
int hdf5_inspect(const struct source *source, struct format_report *report,
    struct error *error);

enum hdf5_answer { HDF5_HAS_NOT, HDF5_HAS, HDF5_UNKNOWN };

/**
 * hdf5_has_group(source, start, answer, error):
 * Whether something at the top of the file, which begins with the signature,
 * has a name that begins with ${start}.  What is kept in newer ways than
 * symbol tables is found only when it is near.  Return 0, or -1 when it could
 * not be read.
 */
int hdf5_has_group(const struct source *source, const char *start,
    enum hdf5_answer *answer, struct error *error);

#endif
