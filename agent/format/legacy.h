#ifndef FORMAT_LEGACY_H
#define FORMAT_LEGACY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct format_report;
struct source;

/*
 * What torch.save wrote before its zips, and still does when it is asked to
 * (torch/serialization.py, _legacy_save): five pickles (magic number,
 * protocol, system, the object, the keys of its storages), then for each key
 * the number of elements (8 bytes, little-endian) and the elements, up to
 * exactly the end of the file.
 */

/**
 * legacy_claimed(start, length):
 * Whether a file that begins with these bytes is one.
 */
bool legacy_claimed(const uint8_t *start, size_t length);

/**
 * legacy_inspect(source, report, error):
 * As format_inspect, for a file that begins like one.  The records are named
 * by their keys.
 */
int legacy_inspect(const struct source *source, struct format_report *report,
    struct error *error);

#endif
