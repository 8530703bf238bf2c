#ifndef FORMAT_HDF5_H
#define FORMAT_HDF5_H

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

#endif
